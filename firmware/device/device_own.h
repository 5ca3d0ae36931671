/* What a device is; only for the files of this room, which add their parts to it. */
#ifndef RP_DEVICE_DEVICE_OWN_H
#define RP_DEVICE_DEVICE_OWN_H

#include <CL/cl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/attributes.h"
#include "device/cache.h"
#include "device/device.h"
#include "device/tuning.h"

enum {
    RP_FENCES_MAX = 1024,
    RP_PROGRAMS_MAX = 256,
    RP_KERNELS_MAX = 1024,  /* slots of the hash table; a power of two */
    RP_VARIANTS_MAX = 2048, /* slots of a hash table; a power of two */
    RP_KERNEL_KEY_MAX = 192
};

struct rp_buffer {
    cl_mem memory;
    size_t bytes;
    char *host; /* where it lies, of what was opened mapped; else NULL */
};

struct rp_fence_state {
    cl_event event; /* NULL: the slot is free */
    rp_device *device;
    bool released;      /* by the caller; the slot is free when it is also done */
    atomic_int status;  /* 1 running, 0 done, below 0 the OpenCL error */
    atomic_int calling; /* 1 until the callback has returned */
    atomic_llong done_ns;
};

typedef struct {
    char key[RP_KERNEL_KEY_MAX]; /* program, newline, defines */
    cl_program program;
    rp_cache_key cache_key;
    bool missed; /* it was compiled here, or waited for */
} rp_program;

struct rp_kernel {
    char key[RP_KERNEL_KEY_MAX]; /* entry, newline, key of the program; "" = free slot */
    cl_kernel kernel;            /* NULL: only listed by a rehearsal */
    const rp_program *program;
    rp_device *device;
};

/* A kernel with one group size: what a driver may compile at its first launch. */
typedef struct {
    const struct rp_kernel *kernel; /* NULL = free slot */
    uint32_t local[3];
    bool large; /* a grid of more than 65535 groups a side, for which PoCL has other code */
    bool ready;
    uint32_t job; /* that counted it last */
} rp_variant;

struct rp_device {
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    rp_device_facts facts;
    rp_tuning tuning;
    rp_tuning_origin tuning_origin;
    rp_gemm_choice gemm;
    bool gemm_broken; /* RP_TEST_BREAK_GEMM: the self-test must ring */
    char platform_version[128];
    char *cache_dir;       /* "" = no cache */
    bool driver_caches;    /* the driver keeps what it compiles: the cache only says that it has */
    bool keeps_binaries;   /* of programs, in our cache */
    int64_t cache_wait_ns; /* for a program that another process builds; 0 after one in vain */
    const atomic_bool *build_cancelled; /* of the job that builds; NULL = nobody can cancel */
    int event_fd;                       /* the caller's */
    size_t used_bytes;
    size_t used_bytes_max;
    size_t used_bytes_limit; /* 0: none */
    uint32_t fence_next;
    uint32_t cache_hits;   /* programs that came from the disk */
    uint32_t cache_misses; /* programs that were compiled */
    uint32_t program_count;
    rp_program programs[RP_PROGRAMS_MAX];
    struct rp_kernel kernels[RP_KERNELS_MAX];
    bool rehearses;   /* what is enqueued is listed, nothing is done */
    bool makes_ready; /* first launches are waited for and counted */
    bool passes_over; /* what another process builds fails with AGAIN */
    uint32_t job;     /* of rp_device_count_anew() */
    atomic_uint kernel_count, ready_count, built_count; /* of the job; ready.h */
    atomic_llong build_ns, read_ns;
    pthread_mutex_t building_lock;
    char building[96]; /* what was begun last; under the lock */
    rp_variant variants[RP_VARIANTS_MAX];
    rp_fence_state fences[RP_FENCES_MAX];
};

/* ready.c: launches by `now`, or only lists the kernel in a rehearsal. The first launch of a kernel
 * is waited for where the device makes kernels ready. errors: of the launch */
typedef rp_err (*rp_launch_now)(void *launch);
rp_err rp_ready_launch(const struct rp_kernel *kernel, const size_t groups[3],
                       const size_t local[3], rp_launch_now now, void *launch) RP_MUST_CHECK;
/* Where the driver caches: whether it has what the key stands for, and that it has it now. */
bool rp_ready_is_known(const rp_device *device, const rp_cache_key *key);
void rp_ready_note(const rp_device *device, const rp_cache_key *key);
/* How long another process that builds the same is waited for. */
int64_t rp_ready_patience_ns(const rp_device *device);
void rp_ready_add_time(rp_device *device, bool built, int64_t ns); /* of a program or a launch */
/* While the device makes kernels ready: this is begun now, rp_device_building(). */
void rp_ready_begin(rp_device *device, const char *format, ...) RP_PRINTF(2, 3);
void rp_ready_forget(rp_device *device); /* what was begun: another job of a builder's begins */

/* What rp_device_close() lets go of. Programs and kernels: */
void rp_programs_release(rp_device *device);
/* Waits (bounded) until no callback is on its way, then releases the events. */
void rp_fences_release(rp_device *device);

/* memory.c: a chunk in memory of the host, NULL: wherever the driver wants it. */
rp_err rp_darena_open_in(rp_arena *arena, rp_device *device, const char *name, size_t chunk_bytes,
                         char *host, rp_darena **out) RP_MUST_CHECK;

#endif
