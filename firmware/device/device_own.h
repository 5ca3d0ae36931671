/* What a device is; only for the files of this room, which add their parts to it. */
#ifndef RP_DEVICE_DEVICE_OWN_H
#define RP_DEVICE_DEVICE_OWN_H

#include <CL/cl.h>
#include <stdatomic.h>

#include "device/device.h"
#include "device/tuning.h"

enum {
    RP_FENCES_MAX = 1024,
    RP_PROGRAMS_MAX = 256,
    RP_KERNELS_MAX = 1024, /* slots of the hash table; a power of two */
    RP_KERNEL_KEY_MAX = 192
};

struct rp_buffer {
    cl_mem memory;
    size_t bytes;
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
} rp_program;

struct rp_kernel {
    char key[RP_KERNEL_KEY_MAX]; /* entry, newline, key of the program; "" = free slot */
    cl_kernel kernel;
    rp_device *device;
};

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
    int64_t cache_wait_ns; /* for a program that another process builds; 0 after one in vain */
    const atomic_bool *build_cancelled; /* of the job that builds; NULL = nobody can cancel */
    int event_fd;                       /* the caller's */
    size_t used_bytes;
    size_t used_bytes_max;
    uint32_t fence_next;
    uint32_t cache_hits;   /* programs that came from the disk */
    uint32_t cache_misses; /* programs that were compiled */
    uint32_t program_count;
    rp_program programs[RP_PROGRAMS_MAX];
    struct rp_kernel kernels[RP_KERNELS_MAX];
    rp_fence_state fences[RP_FENCES_MAX];
};

/* What rp_device_close() lets go of. Programs and kernels: */
void rp_programs_release(rp_device *device);
/* Waits (bounded) until no callback is on its way, then releases the events. */
void rp_fences_release(rp_device *device);

#endif
