/* Who dials this host and is kept out. Each finding is an event of the log, so that a person can
 * mend it. It is repeated once a minute while it lasts. */
#ifndef RP_RING_KEPT_OUT_H
#define RP_RING_KEPT_OUT_H

#include "record/record.h"
#include "ring/ring.h"

/* Event "twins": two boards have the same key, as a copied SD card makes them. The host serves one
 * of them. record NULL: nothing is reported. `step`: of the event. errors  those of the record */
rp_err rp_twins_look(rp_ring *ring, rp_record *record, uint64_t step) RP_MUST_CHECK;
/* Event "refused": a key that no board of the roster has dials this host. A board that has made
 * another key would be waited for in vain. Arguments and errors as rp_twins_look() */
rp_err rp_strangers_look(rp_ring *ring, rp_record *record, uint64_t step) RP_MUST_CHECK;

#endif
