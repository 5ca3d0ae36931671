/* When a codec that remembers samples (codec/codec.h) has remembered all of them. */
#ifndef RP_SCHED_CHANGES_H
#define RP_SCHED_CHANGES_H

#include "sched/sched.h"

/* The first step whose activations are sent as changes, in a run that began at step `start` with
 * nothing remembered: the step after the first complete epoch. It depends on the start alone, so
 * both ends of a hop and the host compute the same step. */
static inline uint64_t rp_sched_change_from(const rp_sched_shape *shape, uint64_t start) {
    const uint64_t epoch = rp_sched_epoch_steps(shape);
    return ((start + epoch - 1) / epoch + 1) * epoch;
}

#endif
