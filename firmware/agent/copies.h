/* Copies in memory of what a board's stages hold at a step: its own copies, and those that it keeps
 * for neighbours, so that a lost board costs only the steps since the last copy (ring.copy_steps).
 *
 * A copy is the sequence of messages that a save would send. For the board that keeps it for
 * another, it is just bytes; they are checked when they are read. */
#ifndef RP_AGENT_COPIES_H
#define RP_AGENT_COPIES_H

#include "plan/plan.h"
#include "wire/frame.h"

/* For the last step and the one before: own copies, and those of each neighbour. */
enum { RP_COPIES_MAX = 2 * (1 + RP_PLAN_NEIGHBOURS_MAX), RP_COPY_MESSAGE_BYTES = 512 };

typedef struct {
    rp_run_identity run; /* run and term in which it was made; id 0: a free entry */
    uint64_t step;
    uint32_t node;  /* of that term's plan: the node whose state it is */
    uint8_t *bytes; /* `room` bytes are allocated, `got` are present */
    size_t room, got;
    bool is_whole, is_told; /* complete, and reported as such to the host */
} rp_copy;

typedef struct {
    rp_copy copy[RP_COPIES_MAX];
} rp_copies;

/* NULL if there is no such copy. */
rp_copy *rp_copies_find(rp_copies *copies, rp_run_identity run, uint64_t step, uint32_t node);
/* Begins an empty copy with room for `room` bytes, and for at least one message.
 * errors  MEMORY, LIMIT */
rp_err rp_copies_begin(rp_copies *copies, rp_run_identity run, uint64_t step, uint32_t node,
                       size_t room, rp_copy **out) RP_MUST_CHECK;
/* Drops all copies except those of the run's term and of step `keep`; 0: keeps no other step. */
void rp_copies_drop_others(rp_copies *copies, rp_run_identity run, uint64_t keep);
void rp_copies_drop(rp_copies *copies);

/* Most bytes that a message with such a part needs in a copy. */
static inline size_t rp_copy_room(size_t part_bytes) {
    return part_bytes + RP_COPY_MESSAGE_BYTES;
}
/* Appends a message. errors LIMIT: no room; those of rp_frame_encode() */
rp_err rp_copy_add(rp_copy *copy, rp_Frame *frame, const rp_part *part) RP_MUST_CHECK;
/* Appends bytes of another board's copy, which has `room` in all; `count` may be 0 only if `room`
 * is. errors PEER: not the next bytes */
rp_err rp_copy_add_bytes(rp_copy *copy, uint64_t first, const void *bytes,
                         size_t count) RP_MUST_CHECK;
/* Reads the message at *at of a complete copy and advances *at; the part is borrowed from the copy.
 * errors  FORMAT: not messages of a save, or not as they were written */
rp_err rp_copy_next(const rp_copy *copy, size_t *at, rp_Frame *frame, rp_part *part) RP_MUST_CHECK;

#endif
