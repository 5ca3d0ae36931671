/* Shared by the files of this room. */
#ifndef RP_RING_RING_OWN_H
#define RP_RING_RING_OWN_H

#include "ring/ring.h"

/* Asserts the invariants of an open ring; cheap enough for every round. */
void rp_ring_check(const rp_ring *ring);

/* queue.c: frees and forgets the board's queued messages. */
void rp_queue_drop(rp_board_state *board);
/* Sends the board's queue as far as its link has room.
 * errors TIMEOUT: a message has waited for rp_ring_patience_ns(); those of rp_link_send() */
rp_err rp_queue_flush(rp_ring *ring, uint32_t board) RP_MUST_CHECK;
/* When the first message of a queue will have waited too long; INT64_MAX: the queue is empty. */
int64_t rp_queue_deadline_ns(const rp_ring *ring, const rp_board_state *board);

/* watch.c: the board was heard before, but not for RP_RING_SILENT_NS. */
bool rp_watch_is_silent(const rp_ring *ring, const rp_board_state *board);
/* The board needs a new control link when the ring is reset. */
bool rp_watch_is_lost(const rp_ring *ring, const rp_board_state *board);

#endif
