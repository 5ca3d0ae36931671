/* One OpenCL device: choosing it, its memory, its queue, waiting for it.
 *
 * Only this room includes CL/cl.h and clblast_c.h. There is one in-order queue per device; every
 * enqueue function returns at once. Only rp_device_drain() calls clFinish. */
#ifndef RP_DEVICE_DEVICE_H
#define RP_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/tuning.h"

typedef struct rp_device rp_device;
typedef struct rp_buffer rp_buffer; /* device memory: a whole buffer or a part of one */

typedef struct {
    const char *platform; /* case-insensitive part of the platform name, NULL = any */
    const char *device;   /* case-insensitive part of the device name, NULL = any */
    uint32_t threads;     /* CPU threads on PoCL, 0 = all; set before the first platform call */
    /* folder of kernel binaries, or of notes if the driver has its own cache; NULL =
     * $XDG_CACHE_HOME/ringpipe, else ~/.cache/ringpipe */
    const char *cache_dir;
    const char *tuning_path;     /* a board's tuning.json, NULL = none; see tuning.h */
    const char *cpu_tuning_path; /* used if that is NULL and the device is a CPU; NULL = none */
    uint32_t skip;               /* number of matching devices to skip */
} rp_device_options;

typedef struct {
    char platform[128];
    char name[128];
    char vendor[128];
    char driver[128];
    char version[128];
    uint64_t memory_bytes;
    uint64_t alloc_bytes_max;
    uint64_t local_bytes;
    uint32_t group_items_max;
    uint32_t compute_units;
    uint32_t align_bytes; /* of sub-buffers */
    bool cpu;             /* its compute units are CPU threads */
    bool unified;
    bool profiling;
} rp_device_facts;

/* Number of matching devices, ignoring `skip`; 0 also if there is no driver. Sets the number of
 * threads like rp_device_open(). */
uint32_t rp_device_count(const rp_device_options *options);
/* errors  DEVICE: no ICD, no device (the message names the package to install), driver refused */
rp_err rp_device_open(rp_arena *arena, const rp_device_options *options,
                      rp_device **out) RP_MUST_CHECK;
/* Opens the matching device with the fastest matrix products. If several match, each is opened and
 * measured first, the log has the figures, and a device that fails is skipped.
 * errors  as of rp_device_open() */
rp_err rp_device_open_fastest(rp_arena *arena, const rp_device_options *options,
                              rp_device **out) RP_MUST_CHECK;
void rp_device_close(rp_device **device);
const rp_device_facts *rp_device_facts_of(const rp_device *device);
/* The tuning.json in force; valid as long as the device. */
const rp_tuning_origin *rp_device_tuning_origin(const rp_device *device);
/* The implementation of matrix products in use, by the board's tuning.json. */
rp_gemm_choice rp_device_gemm(const rp_device *device);
void rp_device_choose_gemm(rp_device *device, rp_gemm_choice choice); /* for tests and tune */

/* Start-up check: compares the chosen GEMM with a CPU result at several shapes, transposes and
 * tails. RP_TEST_BREAK_GEMM in the environment makes it fail.
 * errors  NUMERIC with shape and values: CLBlast 1.5.3 is known to be wrong on some devices */
rp_err rp_device_selftest(rp_device *device) RP_MUST_CHECK;

/* ---- memory: arenas of device bytes, sealed before the step loop -------------------------- */

typedef struct rp_darena rp_darena;

/* limit_bytes 0: no limit but the device's. `chunk_bytes` > 0: the arena allocates one buffer of
 * this size at once and hands out parts of it (contiguous, aligned to facts.align_bytes); 0: every
 * take creates its own buffer. */
rp_err rp_darena_open(rp_arena *arena, rp_device *device, const char *name, size_t limit_bytes,
                      size_t chunk_bytes, rp_darena **out) RP_MUST_CHECK;
/* Like rp_darena_open() with a chunk that spilling to flash can read and write in place, without a
 * copy. This applies to a device that shares the host's memory, after a test has shown that both
 * see the same bytes; on other devices the chunk is an ordinary one. */
rp_err rp_darena_open_mapped(rp_arena *arena, rp_device *device, const char *name,
                             size_t chunk_bytes, rp_darena **out) RP_MUST_CHECK;
void rp_darena_close(rp_darena **arena); /* frees the buffers; accepts a pointer to NULL */
/* The bytes are zeroed by an enqueued command.
 * errors  MEMORY naming arena, requested bytes, used bytes, limit */
rp_err rp_darena_take(rp_darena *arena, size_t bytes, rp_buffer **out) RP_MUST_CHECK;
void rp_darena_seal(rp_darena *arena);
size_t rp_darena_used_bytes(const rp_darena *arena);
size_t rp_buffer_bytes(const rp_buffer *buffer);
/* The chunk as one buffer, for kernels that run over all parts at once. */
rp_buffer *rp_darena_whole(rp_darena *arena);
/* Sum of all live device bytes of our arenas, and its maximum since the last reset. */
size_t rp_device_used_bytes(const rp_device *device);
size_t rp_device_used_bytes_max(const rp_device *device);
void rp_device_reset_used_bytes_max(rp_device *device);
/* From now on a take fails if used bytes would exceed `limit`; 0: no limit, as initially. */
void rp_device_limit_bytes(rp_device *device, size_t limit);
/* The cost of one take of `bytes` in a chunked arena: rounded up to the alignment. Pure. */
size_t rp_darena_round(size_t bytes, uint32_t align_bytes);

/* ---- queue -------------------------------------------------------------------------------- */

/* A point in the queue. A plain value; .done_ns is the host's monotonic time of completion. */
typedef struct rp_fence_state rp_fence_state;
typedef struct {
    rp_fence_state *state; /* from a fixed pool in the device; NULL = already passed */
} rp_fence;

/* Enqueues a marker after all commands so far and flushes. When it passes, another thread writes to
 * the device's eventfd. Every fence must be released. */
rp_err rp_device_fence(rp_device *device, rp_fence *out) RP_MUST_CHECK;
/* done_ns (may be NULL) is valid when *done is true.
 * errors  DEVICE when the work before the fence failed */
rp_err rp_fence_poll(const rp_fence *fence, bool *done, int64_t *done_ns) RP_MUST_CHECK;
void rp_fence_release(rp_fence *fence);
/* Readable if a fence has passed since it was last drained: for poll(). Read 8 bytes to drain. */
int rp_device_eventfd(const rp_device *device);
/* Calls clFinish: only for tests, boot and shutdown. */
rp_err rp_device_drain(rp_device *device) RP_MUST_CHECK;

/* Enqueue copies. Host memory is borrowed until a later fence has passed. Bounds are checked. */
rp_err rp_buffer_write(rp_device *device, rp_buffer *to, size_t offset_bytes, const void *from,
                       size_t bytes) RP_MUST_CHECK;
rp_err rp_buffer_read(rp_device *device, void *to, const rp_buffer *from, size_t offset_bytes,
                      size_t bytes) RP_MUST_CHECK;
rp_err rp_buffer_copy(rp_device *device, rp_buffer *to, size_t to_offset, const rp_buffer *from,
                      size_t from_offset, size_t bytes) RP_MUST_CHECK;
rp_err rp_buffer_fill_zero(rp_device *device, rp_buffer *to, size_t offset_bytes,
                           size_t bytes) RP_MUST_CHECK;
/* Blocking forms for tests and boot. */
rp_err rp_buffer_write_now(rp_device *device, rp_buffer *to, size_t offset_bytes, const void *from,
                           size_t bytes) RP_MUST_CHECK;
rp_err rp_buffer_read_now(rp_device *device, void *to, const rp_buffer *from, size_t offset_bytes,
                          size_t bytes) RP_MUST_CHECK;

#endif
