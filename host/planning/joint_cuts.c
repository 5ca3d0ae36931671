#include "planning/joint_own.h"

#include <math.h>
#include <string.h>

#include "planning/cost.h"

enum { NEAR = 24 }; /* most cuts to try near the fastest */

static void take_cut(rp_joint_plan *plan, rp_joint_origin origin, const rp_cut *cut) {
    plan->origin = origin;
    plan->stages = plan->count;
    memcpy(plan->first, cut->first, ((size_t)plan->count + 1) * sizeof *plan->first);
}

static rp_err make_alike(rp_arena *arena, const rp_joint *j, rp_joint_plan *plan) {
    double *seconds;
    rp_cut cut;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)j->layers, &seconds));
    rp_profile_seconds_of(j->ask->profile, 0, seconds);
    RP_TRY(rp_cost_choose_cut(arena, j->ask->run, seconds, &cut));
    take_cut(plan, RP_JOINT_ALIKE, &cut);
fail:
    return err;
}

static rp_err make_matched(rp_arena *arena, const rp_joint *j, rp_joint_plan *plan) {
    rp_cut cut;
    rp_err err;
    RP_TRY(rp_cost_choose_cut_by_board(arena, j->ask->run, j->ask->profile, &cut));
    take_cut(plan, RP_JOINT_MATCHED, &cut);
fail:
    return err;
}

static bool has_same_cut(const rp_joint_plan *a, const rp_joint_plan *b) {
    return memcmp(a->first, b->first, ((size_t)a->count + 1) * sizeof *a->first) == 0;
}

void rp_joint_prefer_matched(rp_joint_answer *out, uint32_t boards) {
    uint32_t at = 0;
    while (at < out->count && out->plan[at].origin != RP_JOINT_MATCHED) {
        at++;
    }
    if (at == out->count || !rp_joint_is_ring(&out->plan[0], boards) ||
        out->plan[0].step_s < (1 - RP_JOINT_WORTH) * out->plan[at].step_s) {
        return;
    }
    const rp_joint_plan matched = out->plan[at];
    memmove(&out->plan[1], &out->plan[0], at * sizeof *out->plan);
    out->plan[0] = matched;
}

rp_err rp_joint_cut_as_it_is(rp_arena *arena, rp_joint *j, const rp_joint_plan *now,
                             bool *dp_fits) {
    rp_joint_answer *out = j->out;
    rp_joint_plan dp = *now;
    rp_err err;
    out->alike = out->now = *now;
    RP_TRY(make_matched(arena, j, &out->now));
    RP_TRY(make_alike(arena, j, &out->alike));
    RP_TRY(rp_joint_replay(j, &out->now));
    rp_joint_list(out, &out->now);
    if (has_same_cut(&out->alike, &out->now)) {
        out->alike.step_s = out->now.step_s;
    } else {
        RP_TRY(rp_joint_replay(j, &out->alike));
        rp_joint_list(out, &out->alike);
    }
    RP_TRY(rp_joint_cut_ring(j, 1, &dp));
    *dp_fits = isfinite(dp.step_s);
    if (*dp_fits && !has_same_cut(&dp, &out->now) && !has_same_cut(&dp, &out->alike)) {
        RP_TRY(rp_joint_replay(j, &dp));
        rp_joint_list(out, &dp);
    }
    for (uint32_t k = 0; k < now->count; k++) {
        out->micro_s[k] =
            rp_joint_board_s(j, k, out->now.first[k], out->now.first[k + 1], now->count - 1 - k);
    }
fail:
    return err;
}

static bool is_listed(const rp_joint_answer *out, const rp_joint_plan *plan) {
    bool found = false;
    for (uint32_t i = 0; i < out->count; i++) {
        found = found ||
                (rp_joint_is_ring(&out->plan[i], plan->count) && has_same_cut(&out->plan[i], plan));
    }
    return found;
}

static rp_err try_near(rp_joint *j, const rp_joint_plan *from, uint32_t *left) {
    rp_err err = RP_OK;
    for (uint32_t i = 2; i<2 * from->count && * left> 0 && !rp_joint_is_over(j); i++) {
        rp_joint_plan other = *from;
        uint32_t *own = &other.first[i / 2];
        *own = i % 2 ? *own + 1 : *own - 1;
        if (own[-1] < own[0] && own[0] < own[1] && !is_listed(j->out, &other)) {
            other.origin = RP_JOINT_NEAR;
            (*left)--;
            RP_TRY(rp_joint_replay(j, &other));
            rp_joint_list(j->out, &other);
        }
    }
fail:
    return err;
}

rp_err rp_joint_search_near(rp_joint *j, uint32_t boards) {
    rp_joint_answer *out = j->out;
    uint32_t left = NEAR;
    double before_s = (double)INFINITY;
    rp_err err = RP_OK;
    while (out->count > 0 && rp_joint_is_ring(&out->plan[0], boards) &&
           out->plan[0].step_s < before_s) {
        const rp_joint_plan from = out->plan[0];
        before_s = from.step_s;
        RP_TRY(try_near(j, &from, &left));
    }
fail:
    return err;
}
