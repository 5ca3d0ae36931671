/* Boards that have left the ring: while it is at work they are greeted in the background, and at a
 * pause those that answer may join it again. Which of them do is the caller's decision. */
#ifndef RP_RING_REJOIN_H
#define RP_RING_REJOIN_H

#include "ring/ring.h"

/* `count` boards have left. The ring grows again after ring.wait at the earliest. With every board
 * that leaves this time doubles, so boards that come and go cost it less and less. */
void rp_rejoin_note_left(rp_ring *ring, uint32_t count);
/* Whether the ring is smaller than it was at first, and may grow now. */
bool rp_rejoin_is_wanted(const rp_ring *ring);
/* Call it in each round. `looks`: the ring is at work, and boards may join it at a pause: greets
 * boards that are away, and notes which answer; else forgets all answers. `ping`: a heartbeat is
 * due. A board that fails is tried again later: that is no fault of the ring. */
void rp_rejoin_step(rp_ring *ring, bool looks, bool ping);
/* Closes all links to boards that are away, and forgets their answers. */
void rp_rejoin_close(rp_ring *ring);
/* Whether this entry of the roster has answered, and could join. `name` is the roster's pointer. */
bool rp_rejoin_has_answered(const rp_ring *ring, const char *name);
/* Boards that can join now. */
uint32_t rp_rejoin_count_ready(const rp_ring *ring);
/* The board of the roster at place `at` has joined: rp_ring_join(), counted for the summary. */
void rp_rejoin_take(rp_ring *ring, uint32_t at);

#endif
