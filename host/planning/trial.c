#include "planning/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which ----------------------------------------------------------------------------------- */

static bool is_same(const rp_trial *trial, const rp_trial_plan *plan, const uint32_t *first) {
    return memcmp(plan->first, first, ((size_t)trial->stages + 1) * sizeof *first) == 0;
}

static void add(rp_trial *trial, const rp_joint_plan *plan) {
    for (uint32_t i = 0; i < trial->count; i++) {
        if (is_same(trial, &trial->plan[i], plan->first)) {
            return;
        }
    }
    if (trial->count < RP_TRIAL_PLANS_MAX) {
        rp_trial_plan *own = &trial->plan[trial->count++];
        memcpy(own->first, plan->first, ((size_t)trial->stages + 1) * sizeof *own->first);
        own->predicted_s = plan->step_s;
        own->measured_s = (double)NAN;
    }
}

void rp_trial_open(rp_trial *trial, const rp_joint_answer *answer) {
    *trial = (rp_trial){.stages = answer->is_known ? answer->plan[0].count : 0};
    for (uint32_t i = 0; answer->is_known && i < answer->count; i++) {
        const bool same_ring = answer->plan[i].count == trial->stages &&
                               answer->plan[i].schedule == answer->plan[0].schedule &&
                               memcmp(answer->plan[i].place, answer->plan[0].place,
                                      trial->stages * sizeof *answer->plan[0].place) == 0;
        if (same_ring) {
            add(trial, &answer->plan[i]);
        }
    }
    trial->count = trial->count > 1 ? trial->count : 0;
}

uint32_t rp_trial_find(const rp_trial *trial, const rp_cut *cut) {
    uint32_t at = 0;
    if (cut->stage_count != trial->stages) {
        return trial->count;
    }
    while (at < trial->count && !is_same(trial, &trial->plan[at], cut->first)) {
        at++;
    }
    return at;
}

uint32_t rp_trial_next(const rp_trial *trial) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < trial->count; i++) {
        if (isnan(trial->plan[i].measured_s)) {
            return i;
        }
        best = trial->plan[i].measured_s < trial->plan[best].measured_s ? i : best;
    }
    return best;
}

bool rp_trial_is_measured(const rp_trial *trial) {
    bool all = true;
    for (uint32_t i = 0; i < trial->count; i++) {
        all = all && !isnan(trial->plan[i].measured_s);
    }
    return all;
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

double rp_trial_median(double *seconds, uint32_t count) {
    qsort(seconds, count, sizeof *seconds, compare);
    return (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
}

/* ---- as text --------------------------------------------------------------------------------- */

static rp_err plan_text(rp_arena *arena, const rp_trial *trial, uint32_t at, char **out) {
    const rp_trial_plan *plan = &trial->plan[at];
    rp_err err;
    RP_TRY(rp_arena_printf(arena, out, "%s%s%.9g/", *out, at ? ";" : "", plan->predicted_s));
    if (isnan(plan->measured_s)) {
        RP_TRY(rp_arena_printf(arena, out, "%s-/", *out));
    } else {
        RP_TRY(rp_arena_printf(arena, out, "%s%.9g/", *out, plan->measured_s));
    }
    for (uint32_t k = 1; k < trial->stages; k++) {
        RP_TRY(rp_arena_printf(arena, out, "%s%s%u", *out, k > 1 ? "," : "", plan->first[k]));
    }
fail:
    return err;
}

rp_err rp_trial_text(rp_arena *arena, const rp_trial *trial, char **out) {
    rp_err err = rp_arena_string(arena, "", out);
    for (uint32_t i = 0; err == RP_OK && i < trial->count; i++) {
        err = plan_text(arena, trial, i, out);
    }
    return err;
}

/* Behind it stands a '/'. Words only where `may_lack`. */
static bool read_seconds(const char **at, bool may_lack, double *out) {
    static const struct {
        const char *word;
        double seconds;
    } words[] = {{"-/", (double)NAN}, {"inf/", (double)INFINITY}};
    char *end = NULL;
    for (size_t i = 0; may_lack && i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i].word);
        if (strncmp(*at, words[i].word, length) == 0) {
            *out = words[i].seconds;
            *at += length;
            return true;
        }
    }
    *out = strtod(*at, &end);
    const bool good = (*at)[0] >= '0' && (*at)[0] <= '9' && *end == '/' && isfinite(*out);
    *at = good ? end + 1 : *at;
    return good;
}

/* Rising numbers of layers, up to the plan's end; their count is that of the plan before. */
static bool read_firsts(const char **at, uint32_t layers, rp_trial *trial, rp_trial_plan *plan) {
    uint32_t stages = 1;
    bool good = true;
    plan->first[0] = 0;
    for (bool more = true; good && more; stages++) {
        char *end = NULL;
        const unsigned long layer = strtoul(*at, &end, 10);
        good = (*at)[0] >= '0' && (*at)[0] <= '9' && layer > plan->first[stages - 1] &&
               layer < layers && stages < RP_JOINT_BOARDS_MAX &&
               (*end == ',' || *end == ';' || *end == '\0');
        if (good) {
            plan->first[stages] = (uint32_t)layer;
            more = *end == ',';
            *at = end + more;
        }
    }
    good = good && (trial->stages == 0 || trial->stages == stages);
    if (good) {
        plan->first[stages] = layers;
        trial->stages = stages;
    }
    return good;
}

bool rp_trial_read(const char *text, uint32_t layers, rp_trial *out) {
    const char *at = text;
    bool more = text && text[0];
    bool good = true;
    *out = (rp_trial){.count = 0};
    while (good && more) {
        rp_trial_plan *plan = &out->plan[out->count];
        good = read_seconds(&at, false, &plan->predicted_s) &&
               read_seconds(&at, true, &plan->measured_s) && read_firsts(&at, layers, out, plan);
        out->count += good;
        more = good && *at == ';';
        at += more;
        good = good && !(more && out->count == RP_TRIAL_PLANS_MAX);
    }
    good = good && out->count != 1;
    if (!good) {
        *out = (rp_trial){.count = 0};
    }
    return good;
}
