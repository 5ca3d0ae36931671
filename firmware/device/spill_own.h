/* Private to spill.c and spill_flash.c: a spill whose entries are on flash. */
#ifndef RP_DEVICE_SPILL_OWN_H
#define RP_DEVICE_SPILL_OWN_H

#include <CL/cl.h>
#include <stdbool.h>

#include "device/device_own.h"
#include "device/spill.h"

enum {
    RP_SPILL_LEAVING,
    RP_SPILL_ARRIVING,
    RP_SPILL_WAYS,
    RP_SPILL_WAITS_MAX = 4,
    RP_SPILL_JOBS_MAX = 1024 /* most pieces of entries in flight in each direction */
};

typedef struct rp_spill_flash rp_spill_flash;

/* There is one queue for each direction.
 * errors  as of rp_flash_open(); IO: no thread can be started */
rp_err rp_spill_flash_open(rp_arena *arena, rp_device *device, cl_command_queue *queue,
                           uint32_t entries, size_t entry_bytes, const char *folder,
                           rp_spill_flash **out) RP_MUST_CHECK;
/* Waits for its jobs. Accepts a pointer to NULL. */
void rp_spill_flash_close(rp_spill_flash **flash);

/* Copies the buffer to the entry, or the entry to the buffer, after all of `wait`; `*done`: the
 * buffer is free, or filled. The event also passes after a failure, which rp_spill_flash_check()
 * reports first. errors LIMIT: too many in flight; DEVICE */
rp_err rp_spill_flash_put(rp_spill_flash *flash, uint32_t way, const rp_buffer *buffer,
                          uint32_t entry, const cl_event *wait, uint32_t waits,
                          cl_event *done) RP_MUST_CHECK;

/* errors  DEVICE: a job has failed, with its message */
rp_err rp_spill_flash_check(rp_spill_flash *flash) RP_MUST_CHECK;
/* Waits for the threads but not for the queues. errors TIMEOUT */
rp_err rp_spill_flash_drain(rp_spill_flash *flash) RP_MUST_CHECK;
/* After draining: copies bytes of an entry from the file (`out`) or to it (`in`); exactly one of
 * them is not NULL. */
rp_err rp_spill_flash_move(rp_spill_flash *flash, uint32_t entry, size_t at, size_t bytes,
                           const char *in, char *out) RP_MUST_CHECK;
uint64_t rp_spill_flash_written(rp_spill_flash *flash);

#endif
