/* `plan.trial`: in a run that begins, the plan that the planner takes and the two next best are
 * each in force for so many steps, and the fastest is kept. With a flush the cut is nobody's
 * business: the weights are the same; where boards share a stage, but for the order of sums. */
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "setup/setup_own.h"

/* Where segments are so short that few steps of them count, a plan has so many times its steps. */
enum { PATIENCE = 4 };

static bool is_open(const rp_arrangement *a) {
    return a->trial.plans.count > 0 && a->trains && rp_arrangement_may_change(a);
}

void rp_trials_open(rp_arrangement *a, const rp_joint_plan *first, const rp_joint_answer *answer) {
    a->trial.plans = (rp_trial){.count = 0};
    if (first && a->run.plan.trial > 0 && a->trains) {
        rp_trial_open(&a->trial.plans, first, answer);
    }
}

void rp_trials_resume(rp_arrangement *a, const char *text) {
    const uint32_t layers = a->run.model->layer_count;
    if (a->run.plan.trial > 0 && a->trial.plans.count == 0 && text &&
        !rp_trial_read(text, layers, &a->trial.plans)) {
        rp_log_warn("controller: the checkpoint's `trial` is '%.40s', which is none: the cut stays",
                    text);
    }
}

rp_err rp_trials_tell(const rp_arrangement *a, rp_arena *arena, rp_position *out) {
    char *text;
    const rp_err err = rp_trial_text(arena, &a->trial.plans, &text);
    out->setup.trial = err == RP_OK ? text : NULL;
    return err;
}

/* ---- steps ----------------------------------------------------------------------------------- */

void rp_trials_begin_plan(rp_arrangement *a) {
    a->trial.count = 0;
    a->trial.trained = 0;
}

void rp_trials_note_step(rp_arrangement *a, double seconds) {
    RP_ASSERT(seconds >= 0);
    if (!is_open(a)) {
        return;
    }
    a->trial.trained++;
    if (seconds > 0 && a->trial.count < a->run.plan.trial) {
        a->trial.seconds[a->trial.count++] = seconds;
    }
}

static bool has_tried(const rp_arrangement *a) {
    RP_ASSERT(a->trial.count <= a->run.plan.trial);
    return a->trial.count == a->run.plan.trial ||
           a->trial.trained >= (uint64_t)PATIENCE * a->run.plan.trial;
}

/* `count`: none that is tried. */
static uint32_t in_force(const rp_arrangement *a) {
    const bool fits = is_open(a) && a->plan && a->plan->node_count == a->trial.plans.boards &&
                      a->plan->stage_count <= a->plan->node_count;
    if (!fits) {
        return a->trial.plans.count;
    }
    const rp_trial_plan now = rp_trial_plan_in_force(a->plan, &a->plan_cut);
    return rp_trial_find(&a->trial.plans, a->plan->node_count, &now);
}

/* In force, and not yet measured. */
static bool is_trying(const rp_arrangement *a) {
    const uint32_t now = in_force(a);
    return now < a->trial.plans.count && isnan(a->trial.plans.plan[now].measured_s);
}

/* Measured already: the run has gone back to a checkpoint of it. */
static bool is_to_leave(const rp_arrangement *a) {
    const uint32_t now = in_force(a);
    return now < a->trial.plans.count && !is_trying(a) && rp_trial_next(&a->trial.plans) != now;
}

bool rp_trials_is_due(const rp_arrangement *a) {
    return a->trial.trained > 0 && (is_trying(a) ? has_tried(a) : is_to_leave(a));
}

/* One more than are to be counted: the first of a segment fills the pipes. */
uint64_t rp_trials_next(const rp_arrangement *a) {
    const uint64_t left = a->run.plan.trial - a->trial.count;
    return is_trying(a)     ? a->position->step + left + 1
           : is_to_leave(a) ? a->position->step + 1
                            : UINT64_MAX;
}

/* ---- a decision ------------------------------------------------------------------------------ */

/* "[fc2, fc3]", where stages are shared "[fc2, fc3] on 1 + 2 + 1 boards". */
static void put_cut(const rp_arrangement *a, const rp_trial_plan *plan, char *text, size_t bytes) {
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (uint32_t k = 1; k < plan->stages && used < bytes; k++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%.30s", k > 1 ? ", " : "",
                                 a->run.model->layer[plan->first[k]].name);
    }
    used = used < bytes - 2 ? used : bytes - 2;
    used += (size_t)snprintf(text + used, bytes - used, "]");
    for (uint32_t k = 0; plan->is_shared && k < plan->stages && used < bytes; k++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%u", k > 0 ? " + " : " on ",
                                 plan->group[k + 1] - plan->group[k]);
    }
    if (plan->is_shared && used < bytes) {
        (void)snprintf(text + used, bytes - used, " boards");
    }
}

static rp_err say_measured(const rp_arrangement *a, const rp_trial_plan *plan) {
    char cut[240];
    char text[480];
    put_cut(a, plan, cut, sizeof cut);
    if (a->trial.count > 0) {
        (void)snprintf(text, sizeof text,
                       "cut %s tried: %.4g ms a step, the median of %u; %.4g ms by prediction", cut,
                       1e3 * plan->measured_s, a->trial.count, 1e3 * plan->predicted_s);
    } else {
        (void)snprintf(text, sizeof text,
                       "cut %s was not measured: in %u steps the pipes were filled before each",
                       cut, (uint32_t)a->trial.trained);
    }
    return rp_record_event(rp_folder_record(a->folder), "trial", a->position->step, text);
}

static rp_err say_kept(const rp_arrangement *a, uint32_t best) {
    RP_ASSERT(best < a->trial.plans.count);
    const rp_trial *plans = &a->trial.plans;
    char cut[240];
    char text[480];
    put_cut(a, &plans->plan[best], cut, sizeof cut);
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "cut %s is kept, the fastest of %u that were tried: %.4g ms a "
                                   "step, the %s",
                                   cut, plans->count, 1e3 * plans->plan[best].measured_s,
                                   plans->count > 2 ? "others" : "other");
    for (uint32_t i = 0; i < plans->count; i++) {
        if (i != best) {
            used += (size_t)snprintf(text + used, sizeof text - used, " %.4g ms",
                                     1e3 * plans->plan[i].measured_s);
        }
    }
    return rp_record_event(rp_folder_record(a->folder), "trial", a->position->step, text);
}

/* A plan of which no step could be counted is not taken. */
static rp_err note_measured(rp_arrangement *a, uint32_t now) {
    RP_ASSERT(now < a->trial.plans.count);
    rp_trial_plan *plan = &a->trial.plans.plan[now];
    plan->measured_s =
        a->trial.count > 0 ? rp_trial_median(a->trial.seconds, a->trial.count) : (double)INFINITY;
    rp_err err = say_measured(a, plan);
    if (err == RP_OK && rp_trial_is_measured(&a->trial.plans)) {
        err = say_kept(a, rp_trial_next(&a->trial.plans));
    }
    return err;
}

rp_err rp_trials_choose(rp_arrangement *a, const rp_trial_plan **plan) {
    rp_trial *plans = &a->trial.plans;
    rp_err err = RP_OK;
    *plan = NULL;
    if (!is_open(a)) {
        return RP_OK;
    }
    const uint32_t now = in_force(a);
    if (now == plans->count) { /* the ring has other boards, or the cut is another one since */
        const bool is_over = rp_trial_is_measured(plans);
        plans->count = 0;
        return is_over ? RP_OK
                       : rp_record_event(rp_folder_record(a->folder), "trial", a->position->step,
                                         "the ring is another one: no more cuts are tried");
    }
    if (!rp_trials_is_due(a)) {
        return RP_OK;
    }
    RP_TRY(is_trying(a) ? note_measured(a, now) : RP_OK);
    const uint32_t next = rp_trial_next(plans);
    if (next != now) {
        *plan = &plans->plan[next];
    }
fail:
    return err;
}
