/* `plan.trial`: in a run that begins, the plan that the planner takes and the two next best are
 * each in force for so many steps, and the fastest is kept. With a flush the cut is nobody's
 * business: the weights are the same; where boards share a stage, but for the order of sums. */
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "control/controller_own.h"

/* Where segments are so short that few steps of them count, a plan has so many times its steps. */
enum { PATIENCE = 4 };

static bool is_open(const rp_controller *c) {
    return c->setup.trial.plans.count > 0 && c->options.purpose == RP_PURPOSE_TRAIN &&
           rp_setup_may_change(&c->setup);
}

void rp_trials_open(rp_controller *c, const rp_joint_plan *first, const rp_joint_answer *answer) {
    c->setup.trial.plans = (rp_trial){.count = 0};
    if (first && c->run.plan_trial > 0 && c->options.purpose == RP_PURPOSE_TRAIN) {
        rp_trial_open(&c->setup.trial.plans, first, answer);
    }
}

void rp_trials_resume(rp_controller *c, const char *text) {
    const uint32_t layers = c->run.model->layer_count;
    if (c->run.plan_trial > 0 && c->setup.trial.plans.count == 0 && text &&
        !rp_trial_read(text, layers, &c->setup.trial.plans)) {
        rp_log_warn("controller: the checkpoint's `trial` is '%.40s', which is none: the cut stays",
                    text);
    }
}

rp_err rp_trials_tell(const rp_controller *c, rp_arena *arena, rp_position *out) {
    char *text;
    const rp_err err = rp_trial_text(arena, &c->setup.trial.plans, &text);
    out->setup.trial = err == RP_OK ? text : NULL;
    return err;
}

/* ---- steps ----------------------------------------------------------------------------------- */

void rp_trials_begin_plan(rp_controller *c) {
    c->setup.trial.count = 0;
    c->setup.trial.trained = 0;
}

void rp_trials_note_step(rp_controller *c, double seconds) {
    if (!is_open(c)) {
        return;
    }
    c->setup.trial.trained++;
    if (seconds > 0 && c->setup.trial.count < c->run.plan_trial) {
        c->setup.trial.seconds[c->setup.trial.count++] = seconds;
    }
}

static bool has_tried(const rp_controller *c) {
    return c->setup.trial.count == c->run.plan_trial ||
           c->setup.trial.trained >= (uint64_t)PATIENCE * c->run.plan_trial;
}

/* `count`: none that is tried. */
static uint32_t in_force(const rp_controller *c) {
    const bool fits = is_open(c) && c->setup.plan &&
                      c->setup.plan->node_count == c->setup.trial.plans.boards &&
                      c->setup.plan->stage_count <= c->setup.plan->node_count;
    if (!fits) {
        return c->setup.trial.plans.count;
    }
    const rp_trial_plan now = rp_trial_plan_in_force(c->setup.plan, &c->setup.plan_cut);
    return rp_trial_find(&c->setup.trial.plans, c->setup.plan->node_count, &now);
}

/* In force, and not yet measured. */
static bool is_trying(const rp_controller *c) {
    const uint32_t now = in_force(c);
    return now < c->setup.trial.plans.count && isnan(c->setup.trial.plans.plan[now].measured_s);
}

/* Measured already: the run has gone back to a checkpoint of it. */
static bool is_to_leave(const rp_controller *c) {
    const uint32_t now = in_force(c);
    return now < c->setup.trial.plans.count && !is_trying(c) &&
           rp_trial_next(&c->setup.trial.plans) != now;
}

bool rp_trials_is_due(const rp_controller *c) {
    return c->setup.trial.trained > 0 && (is_trying(c) ? has_tried(c) : is_to_leave(c));
}

/* One more than are to be counted: the first of a segment fills the pipes. */
uint64_t rp_trials_next(const rp_controller *c) {
    const uint64_t left = c->run.plan_trial - c->setup.trial.count;
    return is_trying(c)     ? c->train.position.step + left + 1
           : is_to_leave(c) ? c->train.position.step + 1
                            : UINT64_MAX;
}

/* ---- a decision ------------------------------------------------------------------------------ */

/* "[fc2, fc3]", where stages are shared "[fc2, fc3] on 1 + 2 + 1 boards". */
static void put_cut(const rp_controller *c, const rp_trial_plan *plan, char *text, size_t bytes) {
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (uint32_t k = 1; k < plan->stages && used < bytes; k++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%.30s", k > 1 ? ", " : "",
                                 c->run.model->layer[plan->first[k]].name);
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

static rp_err say_measured(const rp_controller *c, const rp_trial_plan *plan) {
    char cut[240];
    char text[480];
    put_cut(c, plan, cut, sizeof cut);
    if (c->setup.trial.count > 0) {
        (void)snprintf(text, sizeof text,
                       "cut %s tried: %.4g ms a step, the median of %u; %.4g ms by prediction", cut,
                       1e3 * plan->measured_s, c->setup.trial.count, 1e3 * plan->predicted_s);
    } else {
        (void)snprintf(text, sizeof text,
                       "cut %s was not measured: in %u steps the pipes were filled before each",
                       cut, (uint32_t)c->setup.trial.trained);
    }
    return rp_record_event(rp_folder_record(c->folder), "trial", c->train.position.step, text);
}

static rp_err say_kept(const rp_controller *c, uint32_t best) {
    const rp_trial *plans = &c->setup.trial.plans;
    char cut[240];
    char text[480];
    put_cut(c, &plans->plan[best], cut, sizeof cut);
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
    return rp_record_event(rp_folder_record(c->folder), "trial", c->train.position.step, text);
}

/* A plan of which no step could be counted is not taken. */
static rp_err note_measured(rp_controller *c, uint32_t now) {
    rp_trial_plan *plan = &c->setup.trial.plans.plan[now];
    plan->measured_s = c->setup.trial.count > 0
                           ? rp_trial_median(c->setup.trial.seconds, c->setup.trial.count)
                           : (double)INFINITY;
    rp_err err = say_measured(c, plan);
    if (err == RP_OK && rp_trial_is_measured(&c->setup.trial.plans)) {
        err = say_kept(c, rp_trial_next(&c->setup.trial.plans));
    }
    return err;
}

rp_err rp_trials_choose(rp_controller *c, const rp_trial_plan **plan) {
    rp_trial *plans = &c->setup.trial.plans;
    rp_err err = RP_OK;
    *plan = NULL;
    if (!is_open(c)) {
        return RP_OK;
    }
    const uint32_t now = in_force(c);
    if (now == plans->count) { /* the ring has other boards, or the cut is another one since */
        const bool is_over = rp_trial_is_measured(plans);
        plans->count = 0;
        return is_over
                   ? RP_OK
                   : rp_record_event(rp_folder_record(c->folder), "trial", c->train.position.step,
                                     "the ring is another one: no more cuts are tried");
    }
    if (!rp_trials_is_due(c)) {
        return RP_OK;
    }
    RP_TRY(is_trying(c) ? note_measured(c, now) : RP_OK);
    const uint32_t next = rp_trial_next(plans);
    if (next != now) {
        *plan = &plans->plan[next];
    }
fail:
    return err;
}
