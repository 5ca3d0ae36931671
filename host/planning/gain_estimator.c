#include "planning/gain_estimator.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double SMOOTHING = 0.8; /* weight of earlier probes in a smoothed product */
static const double REST = 8;        /* probes in fall-back */
static const double RETRY = 0.5;     /* gain after fall-back */
static const double STEP_MAX = 9e15; /* doubles represent all integers up to this */

rp_err rp_gain_estimator_open(rp_arena *arena, uint32_t params, rp_gain_estimator *out) {
    rp_err err;
    double *all;
    *out = (rp_gain_estimator){.params = params};
    RP_TRY(RP_ARENA_NEW(arena, (size_t)params * (4 + RP_GAIN_HISTORY) + 1, &all));
    out->aa = all;
    out->ab = out->aa + params;
    out->rest = out->ab + params;
    out->next = out->rest + params;
    for (uint32_t h = 0; h < RP_GAIN_HISTORY; h++) {
        out->history[h].gain = out->next + (size_t)params * (1 + h);
    }
    rp_gain_estimator_reset(out);
fail:
    return err;
}

void rp_gain_estimator_reset(rp_gain_estimator *estimator) {
    estimator->history_count = 0;
    memset(estimator->aa, 0, 3 * (size_t)estimator->params * sizeof(double)); /* aa, ab, rest */
    for (uint32_t p = 0; p < estimator->params; p++) {
        estimator->next[p] = 1;
    }
}

/* The gain with which the forward of `step` was predicted. */
static double gain_at(const rp_gain_estimator *estimator, uint64_t step, uint32_t param) {
    double gain = 1;
    for (uint32_t h = 0; h < estimator->history_count; h++) {
        if (estimator->history[h].step <= step) {
            gain = estimator->history[h].gain[param];
        }
    }
    return gain;
}

static void learn_gain(rp_gain_estimator *estimator, uint32_t param, double used,
                       const rp_gain_sample *probe) {
    const double product = (probe->predicted + probe->stale - probe->error) / 2;
    if (estimator->rest[param] > 0) {
        estimator->rest[param] -= 1;
        estimator->next[param] = estimator->rest[param] > 0 ? 0 : RETRY;
        return;
    }
    if (!isfinite(product) || !(probe->predicted > 0) || !(used > 0)) {
        return; /* nothing was predicted, so nothing is learnt */
    }
    const double keep = estimator->aa[param] > 0 ? SMOOTHING : 0;
    estimator->aa[param] =
        keep * estimator->aa[param] + (1 - keep) * probe->predicted / (used * used);
    estimator->ab[param] = keep * estimator->ab[param] + (1 - keep) * product / used;
    const double best = estimator->ab[param] / estimator->aa[param];
    const bool good = best > 0 && isfinite(estimator->ab[param]); /* not NaN, and no overflow */
    estimator->next[param] = !good ? 0 : best > 1 ? 1 : best;
    if (!good) {
        estimator->rest[param] = REST;
        estimator->aa[param] = estimator->ab[param] = 0;
    }
}

/* The entry of a step; the first stage that reports creates it. Entries for later steps are from
 * before a resume, when the run probed less often. */
static rp_gain_entry *entry_at(rp_gain_estimator *estimator, uint64_t effect) {
    for (uint32_t h = 0; h < estimator->history_count; h++) {
        if (estimator->history[h].step == effect) {
            return &estimator->history[h];
        }
    }
    while (estimator->history_count > 0 &&
           estimator->history[estimator->history_count - 1].step > effect) {
        estimator->history_count--;
    }
    if (estimator->history_count == RP_GAIN_HISTORY) {
        double *oldest = estimator->history[0].gain;
        memmove(estimator->history, estimator->history + 1,
                (RP_GAIN_HISTORY - 1) * sizeof *estimator->history);
        estimator->history[RP_GAIN_HISTORY - 1].gain = oldest;
        estimator->history_count--;
    }
    rp_gain_entry *entry = &estimator->history[estimator->history_count++];
    entry->step = effect;
    memcpy(entry->gain, estimator->next, estimator->params * sizeof *entry->gain);
    return entry;
}

bool rp_gain_estimator_may_take_effect(uint64_t step, uint64_t effect) {
    return effect > step && (double)effect <= STEP_MAX;
}

double rp_gain_estimator_add(rp_gain_estimator *estimator, uint64_t step, uint64_t effect,
                             uint32_t param, const rp_gain_sample *probe) {
    learn_gain(estimator, param, gain_at(estimator, step, param), probe);
    rp_gain_entry *entry = entry_at(estimator, effect);
    entry->gain[param] = estimator->next[param];
    return entry->gain[param];
}

size_t rp_gain_estimator_size(const rp_gain_estimator *estimator) {
    return 1 + RP_GAIN_HISTORY + (size_t)estimator->params * (4 + RP_GAIN_HISTORY);
}

void rp_gain_estimator_pack(const rp_gain_estimator *estimator, double *out) {
    *out++ = estimator->history_count;
    for (uint32_t h = 0; h < RP_GAIN_HISTORY; h++) {
        *out++ = (double)estimator->history[h].step;
    }
    memcpy(out, estimator->aa, (size_t)estimator->params * 4 * sizeof *out);
    out += (size_t)estimator->params * 4;
    for (uint32_t h = 0; h < RP_GAIN_HISTORY; h++) {
        memcpy(out, estimator->history[h].gain, estimator->params * sizeof *out);
        out += estimator->params;
    }
}

static bool all_within(const double *values, size_t count, double least, double most) {
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] >= least && values[i] <= most)) {
            return false;
        }
    }
    return true;
}

static bool all_counts(const double *values, size_t count, double most) {
    for (size_t i = 0; i < count; i++) {
        if (!(values[i] >= 0 && values[i] <= most && values[i] == floor(values[i]))) {
            return false;
        }
    }
    return true;
}

/* rp_gain_estimator_pack() can have written these numbers. */
static bool is_valid_state(const rp_gain_estimator *estimator, const double *in) {
    const size_t params = estimator->params;
    const double *step = in + 1;
    const double *sums = step + RP_GAIN_HISTORY; /* aa, ab, rest, next, gain by entry */
    if (!all_counts(in, 1, RP_GAIN_HISTORY) || !all_counts(step, RP_GAIN_HISTORY, STEP_MAX)) {
        return false;
    }
    for (uint32_t h = 1; h < in[0]; h++) {
        if (!(step[h] > step[h - 1])) {
            return false;
        }
    }
    return all_within(sums, params, 0, DBL_MAX) &&
           all_within(sums + params, params, -DBL_MAX, DBL_MAX) &&
           all_counts(sums + 2 * params, params, REST) &&
           all_within(sums + 3 * params, params * (1 + RP_GAIN_HISTORY), 0, 1);
}

rp_err rp_gain_estimator_unpack(rp_gain_estimator *estimator, const char *name, const double *in) {
    if (!is_valid_state(estimator, in)) {
        return rp_fail(RP_ERR_FORMAT, "%s: does not hold a valid state of the prediction gains",
                       name);
    }
    estimator->history_count = (uint32_t)*in++;
    for (uint32_t h = 0; h < RP_GAIN_HISTORY; h++) {
        estimator->history[h].step = (uint64_t)*in++;
    }
    memcpy(estimator->aa, in, (size_t)estimator->params * 4 * sizeof *in);
    in += (size_t)estimator->params * 4;
    for (uint32_t h = 0; h < RP_GAIN_HISTORY; h++) {
        memcpy(estimator->history[h].gain, in, estimator->params * sizeof *in);
        in += estimator->params;
    }
    return RP_OK;
}
