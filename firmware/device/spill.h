/* Copies between a device's memory and the host's, or flash, that go on beside the device's work:
 * two queues of their own, one a way, and room for a number of entries, taken once. Work on the
 * device's queue waits for a copy, and a copy for work, by events: nothing here waits. */
#ifndef RP_DEVICE_SPILL_H
#define RP_DEVICE_SPILL_H

#include "device/device.h"

typedef struct rp_spill rp_spill;

/* A point in one of the queues; zero = it has passed. Each is released once. */
typedef struct {
    void *event;
} rp_event;
rp_event rp_event_copy(const rp_event *of); /* released for itself */
void rp_event_release(rp_event *event);     /* and zero from there on */

/* `folder`: for a file with the entries on flash (flash.h), which a thread a way reads and writes;
 * NULL: they lie in the host's memory. errors  MEMORY with the bytes; DEVICE; USAGE, LIMIT, IO: of
 * the folder */
rp_err rp_spill_open(rp_arena *arena, rp_device *device, uint32_t entries, size_t entry_bytes,
                     const char *folder, rp_spill **out) RP_MUST_CHECK;
void rp_spill_close(rp_spill **spill); /* waits for its copies; accepts NULL inside */

/* Behind everything on the device's queue so far. */
rp_err rp_spill_point(rp_spill *spill, rp_event *out) RP_MUST_CHECK;
/* Work that is enqueued on the device's queue from here on begins behind `event`. */
rp_err rp_spill_await(rp_spill *spill, const rp_event *event) RP_MUST_CHECK;

/* An entry becomes what the buffer is behind `after`. Both have entry_bytes at least. */
rp_err rp_spill_leave(rp_spill *spill, const rp_buffer *from, uint32_t entry, const rp_event *after,
                      rp_event *done) RP_MUST_CHECK;
/* The buffer becomes the entry, behind all of `after`. */
rp_err rp_spill_arrive(rp_spill *spill, rp_buffer *to, uint32_t entry, const rp_event *const *after,
                       uint32_t after_count, rp_event *done) RP_MUST_CHECK;

/* What has passed behind a copy that failed has read other bytes than those that left: ask this
 * behind every point that has passed. errors  DEVICE: reading or writing flash failed, with what
 * the system said */
rp_err rp_spill_check(rp_spill *spill) RP_MUST_CHECK;

/* Between segments: waits for all copies. errors  DEVICE, as of check; TIMEOUT */
rp_err rp_spill_drain(rp_spill *spill) RP_MUST_CHECK;
/* Drained: bytes of an entry to `out`, or from `in`; the other one is NULL. errors  DEVICE */
rp_err rp_spill_move(rp_spill *spill, uint32_t entry, size_t at, size_t bytes, const char *in,
                     char *out) RP_MUST_CHECK;
/* To flash, so far. */
uint64_t rp_spill_written_bytes(rp_spill *spill);

#endif
