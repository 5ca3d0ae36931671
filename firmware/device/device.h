/* One OpenCL device: choosing it, its memory, its queue, waiting for it.
 *
 * Only this room includes CL/cl.h and clblast_c.h. One in-order queue per device; every enqueue
 * function returns at once. Nothing here calls clFinish except rp_device_drain(). */
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
    const char *platform;    /* case-insensitive part of the platform name, NULL = any */
    const char *device;      /* case-insensitive part of the device name, NULL = any */
    uint32_t threads;        /* CPU threads on PoCL, 0 = all; set before the first platform call */
    const char *cache_dir;   /* of kernel binaries; NULL = $XDG_CACHE_HOME/ringpipe, else
                              * ~/.cache/ringpipe, and only notes where the driver keeps its own */
    const char *tuning_path; /* a board's tuning.json, NULL = none; see tuning.h */
    const char *cpu_tuning_path; /* where that is none and the device is a CPU; NULL = none */
    uint32_t skip;               /* so many of the devices that match are passed over */
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
    bool cpu;             /* its compute units are threads */
    bool unified;
    bool profiling;
} rp_device_facts;

/* How many devices match, `skip` not counted; 0 too when there is no driver. It sets the number of
 * threads as rp_device_open() does. */
uint32_t rp_device_count(const rp_device_options *options);
/* errors  DEVICE: no ICD, no device (the message names the package to install), driver refused */
rp_err rp_device_open(rp_arena *arena, const rp_device_options *options,
                      rp_device **out) RP_MUST_CHECK;
/* The one with the fastest products of all that match: where there are several, each is opened and
 * measured first, the log has the figures, and one that fails at it is passed over. errors  as of
 * rp_device_open() */
rp_err rp_device_open_fastest(rp_arena *arena, const rp_device_options *options,
                              rp_device **out) RP_MUST_CHECK;
void rp_device_close(rp_device **device);
const rp_device_facts *rp_device_facts_of(const rp_device *device);
/* Which tuning.json is in force; lives as long as the device. */
const rp_tuning_origin *rp_device_tuning_origin(const rp_device *device);
/* Which implementation multiplies matrices here: a fact of the board (tuning.json). */
rp_gemm_choice rp_device_gemm(const rp_device *device);
void rp_device_choose_gemm(rp_device *device, rp_gemm_choice choice); /* tests and tune */

/* Start-up check: GEMM (the chosen one) at several shapes, transposes and tails against a CPU
 * result. errors NUMERIC with shape and values: CLBlast 1.5.3 is known to be wrong on some
 * devices. RP_TEST_BREAK_GEMM in the environment makes it fail. */
rp_err rp_device_selftest(rp_device *device) RP_MUST_CHECK;

/* ---- memory: arenas of device bytes, sealed before the step loop -------------------------- */

typedef struct rp_darena rp_darena;

/* limit_bytes 0: what the device has. `chunk_bytes` > 0: the arena takes that many bytes as one
 * buffer at once and hands out parts of it (contiguous, aligned to facts.align_bytes), 0: every
 * take is a buffer of its own. */
rp_err rp_darena_open(rp_arena *arena, rp_device *device, const char *name, size_t limit_bytes,
                      size_t chunk_bytes, rp_darena **out) RP_MUST_CHECK;
/* The same with a chunk that a spill to flash reads and writes where it lies, with no copy: of a
 * device whose memory is the host's, where a try has shown that both see the same bytes. Elsewhere
 * it is as any other. */
rp_err rp_darena_open_mapped(rp_arena *arena, rp_device *device, const char *name,
                             size_t chunk_bytes, rp_darena **out) RP_MUST_CHECK;
void rp_darena_close(rp_darena **arena); /* frees the buffers; accepts NULL inside */
/* Bytes are zeroed (enqueued). errors MEMORY naming arena, bytes asked, used, limit */
rp_err rp_darena_take(rp_darena *arena, size_t bytes, rp_buffer **out) RP_MUST_CHECK;
void rp_darena_seal(rp_darena *arena);
size_t rp_darena_used_bytes(const rp_darena *arena);
size_t rp_buffer_bytes(const rp_buffer *buffer);
/* The chunk as one buffer (for kernels that run over all parts at once). */
rp_buffer *rp_darena_whole(rp_darena *arena);
/* Sum of all live device bytes of our arenas, and its maximum since the last reset. */
size_t rp_device_used_bytes(const rp_device *device);
size_t rp_device_used_bytes_max(const rp_device *device);
void rp_device_reset_used_bytes_max(rp_device *device);
/* From here on a take fails with which used bytes would exceed `limit`; 0: with none, as at first.
 */
void rp_device_limit_bytes(rp_device *device, size_t limit);
/* What one take of `bytes` costs in a chunked arena: rounded up to the alignment. Pure. */
size_t rp_darena_round(size_t bytes, uint32_t align_bytes);

/* ---- queue -------------------------------------------------------------------------------- */

/* A point in the queue. Plain value; .done_ns is the host's monotonic time of completion. */
typedef struct rp_fence_state rp_fence_state;
typedef struct {
    rp_fence_state *state; /* from a fixed pool inside the device; NULL = already passed */
} rp_fence;

/* Enqueues a marker behind everything so far and flushes. The event's callback only writes to the
 * device's eventfd. Every fence must be released. */
rp_err rp_device_fence(rp_device *device, rp_fence *out) RP_MUST_CHECK;
/* *done; done_ns (may be NULL) valid when done. errors DEVICE when the work before it failed */
rp_err rp_fence_poll(const rp_fence *fence, bool *done, int64_t *done_ns) RP_MUST_CHECK;
void rp_fence_release(rp_fence *fence);
/* Readable when a fence has passed since it was last drained: for poll(). Read 8 bytes to drain. */
int rp_device_eventfd(const rp_device *device);
/* clFinish: tests, boot and shutdown only. */
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
