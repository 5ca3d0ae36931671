#include "planning/joint_own.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planning/cost.h"
#include "run/setup.h"

/* Fraction of a step that a schedule must save if it changes the gradients: by stale weights or
 * replicas. */
static const double OTHERWISE = 0.05;

/* The best plans of the answer, all with one schedule. `least_s` infinite: none of them is
 * possible. */
typedef struct {
    uint32_t schedule, count, best;
    rp_joint_plan plan[RP_JOINT_SIZED];
    double least_s;
} family;

static void make_run(const rp_joint *j, const rp_joint_plan *plan, rp_runfile *out) {
    rp_setup setup = rp_setup_of(j->ask->run);
    if (plan->schedule > 0) {
        rp_setup_take_schedule(&setup, j->ask->run, plan->schedule);
    }
    setup.stages = plan->stages;
    if (plan->has_advance) {
        rp_setup_take_advance(&setup, plan->advance);
    }
    rp_setup_run(j->ask->run, &setup, out);
}

static double longest_delay_s(const rp_joint *j, const rp_runfile *run, const rp_profile *profile) {
    double longest = 0;
    for (uint32_t k = 0; k + 1 < run->boards; k++) {
        longest = fmax(longest, rp_cost_delay_s(run, profile, k, k + 1, j->ask->delay_s));
        longest = fmax(longest, rp_cost_delay_s(run, profile, k + 1, k, j->ask->delay_s));
    }
    return longest;
}

/* Sets the plan's advance as a run with `advance: auto` chooses it, for wires as measured. */
static rp_err choose_advance(const rp_joint *j, rp_joint_plan *plan) {
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    rp_advance_choice choice;
    rp_runfile run;
    rp_profile profile;
    const char **names;
    double *rate;
    double *seconds;
    rp_arena arena;
    rp_err err;
    plan->has_advance = false;
    rp_arena_init(&arena, "advance", 0);
    RP_TRY(rp_joint_run_of(&arena, j, plan, &run, &profile, &names));
    if (!run.method.advance_auto || rp_joint_is_shared(plan) || plan->stages < 2) {
        goto fail;
    }
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)run.boards * run.boards, &rate));
    RP_TRY(RP_ARENA_NEW(&arena, 2 * (size_t)j->layers, &seconds));
    rp_cost_rates(&run, &profile, rate);
    rp_profile_seconds(&profile, &run, &cut, seconds);
    RP_TRY(rp_cost_choose_advance(&run, &cut, seconds, longest_delay_s(j, &run, &profile), rate,
                                  RP_ADVANCE_MAX, &choice));
    plan->has_advance = true;
    plan->advance = choice.advance;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Predicts a plan with a schedule. step_s is infinite if it is impossible. Where memory is short,
 * the advance is smaller. */
static rp_err try_plan(const rp_joint *j, rp_joint_plan *plan, uint32_t schedule) {
    rp_prediction found = {0};
    rp_err err;
    plan->schedule = schedule;
    RP_TRY(choose_advance(j, plan));
    RP_TRY(rp_joint_predict(j, plan, j->ask->run->micro, &found));
    while (isinf(found.step_s) && plan->has_advance && plan->advance > 0) {
        plan->advance--;
        RP_TRY(rp_joint_predict(j, plan, j->ask->run->micro, &found));
    }
    plan->step_s = found.step_s;
    memcpy(plan->limits, found.limits, sizeof plan->limits);
fail:
    return err;
}

static rp_err try_family(const rp_joint *j, uint32_t schedule, const family *from, family *out) {
    rp_err err = RP_OK;
    *out = *from;
    out->schedule = schedule;
    out->least_s = (double)INFINITY;
    for (uint32_t i = 0; i < out->count && (i == 0 || !rp_joint_is_over(j)); i++) {
        RP_TRY(try_plan(j, &out->plan[i], schedule));
        if (!(out->plan[i].step_s < (double)INFINITY)) { /* keep the plan as it was */
            out->plan[i] = from->plan[i];
        } else if (out->plan[i].step_s < out->least_s) {
            out->least_s = out->plan[i].step_s;
            out->best = i;
        }
    }
fail:
    return err;
}

/* Both sum the gradients of a whole step, all computed with the weights at its begin. */
static bool trains_alike(const rp_method *a, const rp_method *b) {
    return a->kind->flushed && b->kind->flushed && a->kind->average == RP_AVERAGE_NONE &&
           b->kind->average == RP_AVERAGE_NONE;
}

static bool pays(const rp_joint *j, const family *own, const family *other) {
    const rp_schedules *all = &j->ask->run->schedules;
    const double gain = trains_alike(&all->at[0].method, &all->at[other->schedule].method)
                            ? RP_JOINT_WORTH
                            : OTHERWISE;
    return other->least_s < (1 - gain) * own->least_s;
}

/* ---- the reason, in words -------------------------------------------------------------------- */

static size_t write_semantics(const rp_joint *j, const rp_joint_plan *plan, char *text,
                              size_t bytes) {
    rp_runfile run;
    make_run(j, plan, &run);
    const rp_sched_shape shape = rp_runfile_sched_shape(&run, 0);
    const uint32_t staleness = rp_method_staleness(&run.method, &shape);
    size_t used = 0;
    if (trains_alike(&j->ask->run->schedules.at[0].method, &run.method)) {
        return (size_t)snprintf(text, bytes, "; the gradients are the same except for rounding");
    }
    if (staleness > 0) {
        used = (size_t)snprintf(text, bytes,
                                "; a gradient of the first stage is up to %u update%s old, which "
                                "may cost accuracy",
                                staleness, staleness == 1 ? "" : "s");
    } else if (run.method.replicas <= 1) {
        used = (size_t)snprintf(text, bytes, "; gradients are computed with the newest weights");
    }
    if (run.method.replicas > 1 && used < bytes) {
        used += (size_t)snprintf(text + used, bytes - used,
                                 "; %u replicas of the weights are trained and averaged",
                                 run.method.replicas);
    }
    return used;
}

static const char *name_of(const rp_joint *j, uint32_t schedule) {
    return j->ask->run->schedules.at[schedule].method.kind->name;
}

static void write_reason(const rp_joint *j, const family *own, const family *best,
                         const double *least_s) {
    const rp_schedules *all = &j->ask->run->schedules;
    char *text = j->out->schedule;
    const size_t bytes = sizeof j->out->schedule;
    size_t used;
    if (best->schedule == 0) {
        used = (size_t)snprintf(
            text, bytes,
            "schedule %s stays, %.4g s a step: no other schedule saves %.0f %%, or "
            "%.0f %% if it changes the training",
            name_of(j, 0), own->least_s, 100 * RP_JOINT_WORTH, 100 * OTHERWISE);
    } else {
        used = (size_t)snprintf(text, bytes,
                                "schedule %s instead of %s saves %.0f %% of %.4g s a step",
                                name_of(j, best->schedule), name_of(j, 0),
                                100 * (1 - best->least_s / own->least_s), own->least_s);
        used += used < bytes
                    ? write_semantics(j, &best->plan[best->best], text + used, bytes - used)
                    : 0;
    }
    for (uint32_t s = 1; s < all->count && used + 80 < bytes; s++) {
        if (s != best->schedule && isfinite(least_s[s])) {
            used += (size_t)snprintf(text + used, bytes - used, "; %s takes %.4g s", name_of(j, s),
                                     least_s[s]);
        } else if (s != best->schedule) {
            used += (size_t)snprintf(text + used, bytes - used, "; %s %s", name_of(j, s),
                                     isnan(least_s[s])
                                         ? "was not tried, because plan.seconds had passed"
                                         : "does not fit");
        }
    }
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Predicts the best plans with the run's own schedule. With `advance: auto` also `now` and `alike`,
 * with which plans are compared. */
static rp_err try_own(rp_joint *j, family *own) {
    rp_joint_answer *out = j->out;
    rp_err err = RP_OK;
    family from = {.count = out->count < RP_JOINT_SIZED ? out->count : RP_JOINT_SIZED};
    memcpy(from.plan, out->plan, from.count * sizeof *from.plan);
    RP_TRY(try_family(j, 0, &from, own));
    if (j->ask->run->method.advance_auto) {
        from = (family){.count = 2, .plan = {out->now, out->alike}};
        family compared;
        RP_TRY(try_family(j, 0, &from, &compared));
        out->now = compared.plan[0];
        out->alike = compared.plan[1];
    }
    own->least_s = isfinite(own->least_s) ? own->least_s : own->plan[0].step_s;
fail:
    return err;
}

rp_err rp_joint_search_schedules(rp_joint *j) {
    const uint32_t count = j->ask->schedules_open ? j->ask->run->schedules.count : 0;
    double least_s[RP_SCHEDULES_MAX]; /* by schedule; NaN: not tried */
    family own;
    family best;
    family other;
    rp_err err = RP_OK;
    if (count == 0 && !j->ask->run->method.advance_auto) {
        return RP_OK;
    }
    RP_TRY(try_own(j, &own));
    for (uint32_t i = 0; count > 0 && i < own.count; i++) {
        own.plan[i].own_s = own.plan[i].step_s;
    }
    best = own;
    for (uint32_t s = 1; s < count; s++) {
        least_s[s] = (double)NAN;
        if (rp_joint_is_over(j)) {
            continue;
        }
        RP_TRY(try_family(j, s, &own, &other));
        least_s[s] = other.least_s;
        best = pays(j, &own, &other) && other.least_s < best.least_s ? other : best;
    }
    rp_joint_relist(j->out, best.plan, best.count);
    if (count > 0) {
        write_reason(j, &own, &best, least_s);
    }
fail:
    return err;
}
