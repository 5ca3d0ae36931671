#include <math.h>

#include "planning/joint_own.h"

static bool may_change_micro(const rp_joint *j) {
    const uint32_t schedule = j->out->plan[0].schedule;
    const uint32_t whole[] = {0, j->layers};
    const rp_cut cut = {.stage_count = 1, .first = whole};
    const rp_runfile *run = j->ask->run;
    const rp_method *method = schedule > 0 ? &run->schedules.at[schedule].method : &run->method;
    return !run->sizes.planner && !run->sizes.at && method->kind->flushed &&
           !rp_cut_whole_layer(run->model, &cut, 0);
}

/* Seconds of handling an op, if the profile does not say; from real rings (RESULTS.md). Without it
 * the smallest microbatch always wins. */
static const double HANDLING_S = 1e-3;

static double assumed_handling_s(const rp_joint *j, uint32_t micro) {
    const rp_profile *profile = j->ask->profile;
    bool measured = true;
    for (uint32_t i = 0; i < profile->board_count; i++) {
        measured &= profile->board[i].has_besides;
    }
    return measured ? 0 : 2 * HANDLING_S * ((j->ask->run->batch - 1) / micro + 1);
}

/* Factor that twice as many ops must gain: about the error of replays with small microbatches in
 * real rings (RESULTS.md), where each op costs a little more than any profile knows. */
static const double DOUBLING = 1.03;

/* The value by which microbatches are compared. */
static double weighed_s(const rp_joint *j, uint32_t micro, double step_s) {
    return (step_s + assumed_handling_s(j, micro)) * pow(DOUBLING, -log2(micro));
}

/* Tries powers of two from an eighth to eight times the run's microbatch. train.microbatch itself
 * is not changed here, because the user set it. */
rp_err rp_joint_find_micro(rp_joint *j) {
    rp_joint_answer *out = j->out;
    const uint32_t own = j->ask->run->micro;
    const double own_s = out->plan[0].step_s;
    double least_s = weighed_s(j, own, own_s);
    rp_err err = RP_OK;
    out->micro = own;
    out->micro_step_s = own_s;
    for (uint32_t power = 0; power < 12 && may_change_micro(j) && !rp_joint_is_over(j); power++) {
        const uint32_t micro = 1u << power;
        rp_prediction found = {0};
        if (micro == own || micro > j->ask->run->batch || 8 * micro < own || micro > 8 * own) {
            continue;
        }
        RP_TRY(rp_joint_predict(j, &out->plan[0], micro, &found));
        if (found.step_s < own_s && weighed_s(j, micro, found.step_s) < least_s) {
            least_s = weighed_s(j, micro, found.step_s);
            out->micro_step_s = found.step_s;
            out->micro = micro;
        }
    }
fail:
    return err;
}
