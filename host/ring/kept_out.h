/* Boards and keys that dial this host and are refused. Each one is logged as an event, so that the
 * user can act, and again once a minute while it lasts. */
#ifndef RP_RING_KEPT_OUT_H
#define RP_RING_KEPT_OUT_H

#include "record/record.h"
#include "ring/ring.h"

/* Logs "twins": two boards have the same key, for example because an SD card was copied. The
 * host serves one of them. record NULL: does nothing. `step`: of the event. errors those of the
 * record */
rp_err rp_twins_look(rp_ring *ring, rp_record *record, uint64_t step) RP_MUST_CHECK;
/* Logs "refused": a key that is not in the roster dials this host. A board that made a new key
 * would otherwise be awaited in vain. Arguments and errors as rp_twins_look() */
rp_err rp_strangers_look(rp_ring *ring, rp_record *record, uint64_t step) RP_MUST_CHECK;

#endif
