/* Chooses the cut (plan.drift) or the sizes of microbatches (schedule.planner) again at a pause,
 * when boards or wires take other times than predicted and the new plan saves more than new stages
 * cost. */
#include <math.h>

#include "measure/drift.h"
#include "setup/setup_own.h"

/* Minimum predicted gain, as a fraction of a step. Smaller gains are measurement noise. */
static const double GAIN = 0.05;

/* The board or wire with the largest deviation from its prediction. */
typedef struct {
    uint32_t from, to; /* equal: a board */
    double factor;     /* measured divided by predicted */
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

/* True if something has drifted and this room may choose: not with a given plan. */
static bool has_drifted(const rp_arrangement *a, drifted *out) {
    const double share = a->run.plan.drift;
    const bool may_choose = (a->run.cut_auto || a->run.sizes.planner) && !a->given;
    if (!(share > 0) || !may_choose || a->ring->count < 2 || !rp_drift_prediction(a->measure) ||
        a->ring->count != a->run.boards) {
        return false;
    }
    *out = find_farthest(a);
    return fabs(out->factor - 1) > share;
}

static rp_err say_drift(const rp_arrangement *a, const drifted *found, const double step_s[2],
                        bool pays) {
    const rp_board_state *board = a->ring->board;
    return rp_record_event(
        rp_folder_record(a->folder),
        &(rp_run_event){.kind = !pays             ? RP_EVENT_PLAN_KEPT
                                : a->run.cut_auto ? RP_EVENT_PLAN_CUT
                                                  : RP_EVENT_PLAN_SIZES,
                        .step = a->position->step,
                        .board = board[found->from].name,
                        .peer = found->from == found->to ? NULL : board[found->to].name,
                        .factor = found->factor,
                        .step_before_s = step_s[0],
                        .step_s = step_s[1]});
}

/* Makes the measured times the new prediction, so that later ones are compared with them. */
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
    rp_setup_facts facts;
    rp_setup_why why;
    rp_setup next;
    rp_arena arena;
    rp_err err = RP_OK;
    *leaves = false;
    if (!has_drifted(a, &found) || !may_drain) {
        return RP_OK;
    }
    rp_setup now = a->now;
    now.cut = a->plan_cut; /* the cut in force */
    rp_arena_init(&arena, "drift", 0);
    RP_TRY(take_factors(a));
    RP_TRY(rp_arrangement_facts(a, &arena, &facts));
    RP_TRY(rp_setup_follow(&a->opened, &facts, &now, &arena, &next, &why));
    RP_TRY(rp_setup_price(&a->opened, &facts, &now, &arena, &step_s[0]));
    RP_TRY(rp_setup_price(&a->opened, &facts, &next, &arena, &step_s[1]));
    const double saved_s = (step_s[0] - step_s[1]) * (double)steps_left;
    *leaves = step_s[1] < (1 - GAIN) * step_s[0] && saved_s > rp_drift_setup_s(a->measure);
    RP_TRY(say_drift(a, &found, step_s, *leaves));
    if (*leaves) {
        RP_TRY(rp_arrangement_take(a, &next, &why));
        rp_measure_take_cut(a->measure, &a->now.cut);
        rp_drift_count_change(a->measure);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
