/* What the ring's files share. */
#ifndef RP_RING_RING_OWN_H
#define RP_RING_RING_OWN_H

#include "ring/ring.h"

/* Invariants of a ring that is open; cheap enough for every round. */
void rp_ring_check(const rp_ring *ring);

/* queue.c: frees and forgets all messages that wait for the board. */
void rp_queue_drop(rp_board_state *board);
/* Sends what waits for the board, as far as its link has room.
 * errors  TIMEOUT: a message has waited for rp_ring_patience_ns(); those of rp_link_send() */
rp_err rp_queue_flush(rp_ring *ring, uint32_t board) RP_MUST_CHECK;
/* The time at which the first message of a queue has waited for too long; INT64_MAX: none waits. */
int64_t rp_queue_deadline_ns(const rp_ring *ring, const rp_board_state *board);

/* watch.c: was heard before, but not for RP_RING_SILENT_NS. */
bool rp_watch_is_silent(const rp_ring *ring, const rp_board_state *board);
/* Needs a new control link when the ring is reset. */
bool rp_watch_is_lost(const rp_ring *ring, const rp_board_state *board);

#endif
