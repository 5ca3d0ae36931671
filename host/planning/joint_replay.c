#include "planning/joint_own.h"

#include <math.h>
#include <string.h>

#include "planning/fit_memory.h"
#include "planning/planfile.h"
#include "planning/some_boards.h"

rp_err rp_joint_run_of(rp_arena *arena, const rp_joint *j, const rp_joint_plan *plan,
                       rp_runfile *run, rp_profile *profile, const char ***names) {
    const rp_joint_ask *ask = j->ask;
    rp_err err;
    RP_TRY(rp_some_boards(arena, ask->run, ask->profile, plan->place, plan->count, run, profile,
                          names));
    run->stages = plan->stages;
    if (plan->schedule > 0) {
        rp_runfile_take_schedule(run, plan->schedule);
    }
    if (plan->has_advance) {
        rp_method_set_advance(&run->method, plan->stages, plan->advance);
    }
fail:
    return err;
}

/* USAGE if a plan with another schedule or an advance exceeds a board's memory. Cuts were searched
 * with the run's own schedule, which may need fewer replicas and weight versions. The bytes are
 * those of the boards' layouts. */
static rp_err check_memory(rp_arena *arena, const rp_joint *j, const rp_joint_plan *plan,
                           const rp_runfile *run, rp_plan *made) {
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    uint64_t *needs;
    bool limited = false;
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < plan->count; k++) {
        limited = limited || j->limit[plan->place[k]] > 0;
    }
    if (!limited || (plan->schedule == 0 && !plan->has_advance)) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, plan->count, &needs));
    RP_TRY(rp_fit_memory_needs(run, &cut, made, needs));
    for (uint32_t k = 0; k < plan->count; k++) {
        const double has = j->limit[plan->place[k]];
        if (has > 0 && (double)needs[k] > has) {
            return RP_ERR_USAGE;
        }
    }
fail:
    return err;
}

rp_err rp_joint_predict(const rp_joint *j, const rp_joint_plan *plan, uint32_t micro,
                        rp_prediction *found) {
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    const bool shared = rp_joint_is_shared(plan);
    rp_runfile run;
    rp_profile profile;
    const char **names;
    rp_plan *made;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "joint", 0);
    RP_TRY(rp_joint_run_of(&arena, j, plan, &run, &profile, &names));
    run.micro = micro;
    if (j->strong) {
        run.codec = plan->plain_s > 0 ? plan->codec : (const rp_codec(*)[2])j->strong;
    }
    run.sizes.at = plan->even_s > 0 ? plan->size : run.sizes.at;
    const rp_planfile chosen = {.run = &run,
                                .cut = &cut,
                                .board = names,
                                .group = shared ? plan->group : NULL,
                                .share = plan->share,
                                .profile = &profile};
    RP_TRY(rp_planfile_make(&arena, &chosen, &made));
    RP_TRY(check_memory(&arena, j, plan, &run, made));
    RP_TRY(rp_predict(&arena, &run, &profile, made, j->ask->delay_s, found));
fail:
    rp_arena_finish(&arena);
    j->out->replays++;
    found->step_s = err == RP_OK ? found->step_s : (double)INFINITY;
    return err == RP_ERR_USAGE || err == RP_ERR_FAULT ? RP_OK : err;
}

static bool cut_fits(const rp_joint *j, const rp_joint_plan *plan) {
    const bool shared = rp_joint_is_shared(plan);
    bool all = true;
    for (uint32_t k = 0, stage = 0; k < plan->count; k++) {
        stage = !shared ? k : stage + (k == plan->group[stage + 1]);
        all = all && rp_joint_fits(j, plan->place[k], plan->first[stage], plan->first[stage + 1],
                                   plan->stages - 1 - stage);
    }
    return all;
}

rp_err rp_joint_replay(const rp_joint *j, rp_joint_plan *plan) {
    rp_prediction found = {0};
    rp_err err = RP_OK;
    if (cut_fits(j, plan)) {
        RP_TRY(rp_joint_predict(j, plan, j->ask->run->micro, &found));
        plan->step_s = found.step_s;
        memcpy(plan->limits, found.limits, sizeof plan->limits);
    } else {
        plan->step_s = (double)INFINITY;
    }
fail:
    return err;
}
