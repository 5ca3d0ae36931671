#include "planning/joint_own.h"

#include <string.h>

#include "planning/cost.h"

/* Fraction of a step that a milder codec may cost, and that a stronger one must save. */
static const double NO_TIME = 0.002;

/* Starts with the codecs that rp_cost_choose_codecs() chooses for the plan's cut, or with the
 * strongest if boards share stages. */
static rp_err begin_codecs(const rp_joint *j, rp_joint_plan *plan) {
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    rp_runfile run;
    rp_profile profile;
    const char **names;
    double *rate;
    double *seconds;
    rp_arena arena;
    rp_err err = RP_OK;
    memcpy(plan->codec, j->strong, plan->stages * sizeof *plan->codec);
    if (rp_joint_is_shared(plan)) {
        return RP_OK;
    }
    rp_arena_init(&arena, "codecs", 0);
    RP_TRY(rp_joint_run_of(&arena, j, plan, &run, &profile, &names));
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)run.boards * run.boards, &rate));
    RP_TRY(RP_ARENA_NEW(&arena, 2 * (size_t)j->layers, &seconds));
    run.codec = NULL;
    rp_cost_rates(&run, &profile, rate);
    rp_profile_seconds(&profile, &run, &cut, seconds);
    RP_TRY(rp_cost_choose_codecs(&run, &cut, seconds, rate, plan->codec));
fail:
    rp_arena_finish(&arena);
    return err;
}

/* Tries a codec in slot i (boundary i / 2, direction i % 2), and keeps it if a step takes at most
 * `most_s`. */
static rp_err try_codec(const rp_joint *j, rp_joint_plan *plan, uint32_t i, rp_codec codec,
                        double most_s, bool *kept) {
    rp_codec *own = &plan->codec[i / 2][i % 2];
    const rp_codec before = *own;
    rp_prediction found = {0};
    rp_err err;
    *kept = false;
    if (codec == before) {
        return RP_OK;
    }
    *own = codec;
    RP_TRY(rp_joint_predict(j, plan, j->ask->run->micro, &found));
    *kept = found.step_s <= most_s;
    if (*kept) {
        plan->step_s = found.step_s;
        memcpy(plan->limits, found.limits, sizeof plan->limits);
    } else {
        *own = before;
    }
fail:
    return err;
}

/* Takes stronger codecs while that saves time, then milder ones that cost none. */
static rp_err refine_codecs(rp_joint *j, rp_joint_plan *plan) {
    const rp_runfile *run = j->ask->run;
    const uint32_t slots = 2 * (plan->stages - 1);
    bool any = true;
    bool kept;
    rp_err err = RP_OK;
    while (any && !rp_joint_is_over(j)) {
        any = false;
        for (uint32_t i = 0; i < slots && !rp_joint_is_over(j); i++) {
            const rp_codec more = rp_cost_stronger(run, plan->codec[i / 2][i % 2], i % 2);
            RP_TRY(try_codec(j, plan, i, more, (1 - NO_TIME) * plan->step_s, &kept));
            any = any || kept;
        }
    }
    for (uint32_t i = 0; i < slots && !rp_joint_is_over(j); i++) {
        const double most_s = plan->step_s * (1 + NO_TIME / slots);
        RP_TRY(try_codec(j, plan, i, RP_CODEC_F32, most_s, &kept));
        for (kept = !kept; kept && !rp_joint_is_over(j);) {
            const rp_codec less = rp_cost_milder(plan->codec[i / 2][i % 2], i % 2);
            RP_TRY(try_codec(j, plan, i, less, plan->step_s * (1 + NO_TIME / slots), &kept));
        }
    }
fail:
    return err;
}

static rp_err choose_codecs(rp_joint *j, rp_joint_plan *plan) {
    static const rp_codec none[RP_JOINT_BOARDS_MAX][2]; /* f32 */
    rp_prediction found = {0};
    rp_err err;
    plan->plain_s = 1; /* so that rp_joint_predict() uses plan->codec */
    memcpy(plan->codec, none, sizeof none);
    RP_TRY(rp_joint_predict(j, plan, j->ask->run->micro, &found));
    const rp_prediction plain = found;
    RP_TRY(begin_codecs(j, plan));
    RP_TRY(rp_joint_predict(j, plan, j->ask->run->micro, &found));
    if (!(found.step_s < plain.step_s)) { /* encoding costs more than it saves */
        memcpy(plan->codec, none, sizeof none);
        found = plain;
    }
    plan->step_s = found.step_s;
    memcpy(plan->limits, found.limits, sizeof plan->limits);
    RP_TRY(refine_codecs(j, plan));
    plan->plain_s = plain.step_s;
fail:
    return err;
}

rp_err rp_joint_search_codecs(rp_joint *j) {
    rp_joint_answer *out = j->out;
    rp_joint_plan own[RP_JOINT_SIZED];
    uint32_t count = 0;
    rp_err err = RP_OK;
    for (; j->strong && count < RP_JOINT_SIZED && count < out->count &&
           (count == 0 || !rp_joint_is_over(j));
         count++) {
        own[count] = out->plan[count];
        RP_TRY(own[count].stages > 1 ? choose_codecs(j, &own[count]) : RP_OK);
    }
    rp_joint_relist(out, own, count);
fail:
    return err;
}
