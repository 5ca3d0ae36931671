#include "planning/steer.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double SMOOTHING = 0.8; /* share of the past in a smoothed sum */
static const double REST = 8;        /* probes in fall-back */
static const double RETRY = 0.5;     /* gain behind it */
static const double STEP_MAX = 9e15; /* whole numbers up to there are doubles */

rp_err rp_steer_open(rp_arena *arena, uint32_t params, rp_steer *out) {
    rp_err err;
    double *all;
    *out = (rp_steer){.params = params};
    RP_TRY(RP_ARENA_NEW(arena, (size_t)params * (4 + RP_STEER_HISTORY) + 1, &all));
    out->aa = all;
    out->ab = out->aa + params;
    out->rest = out->ab + params;
    out->next = out->rest + params;
    for (uint32_t h = 0; h < RP_STEER_HISTORY; h++) {
        out->history[h].gain = out->next + (size_t)params * (1 + h);
    }
    for (uint32_t p = 0; p < params; p++) {
        out->next[p] = 1;
    }
fail:
    return err;
}

/* The gain that the forward of `step` was predicted with. */
static double gain_at(const rp_steer *steer, uint64_t step, uint32_t param) {
    double gain = 1;
    for (uint32_t h = 0; h < steer->history_count; h++) {
        if (steer->history[h].step <= step) {
            gain = steer->history[h].gain[param];
        }
    }
    return gain;
}

static void learn(rp_steer *steer, uint32_t param, double used, const rp_steer_probe *probe) {
    const double product = (probe->predicted + probe->stale - probe->error) / 2;
    if (steer->rest[param] > 0) {
        steer->rest[param] -= 1;
        steer->next[param] = steer->rest[param] > 0 ? 0 : RETRY;
        return;
    }
    if (!isfinite(product) || !(probe->predicted > 0) || !(used > 0)) {
        return; /* nothing was predicted, so nothing is learnt */
    }
    const double keep = steer->aa[param] > 0 ? SMOOTHING : 0;
    steer->aa[param] = keep * steer->aa[param] + (1 - keep) * probe->predicted / (used * used);
    steer->ab[param] = keep * steer->ab[param] + (1 - keep) * product / used;
    const double best = steer->ab[param] / steer->aa[param];
    const bool good = best > 0 && isfinite(steer->ab[param]); /* not NaN, nor of endless sums */
    steer->next[param] = !good ? 0 : best > 1 ? 1 : best;
    if (!good) {
        steer->rest[param] = REST;
        steer->aa[param] = steer->ab[param] = 0;
    }
}

/* The entry of a step; the first stage that reports makes it. Later ones are of a run that probed
 * less often before it was resumed. */
static rp_steer_entry *entry_at(rp_steer *steer, uint64_t effect) {
    for (uint32_t h = 0; h < steer->history_count; h++) {
        if (steer->history[h].step == effect) {
            return &steer->history[h];
        }
    }
    while (steer->history_count > 0 && steer->history[steer->history_count - 1].step > effect) {
        steer->history_count--;
    }
    if (steer->history_count == RP_STEER_HISTORY) {
        double *oldest = steer->history[0].gain;
        memmove(steer->history, steer->history + 1,
                (RP_STEER_HISTORY - 1) * sizeof *steer->history);
        steer->history[RP_STEER_HISTORY - 1].gain = oldest;
        steer->history_count--;
    }
    rp_steer_entry *entry = &steer->history[steer->history_count++];
    entry->step = effect;
    memcpy(entry->gain, steer->next, steer->params * sizeof *entry->gain);
    return entry;
}

bool rp_steer_may_take_effect(uint64_t step, uint64_t effect) {
    return effect > step && (double)effect <= STEP_MAX;
}

double rp_steer_add(rp_steer *steer, uint64_t step, uint64_t effect, uint32_t param,
                    const rp_steer_probe *probe) {
    learn(steer, param, gain_at(steer, step, param), probe);
    rp_steer_entry *entry = entry_at(steer, effect);
    entry->gain[param] = steer->next[param];
    return entry->gain[param];
}

size_t rp_steer_size(const rp_steer *steer) {
    return 1 + RP_STEER_HISTORY + (size_t)steer->params * (4 + RP_STEER_HISTORY);
}

void rp_steer_pack(const rp_steer *steer, double *out) {
    *out++ = steer->history_count;
    for (uint32_t h = 0; h < RP_STEER_HISTORY; h++) {
        *out++ = (double)steer->history[h].step;
    }
    memcpy(out, steer->aa, (size_t)steer->params * 4 * sizeof *out);
    out += (size_t)steer->params * 4;
    for (uint32_t h = 0; h < RP_STEER_HISTORY; h++) {
        memcpy(out, steer->history[h].gain, steer->params * sizeof *out);
        out += steer->params;
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

/* What rp_steer_pack() can have written. */
static bool makes_sense(const rp_steer *steer, const double *in) {
    const size_t params = steer->params;
    const double *step = in + 1;
    const double *sums = step + RP_STEER_HISTORY; /* aa, ab, rest, next, gain by entry */
    if (!all_counts(in, 1, RP_STEER_HISTORY) || !all_counts(step, RP_STEER_HISTORY, STEP_MAX)) {
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
           all_within(sums + 3 * params, params * (1 + RP_STEER_HISTORY), 0, 1);
}

rp_err rp_steer_unpack(rp_steer *steer, const char *name, const double *in) {
    if (!makes_sense(steer, in)) {
        return rp_fail(RP_ERR_FORMAT, "%s: the numbers are not a state of the prediction gains",
                       name);
    }
    steer->history_count = (uint32_t)*in++;
    for (uint32_t h = 0; h < RP_STEER_HISTORY; h++) {
        steer->history[h].step = (uint64_t)*in++;
    }
    memcpy(steer->aa, in, (size_t)steer->params * 4 * sizeof *in);
    in += (size_t)steer->params * 4;
    for (uint32_t h = 0; h < RP_STEER_HISTORY; h++) {
        memcpy(steer->history[h].gain, in, steer->params * sizeof *in);
        in += steer->params;
    }
    return RP_OK;
}
