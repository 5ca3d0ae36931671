/* Copies in memory of what a board's stages hold at a step: its own, and those that it keeps for
 * neighbours, so that a lost board costs the steps since the last copy (ring.copy_steps).
 *
 * A copy is the messages of a save, one behind the other, as whoever asks for it gets them. To the
 * board that keeps it for another it is bytes; they are checked when they are read. */
#ifndef RP_AGENT_COPIES_H
#define RP_AGENT_COPIES_H

#include "plan/plan.h"
#include "wire/frame.h"

/* Of the last step and of the one before: the own ones, and of each neighbour. */
enum { RP_COPIES_MAX = 2 * (1 + RP_PLAN_NEIGHBOURS_MAX), RP_COPY_MESSAGE_BYTES = 512 };

typedef struct {
    rp_run_identity run; /* in whose term it was made; id 0: a free place */
    uint64_t step;
    uint32_t node;  /* of that term's plan: whose state it is */
    uint8_t *bytes; /* `room` of them, `got` are there */
    size_t room, got;
    bool is_whole, is_told; /* the host has heard that it is */
} rp_copy;

typedef struct {
    rp_copy copy[RP_COPIES_MAX];
} rp_copies;

/* NULL: there is none. */
rp_copy *rp_copies_find(rp_copies *copies, rp_run_identity run, uint64_t step, uint32_t node);
/* An empty one, with room for so many bytes, and for one message at least. errors MEMORY, LIMIT */
rp_err rp_copies_begin(rp_copies *copies, rp_run_identity run, uint64_t step, uint32_t node,
                       size_t room, rp_copy **out) RP_MUST_CHECK;
/* All but those of the run's term and of step `keep`; 0: all. */
void rp_copies_drop_others(rp_copies *copies, rp_run_identity run, uint64_t keep);
void rp_copies_drop(rp_copies *copies);

/* Bytes that a message with such a part has in a copy, at most. */
static inline size_t rp_copy_room(size_t part_bytes) {
    return part_bytes + RP_COPY_MESSAGE_BYTES;
}
/* Appends a message. errors LIMIT: it has no room; those of rp_frame_encode() */
rp_err rp_copy_add(rp_copy *copy, rp_Frame *frame, const rp_part *part) RP_MUST_CHECK;
/* Appends bytes of somebody's copy, which has `room` in all; none only where that is 0.
 * errors  PEER: not the next ones */
rp_err rp_copy_add_bytes(rp_copy *copy, uint64_t first, const void *bytes,
                         size_t count) RP_MUST_CHECK;
/* The message at *at of a whole copy, and moves *at behind it; the part is borrowed from the copy.
 * errors FORMAT: these are no messages of a save, or not as they were written */
rp_err rp_copy_next(const rp_copy *copy, size_t *at, rp_Frame *frame, rp_part *part) RP_MUST_CHECK;

#endif
