/* Who of a roster is there, however many boards it has: what costs time is waited for together. No
 * links between boards are tried, and no run is disturbed. */
#ifndef RP_REACH_FLEET_H
#define RP_REACH_FLEET_H

#include "reach/reach.h"

enum { RP_FLEET_AT_ONCE = 256 }; /* boards that are greeted together, but for those that dial */

typedef struct {
    rp_reach_board *board; /* in the order of the roster */
    uint64_t strangers;
    uint32_t waits; /* ends of a time that were waited for, one after the other */
} rp_fleet;

/* Addresses that take no connection within wait_ns are out at once, all of them together; the
 * others are greeted, RP_FLEET_AT_ONCE together and for wait_ns at most. So it takes at most
 * wait_ns (1 + the number of such boards / RP_FLEET_AT_ONCE, rounded up); less room for files makes
 * fewer together.
 * errors  those of rp_link_open(), MEMORY; INTERRUPTED: `stopped`, which is asked now and then */
rp_err rp_fleet_look(rp_arena *arena, const rp_reach_options *options, int64_t wait_ns,
                     bool (*stopped)(void *context), void *context, rp_fleet *out) RP_MUST_CHECK;

#endif
