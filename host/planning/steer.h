/* Control of predictions: computes the prediction gain of each parameter tensor from what probes
 * measured. Pure: the same probes give the same gains, and a gain takes effect at a step that is
 * fixed beforehand, so such a run repeats itself whatever the links do.
 *
 *   a = predicted move, b = true move of a tensor between a forward and its backward.
 *   The share of the full prediction that would have been best is used * <a, b> / <a, a>, where
 *   `used` is the gain that a was made with; <a, b> = (|a|^2 + |b|^2 - |a - b|^2) / 2.
 *
 * Sums are smoothed over probes; gain lies in [0, 1]. A tensor whose prediction points the wrong
 * way falls back to the current weights (gain 0) for some probes and is then tried again at one
 * half. METHODS 5 has no such rule: it is ours. */
#ifndef RP_PLANNING_STEER_H
#define RP_PLANNING_STEER_H

#include "base/arena.h"

/* Entries that may still be asked for: one in effect, those to come, one that a fast stage is
 * ahead. */
enum { RP_STEER_HISTORY = 6 };

typedef struct {
    uint64_t step; /* takes effect at the forward of this step */
    double *gain;  /* by parameter of the model */
} rp_steer_entry;

typedef struct {
    uint32_t params;
    rp_steer_entry history[RP_STEER_HISTORY]; /* oldest first */
    uint32_t history_count;
    /* by parameter: smoothed <a, a> and <a, b> of the full prediction, probes left in fall-back */
    double *aa, *ab, *rest;
    double *next; /* gain that the last probe made */
} rp_steer;

rp_err rp_steer_open(rp_arena *arena, uint32_t params, rp_steer *out) RP_MUST_CHECK;

/* Sums of squares of one parameter's probe at `step`: of the error a - b, the stale error b, the
 * prediction a. */
typedef struct {
    double error, stale, predicted;
} rp_steer_probe;
/* Whether a probe of `step` can take effect at `effect`: behind it, and a step that a checkpoint
 * can hold. What a board says is asked this first. */
bool rp_steer_may_take_effect(uint64_t step, uint64_t effect);

/* Gives the gain that is in effect from the forward of step `effect` on. The probes of a parameter
 * come in order; those of different stages may overtake each other. */
double rp_steer_add(rp_steer *steer, uint64_t step, uint64_t effect, uint32_t param,
                    const rp_steer_probe *probe);

/* The state as doubles, for checkpoints: rp_steer_size() of them. */
size_t rp_steer_size(const rp_steer *steer);
void rp_steer_pack(const rp_steer *steer, double *out);
/* `name` of the file they come from. errors FORMAT when steering can not have made the numbers */
rp_err rp_steer_unpack(rp_steer *steer, const char *name, const double *in) RP_MUST_CHECK;

#endif
