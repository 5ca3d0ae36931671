/* Which memory of the executor holds which samples: bookkeeping only. A slot holds what a forward
 * saved until all of its samples have had their backward, in one op or in parts; a deferred weight
 * gradient is held the same way, from the gradient of the input to that of the weights. */
#ifndef RP_STAGE_SLOTS_H
#define RP_STAGE_SLOTS_H

#include "sched/sched.h"

#define RP_NO_SLOT UINT32_MAX

typedef struct {
    bool busy, evaluating;
    uint64_t step;
    rp_range samples;
    uint32_t left; /* samples that still need the memory */
} rp_slot;

typedef struct {
    rp_slot *slot;
    uint32_t count;
} rp_slots;

/* The stash of an op: its samples are sample `first` of a slot and behind. */
typedef struct {
    uint32_t slot, first;
    bool whole; /* the op has all of the slot's samples */
} rp_stash;

void rp_slots_clear(rp_slots *slots);
/* The first free one becomes the op's; RP_NO_SLOT when there is none. */
uint32_t rp_slots_take(rp_slots *slots, const rp_op *op, bool evaluating);
/* A slot for samples `range` of the op's step, which has the op's: the one that an op before has
 * taken for them, or a free one. .slot RP_NO_SLOT when there is none. */
rp_stash rp_slots_place(rp_slots *slots, const rp_op *op, bool evaluating, rp_range range);
/* The slot that has all of the op's samples; .slot RP_NO_SLOT when none has. */
rp_stash rp_slots_find(const rp_slots *slots, const rp_op *op, bool evaluating);
/* The op's samples are done with; with the last of them the slot is free. */
void rp_slots_release(rp_slots *slots, uint32_t slot, const rp_op *op);

#endif
