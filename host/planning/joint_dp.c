#include "planning/joint_own.h"

#include <math.h>

#include "planning/cost.h"
#include "planning/dp_cut.h"

enum { SWEEPS = 16 }; /* rounds of dp_cut */

/* Context of dp_cut: a ring of the plan's boards. */
typedef struct {
    const rp_joint *of;
    const rp_joint_plan *plan;
} ring;

static double compute_s(const rp_joint *j, uint32_t place, uint32_t first, uint32_t end,
                        uint32_t back) {
    return rp_sums_op_s(&j->sums, place, first, end, back) +
           rp_profile_handling_s(j->ask->profile, place);
}

bool rp_joint_fits(const rp_joint *j, uint32_t place, uint32_t first, uint32_t end,
                   uint32_t later) {
    const double has = j->limit[place];
    return has <= 0 || rp_least_memory_of(&j->memory, first, end, later) <= has;
}

double rp_joint_board_s(const rp_joint *j, uint32_t place, uint32_t first, uint32_t end,
                        uint32_t later) {
    return rp_joint_fits(j, place, first, end, later)
               ? compute_s(j, place, first, end, 0) + compute_s(j, place, first, end, 1)
               : (double)INFINITY;
}

double rp_joint_whole_s(const rp_joint *j, uint32_t place) {
    return compute_s(j, place, 0, j->layers, 0) + compute_s(j, place, 0, j->layers, 1);
}

static bool is_on_medium(const rp_joint *j, uint32_t from, uint32_t to) {
    return j->medium > 0 && rp_cost_medium(j->ask->run, from, to) == j->medium;
}

/* Only the two directions of one pair of boards share the medium of this wire. */
static bool is_on_pair_medium(const rp_joint *j, uint32_t from, uint32_t to) {
    const uint64_t medium = rp_cost_medium(j->ask->run, from, to);
    return medium > 0 && rp_cost_pairs_on(j->ask->run, medium) <= 1;
}

/* Seconds per microbatch to exchange the gradients of a shared stage once a step: each board sends
 * its own to all others of the group. */
static double exchange_s(const ring *r, rp_dp_group group, uint32_t first, uint32_t end) {
    const rp_joint_ask *ask = r->of->ask;
    const double bytes = (double)sizeof(float) * (double)rp_model_param_count(
                                                     ask->run->model, RP_PARAM_TRAINED, first, end);
    double most = 0;
    double in_turns = 0;
    for (uint32_t i = 0; i < group.count * group.count; i++) {
        const uint32_t from = r->plan->place[group.first + i / group.count];
        const uint32_t to = r->plan->place[group.first + i % group.count];
        if (from != to && is_on_medium(r->of, from, to)) {
            in_turns += rp_cost_turn_s(ask->run, ask->profile, from, to, bytes);
        } else if (from != to) {
            most = fmax(most, rp_cost_wire_s(ask->run, ask->profile, from, to, bytes));
        }
    }
    return fmax(in_turns, most * (group.count - 1)) / r->of->micros;
}

/* dp_cut's cost of a stage: its boards get samples so that all of them finish together. */
static double stage_s(const void *context, rp_dp_group group, uint32_t first, uint32_t end,
                      uint32_t later) {
    const ring *r = context;
    const rp_joint *j = r->of;
    double speed = 0;
    if (group.count == 1) {
        return rp_joint_board_s(j, r->plan->place[group.first], first, end, later);
    }
    if (j->statistics[end] > j->statistics[first] || group.count > j->micros) {
        return (double)INFINITY;
    }
    for (uint32_t k = group.first; k < group.first + group.count; k++) {
        const double own = rp_joint_board_s(j, r->plan->place[k], first, end, later);
        if (!(own > 0) || isinf(own)) {
            return own > 0 ? own : 0;
        }
        speed += 1 / own;
    }
    return 1 / speed + exchange_s(r, group, first, end);
}

/* Both directions in sequence, because few wires have their full rate in both at once. On a
 * medium each direction has the full rate during its turn. */
static double between_s(const rp_joint *j, uint32_t near, uint32_t far, double bytes) {
    const rp_joint_ask *ask = j->ask;
    double sum = 0;
    for (uint32_t back = 0; back < 2; back++) {
        const uint32_t from = back ? far : near;
        const uint32_t to = back ? near : far;
        const bool turns = is_on_medium(j, from, to) || is_on_pair_medium(j, from, to);
        sum += turns ? rp_cost_turn_s(ask->run, ask->profile, from, to, bytes)
                     : rp_cost_wire_s(ask->run, ask->profile, from, to, bytes);
    }
    return sum;
}

/* dp_cut's cost of a boundary. Samples between groups are divided over several wires, of which the
 * slowest counts; on a medium they all take turns. */
static double wire_s(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer) {
    const ring *r = context;
    const double bytes = r->of->bytes[layer];
    const uint32_t *place = r->plan->place;
    double most = 0;
    for (uint32_t a = from.first; a < from.first + from.count; a++) {
        for (uint32_t b = to.first; b < to.first + to.count; b++) {
            most = fmax(most, between_s(r->of, place[a], place[b], bytes));
        }
    }
    return is_on_medium(r->of, place[from.first], place[to.first])
               ? most
               : most / (from.count > to.count ? from.count : to.count);
}

/* dp_cut's cost of a boundary on the medium that several pairs of boards share. */
static double turns_s(const void *context, rp_dp_group from, rp_dp_group to, uint32_t layer) {
    const ring *r = context;
    const uint32_t *place = r->plan->place;
    return is_on_medium(r->of, place[from.first], place[to.first])
               ? wire_s(context, from, to, layer)
               : 0;
}

/* Divides the samples of a stage by the speeds of its boards, in whole microbatches, at least one
 * each. */
static void share_stage(const rp_joint *j, rp_joint_plan *plan, uint32_t stage) {
    const uint32_t begin = plan->group[stage];
    const uint32_t end = plan->group[stage + 1];
    const uint32_t later = plan->stages - 1 - stage;
    double all = 0;
    double sum = 0;
    uint32_t taken = 0;
    for (uint32_t k = begin; k < end; k++) {
        all += 1 / fmax(rp_joint_board_s(j, plan->place[k], plan->first[stage],
                                         plan->first[stage + 1], later),
                        1e-12);
    }
    for (uint32_t k = begin; k < end; k++) {
        sum += 1 / fmax(rp_joint_board_s(j, plan->place[k], plan->first[stage],
                                         plan->first[stage + 1], later),
                        1e-12);
        const uint32_t left = end - 1 - k; /* boards that still need a microbatch */
        const uint32_t wanted = (uint32_t)(j->micros * sum / all + 0.5);
        const uint32_t most = j->micros - left;
        taken = wanted <= taken ? taken + 1 : wanted > most ? most : wanted;
        plan->share[k] =
            k + 1 == end ? 1 : fmin(1, (double)taken * j->ask->run->micro / j->ask->run->batch);
    }
}

bool rp_joint_share_out(const rp_joint *j, rp_joint_plan *plan) {
    const ring of = {j, plan};
    bool all = true;
    for (uint32_t k = 0; all && k < plan->stages; k++) {
        const rp_dp_group group = {plan->group[k], plan->group[k + 1] - plan->group[k]};
        all =
            isfinite(stage_s(&of, group, plan->first[k], plan->first[k + 1], plan->stages - 1 - k));
        if (all) {
            share_stage(j, plan, k);
        }
    }
    return all;
}

/* With a flush, the pipe fills and drains in every step. */
rp_err rp_joint_cut_ring(const rp_joint *j, uint32_t share_most, rp_joint_plan *plan) {
    const bool flushed = j->ask->run->method.kind->flushed;
    const ring of = {j, plan};
    const rp_dp_ask ask = {.layers = j->layers,
                           .boards = plan->count,
                           .share_most = share_most < plan->count ? share_most : plan->count,
                           .steady = j->micros - flushed,
                           .fill = flushed,
                           .stage_s = stage_s,
                           .wire_s = wire_s,
                           .turns_s = j->medium > 0 ? turns_s : NULL,
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
    if (err == RP_OK && isfinite(answer.cost) && rp_joint_is_shared(plan)) {
        (void)rp_joint_share_out(j, plan);
    }
    return err;
}
