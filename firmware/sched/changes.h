/* When a codec that remembers samples (codec/codec.h) has all of them. */
#ifndef RP_SCHED_CHANGES_H
#define RP_SCHED_CHANGES_H

#include "sched/sched.h"

/* The first step whose activations are sent as changes, of a run that began with nothing remembered
 * at step `start`: behind the first epoch of which it has every step. So it follows from the start
 * alone, at both ends of a hop and at the host. */
static inline uint64_t rp_sched_change_from(const rp_sched_shape *shape, uint64_t start) {
    const uint64_t epoch = rp_sched_epoch_steps(shape);
    return ((start + epoch - 1) / epoch + 1) * epoch;
}

#endif
