#include "planning/joint_own.h"

#include <string.h>

#include "planning/choose_sizes.h"

/* ---- boards that share stages ---------------------------------------------------------------- */

/* Sets the same sizes on all stages, except on those whose layers normalise over a microbatch. */
static void set_sizes(const rp_joint *j, uint32_t forward, uint32_t backward, rp_joint_plan *plan) {
    const rp_runfile *run = j->ask->run;
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    for (uint32_t k = 0; k < plan->stages; k++) {
        const bool held = rp_cut_whole_layer(run->model, &cut, k) != NULL;
        plan->size[k][0] = held ? run->micro : forward;
        plan->size[k][1] = held ? run->micro : backward;
    }
}

static bool is_size(const rp_runfile *run, uint32_t size) {
    return size > 0 && size <= run->batch && (run->batch - 1) / size < RP_PARCELS_MAX;
}

/* Halves or doubles the forward's size, the backward's or both, whichever saves most. `size`: the
 * sizes of `plan`, forward and backward. *found: it has changed. */
static rp_err improve_sizes(const rp_joint *j, uint32_t size[2], rp_joint_plan *plan, bool *found) {
    const rp_joint_plan from = *plan;
    const uint32_t old[2] = {size[0], size[1]};
    double most_s = (1 - RP_JOINT_WORTH) * from.step_s;
    rp_err err = RP_OK;
    *found = false;
    for (uint32_t way = 0; way < 6 && !rp_joint_is_over(j); way++) {
        const bool halves = way % 2 == 0;
        const bool moves[2] = {way / 2 != 1, way / 2 != 0};
        uint32_t other[2];
        for (uint32_t d = 0; d < 2; d++) {
            other[d] = !moves[d] ? old[d] : halves ? old[d] / 2 : 2 * old[d];
        }
        if (!is_size(j->ask->run, other[0]) || !is_size(j->ask->run, other[1])) {
            continue;
        }
        rp_joint_plan tried = from;
        set_sizes(j, other[0], other[1], &tried);
        RP_TRY(rp_joint_replay(j, &tried));
        if (tried.step_s < most_s) {
            most_s = tried.step_s;
            *plan = tried;
            memcpy(size, other, sizeof other);
            *found = true;
        }
    }
fail:
    return err;
}

/* The planners' recurrence has one board for each stage, so a few equal sizes are replayed instead.
 */
static rp_err choose_equal_sizes(const rp_joint *j, rp_joint_plan *plan) {
    uint32_t size[2] = {j->ask->run->micro, j->ask->run->micro};
    bool found = true;
    rp_err err = RP_OK;
    plan->even_s = plan->step_s;
    set_sizes(j, size[0], size[1], plan);
    while (found) {
        RP_TRY(improve_sizes(j, size, plan, &found));
    }
fail:
    return err;
}

/* ---- one board for each stage ---------------------------------------------------------------- */

/* If the planner finds no sizes, the plan keeps train.microbatch. */
static rp_err choose_own_sizes(const rp_joint *j, rp_joint_plan *plan) {
    const rp_cut cut = {.stage_count = plan->count, .first = plan->first};
    const double even_s = plan->step_s;
    rp_prediction found = {0};
    rp_size_choice choice;
    rp_runfile run;
    rp_profile profile;
    const char **names;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "sizes", 0);
    RP_TRY(rp_joint_run_of(&arena, j, plan, &run, &profile, &names));
    err = rp_choose_sizes(&run, &profile, &cut, plan->size, &choice);
    if (err != RP_OK) {
        err = err == RP_ERR_USAGE || err == RP_ERR_LIMIT ? RP_OK : err;
        goto fail;
    }
    plan->even_s = even_s;
    RP_TRY(rp_joint_predict(j, plan, j->ask->run->micro, &found));
    plan->step_s = found.step_s;
    memcpy(plan->limits, found.limits, sizeof plan->limits);
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_joint_search_sizes(rp_joint *j) {
    rp_joint_answer *out = j->out;
    rp_joint_plan sized[RP_JOINT_SIZED];
    uint32_t count = 0;
    rp_err err = RP_OK;
    if (!j->ask->run->sizes.planner || j->ask->run->sizes.at) {
        return RP_OK;
    }
    for (; count < RP_JOINT_SIZED && count < out->count && (count == 0 || !rp_joint_is_over(j));
         count++) {
        sized[count] = out->plan[count];
        RP_TRY(rp_joint_is_shared(&sized[count]) ? choose_equal_sizes(j, &sized[count])
                                                 : choose_own_sizes(j, &sized[count]));
    }
    rp_joint_relist(out, sized, count);
fail:
    return err;
}
