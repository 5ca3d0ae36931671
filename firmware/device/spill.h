/* Copies between a device's memory and the host's, or flash, in parallel with the device's work:
 * one queue for each direction, and space for a number of entries, allocated once. Work on the
 * device's queue and copies wait for each other by events: no function here blocks. */
#ifndef RP_DEVICE_SPILL_H
#define RP_DEVICE_SPILL_H

#include "device/device.h"

typedef struct rp_spill rp_spill;

/* A point in one of the queues; zero = it has passed. Release each exactly once. */
typedef struct {
    void *event;
} rp_event;
rp_event rp_event_copy(const rp_event *of); /* must also be released */
void rp_event_release(rp_event *event);     /* and zeroes it */

/* `folder`: for a file with the entries on flash (flash.h), accessed by one thread for each
 * direction; NULL: the entries are in the host's memory.
 * errors  MEMORY with the bytes; DEVICE; USAGE, LIMIT, IO: of the folder */
rp_err rp_spill_open(rp_arena *arena, rp_device *device, uint32_t entries, size_t entry_bytes,
                     const char *folder, rp_spill **out) RP_MUST_CHECK;
void rp_spill_close(rp_spill **spill); /* waits for its copies; accepts a pointer to NULL */

/* The point after all commands so far on the device's queue. */
rp_err rp_spill_point(rp_spill *spill, rp_event *out) RP_MUST_CHECK;
/* Commands enqueued later on the device's queue start after `event`. */
rp_err rp_spill_await(rp_spill *spill, const rp_event *event) RP_MUST_CHECK;

/* Copies the buffer to an entry, after `after`. Both have at least entry_bytes. */
rp_err rp_spill_leave(rp_spill *spill, const rp_buffer *from, uint32_t entry, const rp_event *after,
                      rp_event *done) RP_MUST_CHECK;
/* Copies an entry to the buffer, after all of `after`. */
rp_err rp_spill_arrive(rp_spill *spill, rp_buffer *to, uint32_t entry, const rp_event *const *after,
                       uint32_t after_count, rp_event *done) RP_MUST_CHECK;

/* Reports a failed copy. A point after it may have passed with wrong bytes, so call this after
 * every point that has passed.
 * errors  DEVICE: reading or writing flash failed, with the system's message */
rp_err rp_spill_check(rp_spill *spill) RP_MUST_CHECK;

/* Between segments: waits for all copies. errors DEVICE, as of check; TIMEOUT */
rp_err rp_spill_drain(rp_spill *spill) RP_MUST_CHECK;
/* After draining: copies bytes of an entry to `out`, or from `in`; exactly one of them is not NULL.
 * errors  DEVICE */
rp_err rp_spill_move(rp_spill *spill, uint32_t entry, size_t at, size_t bytes, const char *in,
                     char *out) RP_MUST_CHECK;
/* Bytes written to flash so far. */
uint64_t rp_spill_written_bytes(rp_spill *spill);

#endif
