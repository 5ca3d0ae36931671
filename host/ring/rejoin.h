/* Boards that have left the ring. While the ring trains they are greeted in the background; at a
 * pause those that answer may rejoin, as the caller decides. */
#ifndef RP_RING_REJOIN_H
#define RP_RING_REJOIN_H

#include "ring/ring.h"

/* `count` boards have left. The ring may grow again after ring.wait. Every board that leaves
 * doubles this time, so unstable boards cost less and less. */
void rp_rejoin_note_left(rp_ring *ring, uint32_t count);
/* The ring is smaller than at the start of the run, and may grow now. */
bool rp_rejoin_is_wanted(const rp_ring *ring);
/* Call it in each round. `looks`: boards may join at a pause: greets boards that have left, and
 * notes which of them answer; else forgets all answers. `ping`: a heartbeat is due. If a board
 * fails it is tried again later; this is no fault of the ring. */
void rp_rejoin_step(rp_ring *ring, bool looks, bool ping);
/* Closes all links to boards that have left, and forgets their answers. */
void rp_rejoin_close(rp_ring *ring);
/* This board of the roster has answered and could rejoin. `name` is the roster's pointer. */
bool rp_rejoin_has_answered(const rp_ring *ring, const char *name);
/* Number of boards that can rejoin now. */
uint32_t rp_rejoin_count_ready(const rp_ring *ring);
/* Takes the board at place `at` of the roster into the ring: rp_ring_join(), counted for the
 * summary. */
void rp_rejoin_take(rp_ring *ring, uint32_t at);

#endif
