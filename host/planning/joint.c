#include "planning/joint.h"

#include <math.h>
#include <string.h>

#include "planning/choose_sizes.h"
#include "planning/cost.h"
#include "planning/dp_cut.h"
#include "planning/least_memory.h"
#include "planning/planfile.h"
#include "planning/sums.h"

enum { ALL_BOARDS = 5, REPLAYS = 6, ROUNDS = 600, SWEEPS = 16, NEAR = 24, SIZED = 3, MICROS = 3 };
/* Of a step, that another cut of the same ring saves where it is taken: less is noise. */
static const double WORTH = 0.01;

/* The ring as it is, summed up: what the layers in front of one cost. */
typedef struct {
    const rp_joint_ask *ask;
    uint32_t layers, micros, rounds;
    int64_t start_ns;
    rp_sums sums;
    uint32_t *statistics;  /* [layers + 1]: layers in front with statistics of a batch */
    double *limit;         /* [boards]: bytes that each may use, 0: not known */
    rp_codec (*strong)[2]; /* [boards]: the strongest codecs, where they are open; NULL */
    double *bytes;         /* [layers]: that cross in front of it, one way; infinite: too much */
    rp_least_memory memory;
    struct {
        rp_joint_plan plan[REPLAYS];
        uint32_t count;
    } kept[2]; /* the best by dp-cut, rising, step_s is its cost; [1]: of those with shared stages,
                  whose cost is nearer to a guess */
    rp_joint_answer *out;
} joint;

/* A ring of these boards alone. */
typedef struct {
    const joint *of;
    const rp_joint_plan *plan;
} ring;

/* ---- what a stage and a wire take ------------------------------------------------------------ */

static double compute_s(const joint *j, uint32_t place, uint32_t first, uint32_t end,
                        uint32_t back) {
    return rp_sums_op_s(&j->sums, place, first, end, back) +
           rp_profile_handling_s(j->ask->profile, place);
}

static bool fits(const joint *j, uint32_t place, uint32_t first, uint32_t end, uint32_t behind) {
    const double has = j->limit[place];
    return has <= 0 || rp_least_memory_of(&j->memory, first, end, behind) <= has;
}

static double board_s(const joint *j, uint32_t place, uint32_t first, uint32_t end,
                      uint32_t behind) {
    return fits(j, place, first, end, behind)
               ? compute_s(j, place, first, end, 0) + compute_s(j, place, first, end, 1)
               : (double)INFINITY;
}

/* Each board of a group sends its gradients to all others, once a step. Of a microbatch. */
static double exchange_s(const ring *r, rp_dp_group group, uint32_t first, uint32_t end) {
    const rp_joint_ask *ask = r->of->ask;
    const double bytes = (double)sizeof(float) * (double)rp_model_param_count(
                                                     ask->run->model, RP_PARAM_TRAINED, first, end);
    double most = 0;
    for (uint32_t i = 0; i < group.count * group.count; i++) {
        const uint32_t from = r->plan->place[group.first + i / group.count];
        const uint32_t to = r->plan->place[group.first + i % group.count];
        most =
            from != to ? fmax(most, rp_cost_wire_s(ask->run, ask->profile, from, to, bytes)) : most;
    }
    return most * (group.count - 1) / r->of->micros;
}

/* The samples shared out so that all boards of the group end at once. */
static double stage_s(const void *context, rp_dp_group group, uint32_t first, uint32_t end,
                      uint32_t behind) {
    const ring *r = context;
    const joint *j = r->of;
    double speed = 0;
    if (group.count == 1) {
        return board_s(j, r->plan->place[group.first], first, end, behind);
    }
    if (j->statistics[end] > j->statistics[first] || group.count > j->micros) {
        return (double)INFINITY;
    }
    for (uint32_t k = group.first; k < group.first + group.count; k++) {
        const double own = board_s(j, r->plan->place[k], first, end, behind);
        if (!(own > 0) || isinf(own)) {
            return own > 0 ? own : 0;
        }
        speed += 1 / own;
    }
    return 1 / speed + exchange_s(r, group, first, end);
}

/* Both ways, one behind the other: what is in use in both directions seldom has its rate in each.
 */
static double between_s(const joint *j, uint32_t near, uint32_t far, double bytes) {
    const rp_joint_ask *ask = j->ask;
    return rp_cost_wire_s(ask->run, ask->profile, near, far, bytes) +
           rp_cost_wire_s(ask->run, ask->profile, far, near, bytes);
}

/* Between groups the samples take several wires, of which the slowest counts. */
static double wire_s(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer) {
    const ring *r = context;
    const double bytes = r->of->bytes[layer];
    double most = 0;
    for (uint32_t a = from.first; a < from.first + from.count; a++) {
        for (uint32_t b = to.first; b < to.first + to.count; b++) {
            most = fmax(most, between_s(r->of, r->plan->place[a], r->plan->place[b], bytes));
        }
    }
    return most / (from.count > to.count ? from.count : to.count);
}

/* By the speeds of its boards for it, in whole microbatches, one at least each. */
static void share_out(const joint *j, rp_joint_plan *plan, uint32_t stage) {
    const uint32_t begin = plan->group[stage];
    const uint32_t end = plan->group[stage + 1];
    const uint32_t behind = plan->stages - 1 - stage;
    double all = 0;
    double sum = 0;
    uint32_t taken = 0;
    for (uint32_t k = begin; k < end; k++) {
        all +=
            1 / fmax(board_s(j, plan->place[k], plan->first[stage], plan->first[stage + 1], behind),
                     1e-12);
    }
    for (uint32_t k = begin; k < end; k++) {
        sum +=
            1 / fmax(board_s(j, plan->place[k], plan->first[stage], plan->first[stage + 1], behind),
                     1e-12);
        const uint32_t left = end - 1 - k; /* boards that need one yet */
        const uint32_t wanted = (uint32_t)(j->micros * sum / all + 0.5);
        const uint32_t most = j->micros - left;
        taken = wanted <= taken ? taken + 1 : wanted > most ? most : wanted;
        plan->share[k] =
            k + 1 == end ? 1 : fmin(1, (double)taken * j->ask->run->micro / j->ask->run->batch);
    }
}

/* With a flush the pipe is filled in each step. step_s infinite: no cut is allowed. */
static rp_err cut_ring(const joint *j, uint32_t share_most, rp_joint_plan *plan) {
    const bool flushed = j->ask->run->method.kind->flushed;
    const ring of = {j, plan};
    const rp_dp_ask ask = {.layers = j->layers,
                           .boards = plan->count,
                           .share_most = share_most < plan->count ? share_most : plan->count,
                           .steady = j->micros - flushed,
                           .fill = flushed,
                           .stage_s = stage_s,
                           .wire_s = wire_s,
                           .context = &of,
                           .rounds = SWEEPS};
    rp_dp_answer answer = {.cost = (double)INFINITY};
    const bool may = share_most > 1 || plan->count <= j->layers;
    const rp_err err = may ? rp_dp_cut(&ask, &answer) : RP_OK;
    plan->origin = RP_JOINT_DP_CUT;
    plan->step_s = answer.cost;
    plan->stages = answer.stage_count;
    for (uint32_t k = 0; err == RP_OK && isfinite(answer.cost) && k <= plan->stages; k++) {
        plan->first[k] = answer.first[k];
        plan->group[k] = k < plan->stages ? answer.group[k].first : plan->count;
    }
    for (uint32_t k = 0; rp_joint_is_shared(plan) && isfinite(answer.cost) && k < plan->stages;
         k++) {
        share_out(j, plan, k);
    }
    return err;
}

/* ---- a replay -------------------------------------------------------------------------------- */

/* The run and the profile as if only these boards were there. */
static rp_err run_of(rp_arena *arena, const joint *j, const rp_joint_plan *plan, rp_runfile *run,
                     rp_profile *profile, const char ***names) {
    rp_roster_entry *roster;
    rp_err err;
    *run = *j->ask->run;
    *profile = *j->ask->profile;
    RP_TRY(RP_ARENA_NEW(arena, plan->count, &roster));
    RP_TRY(RP_ARENA_NEW(arena, plan->count, names));
    RP_TRY(RP_ARENA_NEW(arena, profile->board_count, &profile->place));
    for (uint32_t k = 0; k < plan->count; k++) {
        const uint32_t place = plan->place[k];
        char *own;
        RP_TRY(rp_arena_printf(arena, &own, "%u", place)); /* as ring.throttle names it */
        roster[k] = run->roster ? run->roster[place] : (rp_roster_entry){.name = own};
        (*names)[k] = roster[k].name;
        profile->place[k] = j->ask->profile->place[place];
    }
    run->roster = roster;
    run->boards = plan->count;
    run->stages = plan->stages;
fail:
    return err;
}

static rp_err predict(const joint *j, const rp_joint_plan *plan, uint32_t micro,
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
    RP_TRY(run_of(&arena, j, plan, &run, &profile, &names));
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
    RP_TRY(rp_predict(&arena, &run, &profile, made, j->ask->delay_s, found));
fail:
    rp_arena_finish(&arena);
    j->out->replays++;
    found->step_s = err == RP_OK ? found->step_s : (double)INFINITY;
    return err == RP_ERR_USAGE || err == RP_ERR_FAULT ? RP_OK : err;
}

static bool cut_fits(const joint *j, const rp_joint_plan *plan) {
    const bool shared = rp_joint_is_shared(plan);
    bool all = true;
    for (uint32_t k = 0, stage = 0; k < plan->count; k++) {
        stage = !shared ? k : stage + (k == plan->group[stage + 1]);
        all = all && fits(j, plan->place[k], plan->first[stage], plan->first[stage + 1],
                          plan->stages - 1 - stage);
    }
    return all;
}

/* Into the list, by step_s; one that can not be goes nowhere. */
static void list(rp_joint_answer *out, const rp_joint_plan *plan) {
    const uint32_t room = RP_JOINT_PLANS_MAX;
    uint32_t at = out->count < room ? out->count : room;
    if (!isfinite(plan->step_s) || (at == room && out->plan[room - 1].step_s <= plan->step_s)) {
        return;
    }
    out->count = at < room ? at + 1 : room;
    for (at = out->count - 1; at > 0 && out->plan[at - 1].step_s > plan->step_s; at--) {
        out->plan[at] = out->plan[at - 1];
    }
    out->plan[at] = *plan;
}

static rp_err replay(const joint *j, rp_joint_plan *plan) {
    rp_prediction found = {0};
    rp_err err = RP_OK;
    if (cut_fits(j, plan)) {
        RP_TRY(predict(j, plan, j->ask->run->micro, &found));
        plan->step_s = found.step_s;
        memcpy(plan->limits, found.limits, sizeof plan->limits);
    } else {
        plan->step_s = (double)INFINITY;
    }
fail:
    return err;
}

/* ---- rings ----------------------------------------------------------------------------------- */

static bool has_same_boards(const rp_joint_plan *a, const rp_joint_plan *b) {
    bool same = a->count == b->count;
    for (uint32_t k = 0; same && k < a->count; k++) {
        same = rp_joint_has(b, a->place[k]);
    }
    return same;
}

/* Of each set of boards the best order, shared or not: else the last ones would be orders of one.
 */
static void keep(joint *j, const rp_joint_plan *plan) {
    rp_joint_plan *kept = j->kept[rp_joint_is_shared(plan)].plan;
    uint32_t *count = &j->kept[rp_joint_is_shared(plan)].count;
    uint32_t at = 0;
    while (at < *count && !has_same_boards(&kept[at], plan)) {
        at++;
    }
    if (at < *count && kept[at].step_s <= plan->step_s) {
        return;
    }
    if (at == REPLAYS) {
        at = REPLAYS - 1;
        if (kept[at].step_s <= plan->step_s) {
            return;
        }
    }
    *count += at == *count;
    for (; at > 0 && kept[at - 1].step_s > plan->step_s; at--) {
        kept[at] = kept[at - 1];
    }
    kept[at] = *plan;
}

static bool is_over(const joint *j) {
    const rp_joint_ask *ask = j->ask;
    const bool late =
        ask->limit_ns > 0 && rp_clock_now_ns(ask->clock) - j->start_ns >= ask->limit_ns;
    const bool over = late || j->out->tried >= j->rounds;
    j->out->is_complete = j->out->is_complete && !over;
    return over;
}

static rp_err try_ring(joint *j, rp_joint_plan *plan) {
    const rp_err err = cut_ring(j, 1, plan);
    j->out->tried++;
    if (err == RP_OK && isfinite(plan->step_s)) {
        keep(j, plan);
    }
    return err;
}

/* Every order of every set that begins as `plan` does. */
static rp_err try_all(joint *j, rp_joint_plan *plan, uint32_t used) {
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < j->ask->run->boards; k++) {
        if (used & 1u << k || is_over(j)) {
            continue;
        }
        plan->place[plan->count++] = k;
        RP_TRY(try_ring(j, plan));
        RP_TRY(try_all(j, plan, used | 1u << k));
        plan->count--;
    }
fail:
    return err;
}

static rp_joint_plan without(const rp_joint_plan *plan, uint32_t at) {
    rp_joint_plan fewer = *plan;
    fewer.stages = 0; /* not cut yet */
    fewer.count--;
    memmove(&fewer.place[at], &fewer.place[at + 1], (fewer.count - at) * sizeof *fewer.place);
    return fewer;
}

static rp_joint_plan with(const rp_joint_plan *plan, uint32_t at, uint32_t place) {
    rp_joint_plan more = *plan;
    memmove(&more.place[at + 1], &more.place[at], (plan->count - at) * sizeof *more.place);
    more.place[at] = place;
    more.count++;
    return more;
}

static rp_err try_better(joint *j, rp_joint_plan *other, rp_joint_plan *best) {
    const rp_err err = try_ring(j, other);
    *best = err == RP_OK && other->step_s < best->step_s ? *other : *best;
    return err;
}

static rp_err try_fewer(joint *j, const rp_joint_plan *from, rp_joint_plan *best) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; from->count > 1 && i < from->count && !is_over(j); i++) {
        rp_joint_plan other = without(from, i);
        RP_TRY(try_better(j, &other, best));
    }
fail:
    return err;
}

static rp_err try_more(joint *j, const rp_joint_plan *from, rp_joint_plan *best) {
    rp_err err = RP_OK;
    for (uint32_t place = 0; place < j->ask->run->boards; place++) {
        const bool is_out = !rp_joint_has(from, place);
        for (uint32_t i = 0; is_out && i <= from->count && !is_over(j); i++) {
            rp_joint_plan other = with(from, i, place);
            RP_TRY(try_better(j, &other, best));
        }
    }
fail:
    return err;
}

static rp_err try_exchanged(joint *j, const rp_joint_plan *from, rp_joint_plan *best) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < from->count; i++) {
        for (uint32_t k = i + 1; k < from->count && !is_over(j); k++) {
            rp_joint_plan other = *from;
            other.place[i] = from->place[k];
            other.place[k] = from->place[i];
            RP_TRY(try_better(j, &other, best));
        }
    }
fail:
    return err;
}

/* Fewer boards first: there are few of them, and they cost least. */
static rp_err climb(joint *j, rp_joint_plan *best) {
    rp_joint_plan from;
    rp_err err;
    do {
        from = *best;
        RP_TRY(try_fewer(j, &from, best));
        if (!(best->step_s < from.step_s)) {
            RP_TRY(try_more(j, &from, best));
        }
        if (!(best->step_s < from.step_s)) {
            RP_TRY(try_exchanged(j, &from, best));
        }
    } while (best->step_s < from.step_s && !is_over(j));
fail:
    return err;
}

static double whole_s(const joint *j, uint32_t place) {
    return compute_s(j, place, 0, j->layers, 0) + compute_s(j, place, 0, j->layers, 1);
}

/* The fastest first; boards that are alike in the order of their places. */
static void sort_by_speed(const joint *j, rp_joint_plan *plan) {
    for (uint32_t i = 1; i < plan->count; i++) {
        const uint32_t own = plan->place[i];
        uint32_t at = i;
        for (; at > 0 && whole_s(j, plan->place[at - 1]) > whole_s(j, own); at--) {
            plan->place[at] = plan->place[at - 1];
        }
        plan->place[at] = own;
    }
}

/* The ring without its slowest boards, half as many each time: in its order, and by speed. */
static rp_err try_fastest(joint *j, const rp_joint_plan *now, rp_joint_plan *best) {
    rp_joint_plan fast = *now;
    rp_err err = RP_OK;
    sort_by_speed(j, &fast);
    for (; fast.count > 0 && !is_over(j); fast.count -= (fast.count + 3) / 4) {
        rp_joint_plan row = fast;
        for (uint32_t k = 0, at = 0; k < now->count; k++) {
            for (uint32_t i = 0; i < fast.count; i++) {
                if (fast.place[i] == now->place[k]) {
                    row.place[at++] = now->place[k];
                }
            }
        }
        RP_TRY(try_better(j, &row, best));
        RP_TRY(try_better(j, &fast, best));
    }
fail:
    return err;
}

static rp_err search_rings(joint *j, const rp_joint_plan *now) {
    rp_joint_plan none = {.count = 0};
    rp_joint_plan best = *now;
    rp_err err;
    if (now->count <= ALL_BOARDS) {
        return try_all(j, &none, 0);
    }
    RP_TRY(try_ring(j, &best));
    RP_TRY(try_fastest(j, now, &best));
    RP_TRY(climb(j, &best));
fail:
    return err;
}

/* ---- the ring as it is ----------------------------------------------------------------------- */

static void take_cut(rp_joint_plan *plan, rp_joint_origin origin, const rp_cut *cut) {
    plan->origin = origin;
    plan->stages = plan->count;
    memcpy(plan->first, cut->first, ((size_t)plan->count + 1) * sizeof *plan->first);
}

static rp_err make_alike(rp_arena *arena, const joint *j, rp_joint_plan *plan) {
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

static rp_err make_matched(rp_arena *arena, const joint *j, rp_joint_plan *plan) {
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

/* What a cut saves too little by is behind the cut by speed: measured twice, it may be the other
 * way round. */
static void prefer_matched(rp_joint_answer *out, uint32_t boards) {
    uint32_t at = 0;
    while (at < out->count && out->plan[at].origin != RP_JOINT_MATCHED) {
        at++;
    }
    if (at == out->count || !rp_joint_is_ring(&out->plan[0], boards) ||
        out->plan[0].step_s < (1 - WORTH) * out->plan[at].step_s) {
        return;
    }
    const rp_joint_plan matched = out->plan[at];
    memmove(&out->plan[1], &out->plan[0], at * sizeof *out->plan);
    out->plan[0] = matched;
}

static rp_err cut_as_it_is(rp_arena *arena, joint *j, const rp_joint_plan *now, bool *dp_fits) {
    rp_joint_answer *out = j->out;
    rp_joint_plan dp = *now;
    rp_err err;
    out->alike = out->now = *now;
    RP_TRY(make_matched(arena, j, &out->now));
    RP_TRY(make_alike(arena, j, &out->alike));
    RP_TRY(replay(j, &out->now));
    list(out, &out->now);
    if (has_same_cut(&out->alike, &out->now)) {
        out->alike.step_s = out->now.step_s;
    } else {
        RP_TRY(replay(j, &out->alike));
        list(out, &out->alike);
    }
    RP_TRY(cut_ring(j, 1, &dp));
    *dp_fits = isfinite(dp.step_s);
    if (*dp_fits && !has_same_cut(&dp, &out->now) && !has_same_cut(&dp, &out->alike)) {
        RP_TRY(replay(j, &dp));
        list(out, &dp);
    }
    for (uint32_t k = 0; k < now->count; k++) {
        const ring of = {j, now};
        out->micro_s[k] = stage_s(&of, (rp_dp_group){k, 1}, out->now.first[k],
                                  out->now.first[k + 1], now->count - 1 - k);
    }
fail:
    return err;
}

/* ---- cuts near the best one ------------------------------------------------------------------ */

static bool is_listed(const rp_joint_answer *out, const rp_joint_plan *plan) {
    bool found = false;
    for (uint32_t i = 0; i < out->count; i++) {
        found = found ||
                (rp_joint_is_ring(&out->plan[i], plan->count) && has_same_cut(&out->plan[i], plan));
    }
    return found;
}

static rp_err try_near(joint *j, const rp_joint_plan *from, uint32_t *left) {
    rp_err err = RP_OK;
    for (uint32_t i = 2; i<2 * from->count && * left> 0 && !is_over(j); i++) {
        rp_joint_plan other = *from;
        uint32_t *own = &other.first[i / 2];
        *own = i % 2 ? *own + 1 : *own - 1;
        if (own[-1] < own[0] && own[0] < own[1] && !is_listed(j->out, &other)) {
            other.origin = RP_JOINT_NEAR;
            (*left)--;
            RP_TRY(replay(j, &other));
            list(j->out, &other);
        }
    }
fail:
    return err;
}

static rp_err search_near(joint *j, uint32_t boards) {
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

/* ---- sizes by stage and direction ------------------------------------------------------------ */

/* What the planner has no sizes for keeps train.microbatch. */
static rp_err choose_own_sizes(const joint *j, rp_joint_plan *plan) {
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
    RP_TRY(run_of(&arena, j, plan, &run, &profile, &names));
    err = rp_choose_sizes(&run, &profile, &cut, plan->size, &choice);
    if (err != RP_OK) {
        err = err == RP_ERR_USAGE || err == RP_ERR_LIMIT ? RP_OK : err;
        goto fail;
    }
    plan->even_s = even_s;
    RP_TRY(predict(j, plan, j->ask->run->micro, &found));
    plan->step_s = found.step_s;
    memcpy(plan->limits, found.limits, sizeof plan->limits);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* The first `count` plans of the answer have changed: each to where its time puts it now. */
static void list_anew(rp_joint_answer *out, const rp_joint_plan *changed, uint32_t count) {
    out->count -= count;
    memmove(out->plan, out->plan + count, out->count * sizeof *out->plan);
    for (uint32_t i = 0; i < count; i++) {
        list(out, &changed[i]);
    }
}

static rp_err search_sizes(joint *j) {
    rp_joint_answer *out = j->out;
    rp_joint_plan sized[SIZED];
    uint32_t count = 0;
    rp_err err = RP_OK;
    if (!j->ask->run->sizes.planner || j->ask->run->sizes.at) {
        return RP_OK;
    }
    for (; count < SIZED && count < out->count && (count == 0 || !is_over(j)); count++) {
        sized[count] = out->plan[count];
        RP_TRY(choose_own_sizes(j, &sized[count]));
    }
    list_anew(out, sized, count);
fail:
    return err;
}

/* ---- codecs ---------------------------------------------------------------------------------- */

/* Of a step, that a milder codec may cost, and that a stronger one has to save. */
static const double NO_TIME = 0.002;

/* As they are chosen for a ring whose cut is known; where boards share stages, the strongest. */
static rp_err begin_codecs(const joint *j, rp_joint_plan *plan) {
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
    RP_TRY(run_of(&arena, j, plan, &run, &profile, &names));
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

/* Kept where a step takes at most so long. */
static rp_err try_codec(const joint *j, rp_joint_plan *plan, uint32_t i, rp_codec codec,
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
    RP_TRY(predict(j, plan, j->ask->run->micro, &found));
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

/* Stronger ones where that saves time, as long as it does; then milder ones where it costs none. */
static rp_err refine_codecs(joint *j, rp_joint_plan *plan) {
    const rp_runfile *run = j->ask->run;
    const uint32_t slots = 2 * (plan->stages - 1);
    bool any = true;
    bool kept;
    rp_err err = RP_OK;
    while (any && !is_over(j)) {
        any = false;
        for (uint32_t i = 0; i < slots && !is_over(j); i++) {
            const rp_codec more = rp_cost_stronger(run, plan->codec[i / 2][i % 2], i % 2);
            RP_TRY(try_codec(j, plan, i, more, (1 - NO_TIME) * plan->step_s, &kept));
            any = any || kept;
        }
    }
    for (uint32_t i = 0; i < slots && !is_over(j); i++) {
        const double most_s = plan->step_s * (1 + NO_TIME / slots);
        RP_TRY(try_codec(j, plan, i, RP_CODEC_F32, most_s, &kept));
        for (kept = !kept; kept && !is_over(j);) {
            const rp_codec less = rp_cost_milder(plan->codec[i / 2][i % 2], i % 2);
            RP_TRY(try_codec(j, plan, i, less, plan->step_s * (1 + NO_TIME / slots), &kept));
        }
    }
fail:
    return err;
}

static rp_err choose_codecs(joint *j, rp_joint_plan *plan) {
    static const rp_codec none[RP_JOINT_BOARDS_MAX][2]; /* f32 */
    rp_prediction found = {0};
    rp_err err;
    plan->plain_s = 1; /* its own are taken */
    memcpy(plan->codec, none, sizeof none);
    RP_TRY(predict(j, plan, j->ask->run->micro, &found));
    const rp_prediction plain = found;
    RP_TRY(begin_codecs(j, plan));
    RP_TRY(predict(j, plan, j->ask->run->micro, &found));
    if (!(found.step_s < plain.step_s)) { /* to encode takes longer than it saves */
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

static rp_err search_codecs(joint *j) {
    rp_joint_answer *out = j->out;
    rp_joint_plan own[SIZED];
    uint32_t count = 0;
    rp_err err = RP_OK;
    for (; j->strong && count < SIZED && count < out->count && (count == 0 || !is_over(j));
         count++) {
        own[count] = out->plan[count];
        RP_TRY(own[count].stages > 1 ? choose_codecs(j, &own[count]) : RP_OK);
    }
    list_anew(out, own, count);
fail:
    return err;
}

/* ---- a bound, a size ------------------------------------------------------------------------- */

/* Of a layer as it was measured: what holds a board back besides is not shared out by layers. */
static double layer_s(const joint *j, uint32_t place, uint32_t layer) {
    return rp_profile_slower(j->ask->profile, place) *
           (rp_sums_pass_s(&j->sums, place, layer, layer + 1, false) +
            rp_sums_pass_s(&j->sums, place, layer, layer + 1, true));
}

static double fastest_s(const joint *j, uint32_t layer) {
    double least = (double)INFINITY;
    for (uint32_t k = 0; k < j->ask->run->boards; k++) {
        least = fmin(least, layer_s(j, k, layer));
    }
    return least;
}

/* All layers on all boards at once, each with the speed of the layer that it is best at. */
static double work_bound_s(const joint *j) {
    double work = 0;
    double speed = 0;
    for (uint32_t i = 0; i < j->layers; i++) {
        work += fastest_s(j, i);
    }
    for (uint32_t k = 0; k < j->ask->run->boards; k++) {
        double best = 0;
        for (uint32_t i = 0; i < j->layers; i++) {
            const double own = layer_s(j, k, i);
            best = own > 0 ? fmax(best, fastest_s(j, i) / own) : best;
        }
        speed += best;
    }
    return speed > 0 ? work / speed : 0;
}

/* One board alone, or several with the cheapest wire in use for a microbatch, one way. */
static double bound_s(const joint *j) {
    const rp_joint_ask *ask = j->ask;
    const uint32_t boards = ask->run->boards;
    double alone_s = (double)INFINITY;
    double across_s = (double)INFINITY;
    for (uint32_t from = 0; from < boards; from++) {
        alone_s = fmin(alone_s, whole_s(j, from));
        for (uint32_t to = 0; to < boards; to++) {
            for (uint32_t i = 1; from != to && i < j->layers; i++) {
                across_s =
                    fmin(across_s, rp_cost_wire_s(ask->run, ask->profile, from, to, j->bytes[i]));
            }
        }
    }
    return j->micros * fmin(alone_s, fmax(work_bound_s(j), across_s));
}

static bool may_have_other_micro(const joint *j) {
    const uint32_t whole[] = {0, j->layers};
    const rp_cut cut = {.stage_count = 1, .first = whole};
    const rp_runfile *run = j->ask->run;
    return !run->sizes.planner && !run->sizes.at && run->method.kind->flushed &&
           !rp_cut_whole_layer(run->model, &cut, 0);
}

/* Besides what a board measures of an op's handling when it does nothing else: without it the
 * smallest microbatch always wins. As real rings have shown on a busy machine. */
static const double HANDLING_S = 1e-3;

static double handled_s(const joint *j, uint32_t micro) {
    return 2 * HANDLING_S * ((j->ask->run->batch - 1) / micro + 1);
}

/* Halves and doubles of the run's, which is never changed here: somebody has said it. */
static rp_err find_micro(joint *j) {
    rp_joint_answer *out = j->out;
    const uint32_t own = j->ask->run->micro;
    const double own_s = out->plan[0].step_s;
    double least_s = own_s + handled_s(j, own);
    rp_err err = RP_OK;
    out->micro = own;
    out->micro_step_s = own_s;
    for (uint32_t power = 0; power < 12 && may_have_other_micro(j) && !is_over(j); power++) {
        const uint32_t micro = 1u << power;
        rp_prediction found = {0};
        if (micro == own || micro > j->ask->run->batch || 8 * micro < own || micro > 8 * own) {
            continue;
        }
        RP_TRY(predict(j, &out->plan[0], micro, &found));
        if (found.step_s < own_s && found.step_s + handled_s(j, micro) < least_s) {
            least_s = found.step_s + handled_s(j, micro);
            out->micro_step_s = found.step_s;
            out->micro = micro;
        }
    }
fail:
    return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

static rp_err sum_up(rp_arena *arena, joint *j) {
    const rp_runfile *run = j->ask->run;
    rp_runfile encoded = *run;
    rp_err err;
    if (j->ask->codecs_open) {
        RP_TRY(RP_ARENA_NEW(arena, run->boards, &j->strong));
        for (uint32_t i = 0; i < 2 * run->boards; i++) {
            j->strong[i / 2][i % 2] = rp_cost_strongest(run, i % 2);
        }
        encoded.codec = (const rp_codec(*)[2])j->strong;
    }
    RP_TRY(RP_ARENA_NEW(arena, j->layers, &j->bytes));
    RP_TRY(rp_least_memory_open(arena, run, run->boards, &j->memory));
    RP_TRY(rp_sums_open(arena, run, j->ask->profile, &j->sums));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)j->layers + 1, &j->statistics));
    for (uint32_t i = 0; i < j->layers; i++) {
        j->statistics[i + 1] =
            j->statistics[i] + (rp_model_param_count(run->model, RP_PARAM_STATE, i, i + 1) > 0);
    }
    RP_TRY(RP_ARENA_NEW(arena, run->boards, &j->limit));
    for (uint32_t k = 0; k < run->boards; k++) {
        j->limit[k] = (double)rp_least_memory_limit(run, j->ask->profile, k);
    }
    for (uint32_t i = 1; i < j->layers; i++) {
        j->bytes[i] = rp_cost_boundary_bytes(&encoded, i);
    }
fail:
    return err;
}

static bool can_plan(const rp_runfile *run) {
    return run->boards > 1 && run->boards <= RP_JOINT_BOARDS_MAX && run->cut_auto &&
           run->method.chunks == 1 && !run->method.kind->splits &&
           run->model->layer_count >= run->boards;
}

/* A place means nothing in the run file, and every board was measured. */
static bool boards_may_change(const joint *j) {
    const rp_runfile *run = j->ask->run;
    bool all = j->ask->boards_open && run->hops.count == 0 && !run->sizes.by_stage &&
               (!run->codec || run->codec_auto || rp_codecs_are_alike(run->codec, run->stages));
    for (uint32_t k = 0; all && k < run->boards; k++) {
        all = k < j->ask->profile->board_count && rp_profile_board_at(j->ask->profile, k)->known;
    }
    return all;
}

static rp_err refuse_memory(const joint *j) {
    const uint32_t boards = j->ask->run->boards;
    double most = 0;
    double all = 0;
    for (uint32_t k = 0; k < boards; k++) {
        const double own = (double)rp_least_memory_limit(j->ask->run, j->ask->profile, k);
        most = own > most ? own : most;
        all += own;
    }
    const double mib = 1 << 20;
    return rp_fail(RP_ERR_USAGE,
                   "plan: no cut over these %u boards fits into their memory: weights, gradients "
                   "and the optimiser's states of all layers take %.4g MiB, and what %u "
                   "microbatches of %u samples leave on the first stage more; the boards have "
                   "%.4g MiB, the largest %.4g MiB (ring.memory_mb). Expected a smaller model or "
                   "train.microbatch, or more memory",
                   boards, j->memory.weights[j->layers] / mib, j->memory.in_flight[boards - 1],
                   j->ask->run->micro, all / mib, most / mib);
}

/* The ring as it is, and the best that were found, with stages that are shared. */
static rp_err share_rings(joint *j, const rp_joint_plan *now) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i <= j->kept[false].count && (i == 0 || !is_over(j)); i++) {
        rp_joint_plan shared = i > 0 ? j->kept[false].plan[i - 1] : *now;
        RP_TRY(shared.count > 1 ? cut_ring(j, j->ask->share_most, &shared) : RP_OK);
        if (rp_joint_is_shared(&shared) && isfinite(shared.step_s)) {
            keep(j, &shared);
        }
    }
fail:
    return err;
}

static rp_err replay_kept(joint *j, bool shared, uint32_t boards) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < j->kept[shared].count && (i == 0 || !is_over(j)); i++) {
        rp_joint_plan *plan = &j->kept[shared].plan[i];
        if (!rp_joint_is_ring(plan, boards)) {
            RP_TRY(replay(j, plan));
            list(j->out, plan);
        }
    }
fail:
    return err;
}

static rp_err search(rp_arena *arena, joint *j) {
    rp_joint_answer *out = j->out;
    rp_joint_plan now = {.count = j->ask->run->boards, .stages = j->ask->run->boards};
    bool dp_fits = false;
    rp_err err;
    for (uint32_t k = 0; k < now.count; k++) {
        now.place[k] = k;
    }
    RP_TRY(sum_up(arena, j));
    RP_TRY(cut_as_it_is(arena, j, &now, &dp_fits));
    RP_TRY(j->ask->cuts_open ? search_near(j, now.count) : RP_OK);
    const bool open = boards_may_change(j);
    RP_TRY(open ? search_rings(j, &now) : RP_OK);
    RP_TRY(j->ask->share_most > 1 ? share_rings(j, &now) : RP_OK);
    RP_TRY(replay_kept(j, false, now.count));
    RP_TRY(replay_kept(j, true, now.count));
    prefer_matched(out, now.count);
    if (out->count == 0) { /* the replay knows why, but where no cut at all fits */
        err = dp_fits ? RP_OK : refuse_memory(j);
        goto fail;
    }
    RP_TRY(search_sizes(j));
    RP_TRY(search_codecs(j));
    out->bound_s = bound_s(j);
    out->with_micro = j->ask->run->micro;
    RP_TRY(find_micro(j));
    out->is_known = true;
fail:
    return err;
}

static rp_err search_once(const rp_joint_ask *ask, int64_t start_ns, rp_joint_answer *out) {
    joint *j;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "joint", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &j));
    *out = (rp_joint_answer){.is_complete = true};
    *j = (joint){.ask = ask,
                 .layers = ask->run->model->layer_count,
                 .micros = (ask->run->batch - 1) / ask->run->micro + 1,
                 .rounds = ask->rounds > 0 ? ask->rounds : ROUNDS,
                 .start_ns = start_ns,
                 .out = out};
    RP_TRY(search(&arena, j));
fail:
    rp_arena_finish(&arena);
    return err;
}

/* What needs too much memory with another microbatch is no answer. */
static rp_err search_micros(const rp_joint_ask *ask, int64_t start_ns, rp_joint_answer *out) {
    rp_runfile run = *ask->run;
    rp_joint_ask again = *ask;
    rp_joint_answer next;
    rp_err err = RP_OK;
    again.run = &run;
    for (uint32_t i = 0; i < MICROS && out->is_known && out->is_complete &&
                         out->micro_step_s < (1 - WORTH) * out->plan[0].step_s;
         i++) {
        run.micro = out->micro;
        err = search_once(&again, start_ns, &next);
        if (err == RP_ERR_USAGE) {
            return RP_OK;
        }
        if (err != RP_OK || !next.is_known || !(next.plan[0].step_s < out->plan[0].step_s)) {
            return err;
        }
        next.tried += out->tried;
        next.replays += out->replays;
        *out = next;
    }
    return err;
}

rp_err rp_joint_search(const rp_joint_ask *ask, rp_joint_answer *out) {
    const int64_t start_ns = ask->clock ? rp_clock_now_ns(ask->clock) : 0;
    rp_err err;
    *out = (rp_joint_answer){.is_complete = true};
    if (!can_plan(ask->run)) {
        return RP_OK;
    }
    if (ask->limit_ns > 0 && !ask->clock) {
        return rp_fail(RP_ERR_USAGE, "plan: a limit of time needs a clock");
    }
    RP_TRY(search_once(ask, start_ns, out));
    RP_TRY(ask->micro_open ? search_micros(ask, start_ns, out) : RP_OK);
fail:
    return err;
}

bool rp_joint_has(const rp_joint_plan *plan, uint32_t place) {
    bool found = false;
    for (uint32_t k = 0; !found && k < plan->count; k++) {
        found = plan->place[k] == place;
    }
    return found;
}

bool rp_joint_is_shared(const rp_joint_plan *plan) {
    return plan->stages > 0 && plan->stages < plan->count;
}

bool rp_joint_is_ring(const rp_joint_plan *plan, uint32_t boards) {
    bool same = plan->count == boards && !rp_joint_is_shared(plan);
    for (uint32_t k = 0; same && k < boards; k++) {
        same = plan->place[k] == k;
    }
    return same;
}
