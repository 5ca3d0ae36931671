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
#ifndef RP_PLANNING_GAIN_ESTIMATOR_H
#define RP_PLANNING_GAIN_ESTIMATOR_H

#include "base/arena.h"

/* Entries that may still be asked for: one in effect, those to come, one that a fast stage is
 * ahead. */
enum { RP_GAIN_HISTORY = 6 };

typedef struct {
    uint64_t step; /* takes effect at the forward of this step */
    double *gain;  /* by parameter of the model */
} rp_gain_entry;

typedef struct {
    uint32_t params;
    rp_gain_entry history[RP_GAIN_HISTORY]; /* oldest first */
    uint32_t history_count;
    /* by parameter: smoothed <a, a> and <a, b> of the full prediction, probes left in fall-back */
    double *aa, *ab, *rest;
    double *next; /* gain that the last probe made */
} rp_gain_estimator;

rp_err rp_gain_estimator_open(rp_arena *arena, uint32_t params,
                              rp_gain_estimator *out) RP_MUST_CHECK;

/* As rp_gain_estimator_open() leaves it. */
void rp_gain_estimator_reset(rp_gain_estimator *estimator);

/* Sums of squares of one parameter's probe at `step`: of the error a - b, the stale error b, the
 * prediction a. */
typedef struct {
    double error, stale, predicted;
} rp_gain_sample;
/* Whether a probe of `step` can take effect at `effect`: behind it, and a step that a checkpoint
 * can hold. What a board says is asked this first. */
bool rp_gain_estimator_may_take_effect(uint64_t step, uint64_t effect);

/* Gives the gain that is in effect from the forward of step `effect` on. The probes of a parameter
 * come in order; those of different stages may overtake each other. */
double rp_gain_estimator_add(rp_gain_estimator *estimator, uint64_t step, uint64_t effect,
                             uint32_t param, const rp_gain_sample *probe);

/* The state as doubles, for checkpoints: rp_gain_estimator_size() of them. */
size_t rp_gain_estimator_size(const rp_gain_estimator *estimator);
void rp_gain_estimator_pack(const rp_gain_estimator *estimator, double *out);
/* `name` of the file they come from. errors FORMAT when no estimator makes such numbers */
rp_err rp_gain_estimator_unpack(rp_gain_estimator *estimator, const char *name,
                                const double *in) RP_MUST_CHECK;

#endif
