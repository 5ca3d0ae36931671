#include "planning/joint_own.h"

#include <string.h>

#include "planning/choose_sizes.h"

/* What the planner has no sizes for keeps train.microbatch. */
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
        RP_TRY(choose_own_sizes(j, &sized[count]));
    }
    rp_joint_list_anew(out, sized, count);
fail:
    return err;
}
