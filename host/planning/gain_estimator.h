/* `horizon: measured`: computes the prediction gain of each parameter tensor from prediction-error
 * samples, which are called probes here. Pure: the same probes give the same gains. A gain takes
 * effect at a step that is fixed in advance, so a run can be repeated whatever its links do.
 *
 *   a = predicted change, b = true change of a tensor between a forward and its backward.
 *   The best fraction of the full prediction is used * <a, b> / <a, a>, where `used` is the gain
 *   with which a was computed; <a, b> = (|a|^2 + |b|^2 - |a - b|^2) / 2.
 *
 * Both products are smoothed over probes, and the gain is limited to [0, 1]. If a tensor's
 * prediction points in the wrong direction, its gain is 0 for some probes (fall-back) and then 1/2.
 * METHODS 5 has no such rule; it is ours. */
#ifndef RP_PLANNING_GAIN_ESTIMATOR_H
#define RP_PLANNING_GAIN_ESTIMATOR_H

#include "base/arena.h"

/* Entries that may still be needed: the one in effect, those after it, and one because a fast stage
 * may be a step further. */
enum { RP_GAIN_HISTORY = 6 };

typedef struct {
    uint64_t step; /* the forward of this step is the first with these gains */
    double *gain;  /* by parameter of the model */
} rp_gain_entry;

typedef struct {
    uint32_t params;
    rp_gain_entry history[RP_GAIN_HISTORY]; /* oldest first */
    uint32_t history_count;
    double *aa, *ab; /* by parameter: smoothed <a, a> and <a, b> of the full prediction */
    double *rest;    /* by parameter: probes left in fall-back; 0: not in fall-back */
    double *next;    /* by parameter: gain from the latest probe */
} rp_gain_estimator;

rp_err rp_gain_estimator_open(rp_arena *arena, uint32_t params,
                              rp_gain_estimator *out) RP_MUST_CHECK;

/* Returns to the state after rp_gain_estimator_open(). */
void rp_gain_estimator_reset(rp_gain_estimator *estimator);

/* Sums of squares of one parameter's probe at `step`: of the error a - b, the stale error b, the
 * prediction a. */
typedef struct {
    double error, stale, predicted;
} rp_gain_sample;
/* Whether a probe of `step` may take effect at `effect`: a later step that a checkpoint can store.
 * Values from boards are checked with this. */
bool rp_gain_estimator_may_take_effect(uint64_t step, uint64_t effect);

/* Adds a probe, and returns the gain that is in effect from the forward of step `effect` on. The
 * probes of a parameter come in order; probes of different stages may overtake each other. */
double rp_gain_estimator_add(rp_gain_estimator *estimator, uint64_t step, uint64_t effect,
                             uint32_t param, const rp_gain_sample *probe);

/* The state as rp_gain_estimator_size() doubles, for checkpoints. */
size_t rp_gain_estimator_size(const rp_gain_estimator *estimator);
void rp_gain_estimator_pack(const rp_gain_estimator *estimator, double *out);
/* `name`: the file of the numbers. errors  FORMAT: not a possible state */
rp_err rp_gain_estimator_unpack(rp_gain_estimator *estimator, const char *name,
                                const double *in) RP_MUST_CHECK;

#endif
