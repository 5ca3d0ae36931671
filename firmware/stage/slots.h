/* Which memory of the executor holds which samples: bookkeeping only. A slot holds what a forward
 * saved until all its samples have had their backward, in one op or in parts. A deferred slot holds
 * gradients in the same way, from the input half to the weight half of a backward. */
#ifndef RP_STAGE_SLOTS_H
#define RP_STAGE_SLOTS_H

#include "sched/sched.h"

#define RP_NO_SLOT UINT32_MAX

typedef struct {
    bool busy, evaluating;
    uint64_t step;
    rp_range samples;
    uint32_t left; /* samples that still need the memory */
    bool has_time; /* `time` is known */
    uint32_t time; /* tokens of a sample, see rp_model_view */
} rp_slot;

typedef struct {
    rp_slot *slot;
    uint32_t count;
} rp_slots;

/* Position of an op's samples: they begin at sample `first` of the slot. */
typedef struct {
    uint32_t slot, first;
    bool whole; /* the op has all of the slot's samples */
} rp_stash;

void rp_slots_clear(rp_slots *slots);
/* Takes the first free slot for the op's samples; RP_NO_SLOT if none is free. */
uint32_t rp_slots_take(rp_slots *slots, const rp_op *op, bool evaluating);
/* Finds the slot that an earlier op took for the samples `range` of the step, or takes a free one;
 * `range` includes the op's samples. .slot is RP_NO_SLOT if none is free. */
rp_stash rp_slots_place(rp_slots *slots, const rp_op *op, bool evaluating, rp_range range);
/* The slot that holds all samples of the op; .slot is RP_NO_SLOT if there is no such slot. */
rp_stash rp_slots_find(const rp_slots *slots, const rp_op *op, bool evaluating);
/* Sets the tokens of a sample in a slot. false: the slot has samples of another length. */
bool rp_slots_set_time(rp_slots *slots, uint32_t slot, uint32_t time);
/* The op's samples no longer need the slot; it becomes free with the last of its samples. */
void rp_slots_release(rp_slots *slots, uint32_t slot, const rp_op *op);

#endif
