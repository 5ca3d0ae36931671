/* Internals of a device; only for the files of this room. */
#ifndef RP_DEVICE_DEVICE_OWN_H
#define RP_DEVICE_DEVICE_OWN_H

#include <CL/cl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/attributes.h"
#include "device/cache.h"
#include "device/device.h"
#include "device/tuning.h"

enum {
    RP_FENCES_MAX = 1024,
    RP_FENCE_ENTRIES = 2 * RP_FENCES_MAX, /* a power of two, because a counter wraps around */
    RP_PROGRAMS_MAX = 256,
    RP_KERNELS_MAX = 1024,  /* slots of the hash table; a power of two */
    RP_VARIANTS_MAX = 2048, /* slots of a hash table; a power of two */
    RP_KERNEL_KEY_MAX = 192
};

struct rp_buffer {
    cl_mem memory;
    size_t bytes;
    char *host; /* its address if it was opened mapped; else NULL */
};

struct rp_fence_state {
    cl_event event; /* NULL: the slot is free */
    rp_device *device;
    bool released;      /* by the caller; the slot is free when it is also not watched */
    atomic_int status;  /* 1 running, 0 done, below 0 the OpenCL error */
    atomic_int watched; /* 1 until the callback or the waiter no longer uses it */
    atomic_llong done_ns;
};

/* The thread that waits for the fences; fence.c says on which devices. */
typedef struct {
    pthread_t thread;
    bool started;                            /* false: the driver calls back */
    sem_t added;                             /* entries that the thread has not taken */
    rp_fence_state *entry[RP_FENCE_ENTRIES]; /* in the queue's order; NULL ends the thread */
    uint32_t added_count;
} rp_fence_waiter;

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

/* A kernel with one group size, which a driver may compile at its first launch. */
typedef struct {
    const struct rp_kernel *kernel; /* NULL = free slot */
    uint32_t local[3];
    bool large; /* a grid of more than 65535 groups per side, for which PoCL has other code */
    bool ready;
    uint32_t job; /* last job that counted it */
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
    bool gemm_broken; /* RP_TEST_BREAK_GEMM: the self-test must fail */
    char platform_version[128];
    char *cache_dir; /* "" = no cache */
    /* the driver caches what it compiles; our cache then only records that */
    bool driver_caches;
    bool keeps_binaries;   /* our cache stores binaries of programs */
    int64_t cache_wait_ns; /* for a program that another process builds; 0 after one timeout */
    const atomic_bool *build_cancelled; /* of the current job; NULL = not cancellable */
    int event_fd;                       /* owned by the caller */
    size_t used_bytes;
    size_t used_bytes_max;
    size_t used_bytes_limit; /* 0: no limit */
    uint32_t fence_next;
    uint32_t cache_hits;   /* programs that were read from the disk */
    uint32_t cache_misses; /* programs that were compiled */
    uint32_t program_count;
    rp_program programs[RP_PROGRAMS_MAX];
    struct rp_kernel kernels[RP_KERNELS_MAX];
    bool rehearses;   /* rehearsal: commands are listed and not executed */
    bool makes_ready; /* first launches are awaited and counted */
    bool passes_over; /* what another process is building fails with AGAIN */
    uint32_t job;     /* number from rp_device_count_anew() */
    atomic_uint kernel_count, ready_count, built_count; /* of the job; ready.h */
    atomic_llong build_ns, read_ns;
    pthread_mutex_t building_lock;
    char building[96]; /* last build begun; under the lock */
    rp_variant variants[RP_VARIANTS_MAX];
    rp_fence_state fences[RP_FENCES_MAX];
    rp_fence_waiter waiter;
};

/* ready.c: launches by calling `now`; in a rehearsal only lists the kernel. If the device makes
 * kernels ready, it waits for the first launch of a kernel. errors of the launch */
typedef rp_err (*rp_launch_now)(void *launch);
rp_err rp_ready_launch(const struct rp_kernel *kernel, const size_t groups[3],
                       const size_t local[3], rp_launch_now now, void *launch) RP_MUST_CHECK;
/* If the driver caches: whether it has the entry for the key; recording that it has it. */
bool rp_ready_is_known(const rp_device *device, const rp_cache_key *key);
void rp_ready_note(const rp_device *device, const rp_cache_key *key);
/* How long to wait for another process that builds the same. */
int64_t rp_ready_patience_ns(const rp_device *device);
void rp_ready_add_time(rp_device *device, bool built, int64_t ns); /* for a program or a launch */
/* While the device makes kernels ready: records the build that begins now, for
 * rp_device_building(). */
void rp_ready_begin(rp_device *device, const char *format, ...) RP_PRINTF(2, 3);
/* clears that record when another job of a builder begins */
void rp_ready_forget(rp_device *device);

/* Released by rp_device_close(): programs and kernels. */
void rp_programs_release(rp_device *device);
/* fence.c: creates the eventfd and, unless facts.cpu, starts the thread that waits for fences. */
rp_err rp_fences_open(rp_device *device) RP_MUST_CHECK;
/* After clFinish: ends the thread, waits for callbacks (bounded) and releases the events. */
void rp_fences_close(rp_device *device);

/* memory.c: a chunk at `host` in host memory; NULL: wherever the driver puts it. */
rp_err rp_darena_open_in(rp_arena *arena, rp_device *device, const char *name, size_t chunk_bytes,
                         char *host, rp_darena **out) RP_MUST_CHECK;

#endif
