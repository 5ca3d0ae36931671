/* With `plan.drift` the cut, and with `schedule.planner` the sizes of microbatches, are chosen anew
 * at a pause, when boards or wires take other times than the plan was chosen by, and others save
 * more than the new stages cost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planning/planfile.h"
#include "setup/setup_own.h"

/* Of a step, that another cut has to save: what was measured twice is never the same. */
static const double GAIN = 0.05;

/* What is farthest from its prediction: a board, or the wire from one to another. */
typedef struct {
    uint32_t from, to; /* the same: the board */
    double factor;     /* measured by predicted */
} drifted;

static drifted find_farthest(const rp_arrangement *a) {
    drifted most = {.factor = 1};
    for (uint32_t i = 0; i < a->ring->count * a->ring->count; i++) {
        const uint32_t from = i / a->ring->count;
        const uint32_t to = i % a->ring->count;
        const double own = from == to ? rp_drift_board_factor(a->measure, a->plan, from)
                                      : rp_drift_wire_factor(a->measure, a->plan, from, to);
        if (fabs(log(own)) > fabs(log(most.factor))) {
            most = (drifted){from, to, own};
        }
    }
    return most;
}

/* What somebody else has chosen stays, and so does what runs as it was predicted to. */
static bool has_drifted(const rp_arrangement *a, drifted *out) {
    const double share = a->run.plan.drift;
    const bool may_choose =
        (a->run.cut_auto || a->run.sizes.planner) && rp_arrangement_may_change(a);
    if (!(share > 0) || !may_choose || a->ring->count < 2 || !rp_drift_prediction(a->measure) ||
        a->ring->count != a->run.boards) {
        return false;
    }
    *out = find_farthest(a);
    return fabs(out->factor - 1) > share;
}

/* What the run may go on with. */
typedef struct {
    rp_cut cut;
    rp_joint_plan shares; /* of the same stages, where boards may share some */
    uint32_t (*size)[2];  /* [stages]; NULL: the run's */
    rp_size_choice sizes;
} plan_choice;

/* The stages in force, with one hold a board. */
static rp_joint_plan shares_now(const rp_arrangement *a) {
    const rp_plan *plan = a->plan;
    rp_joint_plan now = {.count = plan->node_count, .stages = plan->stage_count};
    memcpy(now.first, a->plan_cut.first, ((size_t)now.stages + 1) * sizeof *now.first);
    for (uint32_t k = 0; k < plan->node_count && k < RP_JOINT_BOARDS_MAX; k++) {
        const rp_plan_hold *hold = &plan->hold[plan->node[k].hold_first];
        now.group[hold->stage + 1] = k + 1;
        now.share[k] = hold->share[1];
    }
    return now;
}

/* What is in force. */
static plan_choice choice_now(const rp_arrangement *a) {
    plan_choice now = {.cut = a->plan_cut};
    if (a->run.plan.share > 1) {
        now.shares = shares_now(a);
    }
    return now;
}

/* The best of those in which boards share stages, and of the others. */
static rp_err choose_shares(rp_arrangement *a, plan_choice *out) {
    rp_joint_ask ask = rp_shares_ask(a);
    rp_joint_answer answer;
    rp_setup open = a->now;
    rp_runfile run;
    rp_setup_reopen_sizes(&open, &a->run); /* they are of the plan in force */
    rp_setup_run(&a->opened, &open, &run);
    ask.run = &run;
    const rp_err err = rp_joint_search(&ask, &answer);
    if (err == RP_OK && answer.is_known) {
        out->shares = answer.plan[0];
        out->cut = (rp_cut){.stage_count = out->shares.stages, .first = out->shares.first};
    }
    return err;
}

static rp_err choose(rp_arrangement *a, rp_arena *arena, plan_choice *out) {
    rp_joint_answer answer;
    rp_err err = RP_OK;
    *out = choice_now(a);
    if (a->run.cut_auto && a->run.plan.share > 1) {
        RP_TRY(choose_shares(a, out));
    } else if (a->run.cut_auto) {
        RP_TRY(rp_arrangement_find_cut(a, arena, &answer, &out->cut));
    }
    if (rp_joint_has_sizes(&out->shares)) {
        out->size = out->shares.size;
    } else if (a->run.sizes.planner) {
        RP_TRY(RP_ARENA_NEW(arena, out->cut.stage_count, &out->size));
        RP_TRY(rp_choose_sizes(&a->run, rp_measure_profile(a->measure), &out->cut, out->size,
                               &out->sizes));
    }
fail:
    return err;
}

static rp_err predict_choice(rp_arrangement *a, rp_arena *arena, const plan_choice *choice,
                             double *step_s) {
    RP_ASSERT(choice->cut.stage_count > 0 && choice->cut.stage_count <= a->run.model->layer_count);
    const rp_joint_plan *of = &choice->shares;
    rp_setup other = a->now;
    rp_runfile run;
    const char **names;
    rp_plan *plan;
    rp_prediction found;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, a->ring->count, &names));
    for (uint32_t k = 0; k < a->ring->count; k++) {
        names[k] = a->ring->board[k].name;
    }
    if (choice->size) {
        other.size = (const uint32_t(*)[2])choice->size;
        other.size_stages = choice->cut.stage_count;
    }
    other.stages = choice->cut.stage_count;
    if (of->plain_s > 0) {
        other.codec = of->codec;
        other.codec_stages = of->stages;
    }
    rp_setup_run(&a->opened, &other, &run);
    const rp_planfile chosen = {.run = &run,
                                .cut = &choice->cut,
                                .board = names,
                                .group = rp_joint_is_shared(of) ? of->group : NULL,
                                .share = of->share,
                                .profile = rp_measure_profile(a->measure)};
    RP_TRY(rp_planfile_make(arena, &chosen, &plan));
    RP_TRY(rp_predict(arena, &run, rp_measure_profile(a->measure), plan,
                      rp_measure_delay_s(a->measure), &found));
    *step_s = found.step_s;
fail:
    return err;
}

static rp_err say(const rp_arrangement *a, const drifted *found, const double step_s[2],
                  bool pays) {
    const char *from = a->ring->board[found->from].name;
    const char *to = a->ring->board[found->to].name;
    char what[160];
    char text[480];
    if (found->from == found->to) {
        (void)snprintf(what, sizeof what, "ops of board %.60s take", from);
    } else {
        (void)snprintf(what, sizeof what, "the wire from board %.60s to board %.60s takes", from,
                       to);
    }
    (void)snprintf(text, sizeof text,
                   "%s %.2f times as long as predicted: %s (a step takes %.4g ms "
                   "as it is, %.4g ms with the best plan)",
                   what, found->factor,
                   !pays             ? "the plan stays, another saves too little"
                   : a->run.cut_auto ? "the layers are shared out anew"
                                     : "the sizes are chosen anew",
                   1e3 * step_s[0], 1e3 * step_s[1]);
    return rp_record_event(rp_folder_record(a->folder), "plan", a->position->step, text);
}

/* From here on what was measured counts as predicted: it is judged by what comes next. */
static rp_err take_factors(rp_arrangement *a) {
    RP_ASSERT(rp_measure_has_profile(a->measure) && a->ring->count == a->run.boards);
    const rp_prediction *predicted;
    const rp_err err = rp_drift_take_factors(a->measure, a->plan, &predicted);
    rp_arrangement_take_prediction(a->plan, predicted);
    return err;
}

rp_err rp_replan_choose(rp_arrangement *a, bool may_drain, uint64_t steps_left, bool *leaves) {
    drifted found;
    double step_s[2];
    plan_choice best;
    rp_arena arena;
    rp_err err = RP_OK;
    *leaves = false;
    if (!has_drifted(a, &found) || !may_drain) {
        return RP_OK;
    }
    rp_arena_init(&arena, "drift", 0);
    RP_TRY(take_factors(a));
    const plan_choice now = choice_now(a);
    RP_TRY(choose(a, &arena, &best));
    RP_TRY(predict_choice(a, &arena, &now, &step_s[0]));
    RP_TRY(predict_choice(a, &arena, &best, &step_s[1]));
    const double saved_s = (step_s[0] - step_s[1]) * (double)steps_left;
    *leaves = step_s[1] < (1 - GAIN) * step_s[0] && saved_s > rp_drift_setup_s(a->measure);
    RP_TRY(say(a, &found, step_s, *leaves));
    if (*leaves) {
        RP_TRY(a->run.plan.share > 1 ? rp_shares_take(a, &best.shares)
                                     : rp_arrangement_keep_cut(a, &best.cut));
        if (best.size && !rp_joint_has_sizes(&best.shares)) {
            RP_TRY(rp_sizes_keep(a, (const uint32_t(*)[2])best.size, &best.sizes));
        }
        rp_measure_take_cut(a->measure, &a->now.cut);
        rp_drift_count_change(a->measure);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
