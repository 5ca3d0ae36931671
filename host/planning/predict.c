#include "planning/predict.h"

#include <stdio.h>
#include <string.h>

#include "nn/ties.h"
#include "planning/cost.h"
#include "planning/halves.h"

typedef struct {
    const rp_runfile *run;
    const rp_profile *profile;
    const rp_plan *plan;
    rp_cut cut;
    double *cost[5]; /* [holds], in the order of the enum below */
    double *edge;
    uint32_t *medium; /* [edges]: as rp_sched_costs */
} predicting;

enum { FORWARD, INPUT, WEIGHT, UPDATE, DELAY };

/* The hold exchanges tensors with another board at its upper or lower boundary: activations, or
 * gradients if it has backwards only. */
static bool has_boundary(const rp_plan *plan, const rp_plan_hold *hold, bool upper) {
    const bool gradients = hold->role == RP_ROLE_BACKWARD;
    const rp_carries carries = gradients ? RP_CARRIES_GRADIENT : RP_CARRIES_ACTIVATION;
    const bool sends = upper != gradients;
    bool found = false;
    for (uint32_t e = 0; e < plan->edge_count && !found; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        found = edge->carries == carries && edge->from != edge->to &&
                (sends ? edge->from == hold->node && rp_plan_sending_stage(edge) == hold->stage
                       : edge->to == hold->node && edge->stage == hold->stage);
    }
    return found;
}

static rp_cost_stage stage_of(const predicting *p, const rp_plan_hold *hold) {
    return (rp_cost_stage){.place = hold->node,
                           .stage = hold->stage,
                           .stages = p->cut.stage_count,
                           .first = p->cut.first[hold->stage],
                           .end = p->cut.first[hold->stage + 1],
                           .lower = has_boundary(p->plan, hold, false),
                           .upper = has_boundary(p->plan, hold, true)};
}

static double op_s(const predicting *p, const rp_plan_hold *hold, rp_op_kind kind) {
    const rp_cost_stage at = stage_of(p, hold);
    const rp_plan_stage *stage = &p->plan->stage[hold->stage];
    const uint32_t samples = kind == RP_OP_FORWARD ? stage->micro_forward : stage->micro_backward;
    const bool again = stage->recompute && kind != RP_OP_FORWARD && kind != RP_OP_UPDATE;
    return rp_cost_whole_op_s(p->run, p->profile, &at, kind, samples) +
           (again ? rp_cost_op_s(p->run, p->profile, at.place, at.first, at.end, RP_OP_FORWARD,
                                 samples)
                  : 0);
}

/* Key of the medium on which the edge takes turns, with its other direction or more edges; 0: none.
 */
static uint64_t medium_of(const predicting *p, const rp_plan_edge *edge) {
    const rp_runfile *run = p->run;
    if (run->emulate) {
        return rp_link_profile_of(&run->link, &run->hops, edge->from, edge->to).medium;
    }
    const bool shared = edge->from < p->profile->board_count &&
                        edge->to < p->profile->board_count &&
                        rp_profile_wire_at(p->profile, edge->from, edge->to)->shared;
    const uint32_t low = edge->from < edge->to ? edge->from : edge->to;
    return shared ? (uint64_t)(low + 1) << 32 | (edge->from + edge->to - low) : 0;
}

/* Numbers each medium by 1 + its first edge. */
static rp_err number_media(rp_arena *arena, predicting *p) {
    uint64_t *key;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)p->plan->edge_count + 1, &key));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)p->plan->edge_count + 1, &p->medium));
    for (uint32_t e = 0; e < p->plan->edge_count; e++) {
        const rp_plan_edge *own = &p->plan->edge[e];
        uint32_t first = 0;
        key[e] = own->from != own->to ? medium_of(p, own) : 0;
        while (key[first] != key[e]) {
            first++;
        }
        p->medium[e] = key[e] > 0 ? first + 1 : 0;
    }
fail:
    return err;
}

/* Bytes of a full microbatch. For gradients of a shared stage, tied gradients and weights of a
 * split one, bytes of an update. */
static rp_err edge_bytes(const predicting *p, const rp_plan_edge *edge, double *out) {
    double stash = (double)edge->parcel_bytes;
    double weights = 0;
    rp_err err = RP_OK;
    if (edge->carries == RP_CARRIES_STASH || edge->carries == RP_CARRIES_WEIGHT) {
        err = rp_halves_bytes(p->run, &p->cut, edge->stage, &stash, &weights);
    } else if (edge->carries == RP_CARRIES_TIED_GRADIENT ||
               edge->carries == RP_CARRIES_TIED_WEIGHT) {
        stash = (double)rp_ties_row_bytes(p->run->model, &p->cut, edge->stage);
    } else if (edge->carries == RP_CARRIES_WEIGHT_GRADIENT) {
        weights =
            (double)sizeof(float) * (double)rp_model_param_count(p->run->model, RP_PARAM_TRAINED,
                                                                 p->cut.first[edge->stage],
                                                                 p->cut.first[edge->stage + 1]);
    }
    *out = edge->carries == RP_CARRIES_WEIGHT || edge->carries == RP_CARRIES_WEIGHT_GRADIENT
               ? weights
               : stash;
    return err;
}

/* Seconds from the end of a transfer to its use: latency and copies. */
static double latency_s(const predicting *p, const rp_plan_edge *edge, double bytes,
                        double delay_s) {
    return rp_cost_delay_s(p->run, p->profile, edge->from, edge->to, delay_s) +
           rp_profile_copy_s(p->profile, edge->from, true, bytes) +
           rp_profile_copy_s(p->profile, edge->to, false, bytes);
}

/* The hold that sends over an edge. NULL: no op waits for the delay of this edge. */
static const rp_plan_hold *sender_of(const predicting *p, const rp_plan_edge *edge) {
    return edge->carries == RP_CARRIES_WEIGHT_GRADIENT || edge->carries == RP_CARRIES_TIED_GRADIENT
               ? NULL
               : rp_plan_find_hold(p->plan, edge->from, rp_plan_sending_stage(edge));
}

static rp_err add_edges(predicting *p, double delay_s) {
    rp_err err = RP_OK;
    for (uint32_t e = 0; e < p->plan->edge_count; e++) {
        const rp_plan_edge *edge = &p->plan->edge[e];
        double bytes;
        if (edge->from == edge->to) {
            continue;
        }
        RP_TRY(edge_bytes(p, edge, &bytes));
        if (edge->from == RP_PLAN_HOST) {
            p->edge[e] = rp_cost_feed_s(p->run, p->profile, edge->to, bytes);
            continue;
        }
        p->edge[e] = rp_cost_turn_s(p->run, p->profile, edge->from, edge->to, bytes);
        const rp_plan_hold *hold = sender_of(p, edge);
        if (hold) { /* the longest delay of its edges */
            double *delay = &p->cost[DELAY][hold - p->plan->hold];
            const double own_s = latency_s(p, edge, bytes, delay_s);
            *delay = own_s > *delay ? own_s : *delay;
        }
    }
fail:
    return err;
}

/* Steps that fill the ring; rp_predict() measures twice as many after them. */
static uint64_t steps_to_fill(const rp_plan *plan) {
    const uint64_t advance = plan->method.advance;
    const rp_sched_shape first = rp_plan_stage_shape(plan, 0, 0);
    const uint64_t ahead = rp_sched_ahead(&first); /* 0 unless stages are split */
    const uint64_t full = 1 + (uint64_t)(plan->stage_count - 1) * (1 + advance);
    const uint64_t micros = (plan->batch - 1) / plan->micro + 1;
    return 2 + ahead + (full + micros - 1) / micros;
}

static rp_err replay_steps(rp_arena *arena, const predicting *p, uint64_t steps,
                           rp_sched_facts *out) {
    const rp_sched_costs costs = {.forward = p->cost[FORWARD],
                                  .backward_input = p->cost[INPUT],
                                  .backward_weight = p->cost[WEIGHT],
                                  .update = p->cost[UPDATE],
                                  .delay = p->cost[DELAY],
                                  .edge = p->edge,
                                  .medium = p->medium};
    rp_plan some = *p->plan;
    some.step_first = 0;
    some.steps = steps;
    some.epoch_samples = steps * some.batch; /* no short step, no drain before the end */
    return rp_plan_replay(arena, &some, &costs, true, NULL, RP_NO_NODE, out);
}

/* Seconds between two replays in which the edge, or its medium, was occupied. */
static double find_wire_busy(const predicting *p, const rp_sched_facts *few,
                             const rp_sched_facts *many, uint32_t edge) {
    double sum = 0;
    for (uint32_t e = 0; e < p->plan->edge_count; e++) {
        const bool with = p->medium[edge] > 0 && p->medium[e] == p->medium[edge];
        sum += e == edge || with ? many->edge[e].busy - few->edge[e].busy : 0;
    }
    return sum;
}

static void find_busiest(const predicting *p, const rp_sched_facts *few, const rp_sched_facts *many,
                         uint64_t steps, rp_prediction *out) {
    for (uint32_t k = 0; k < p->plan->node_count; k++) {
        const double own = (many->node[k].busy - few->node[k].busy) / (double)steps;
        if (own > out->work_s) {
            out->work_s = own;
            out->board = k;
        }
    }
    for (uint32_t e = 0; e < p->plan->edge_count; e++) {
        const rp_plan_edge *edge = &p->plan->edge[e];
        const double own = find_wire_busy(p, few, many, e) / (double)steps;
        if (own > out->wire_s) {
            out->takes_turns = p->medium[e] > 0;
            out->wire_s = own;
            out->from = edge->from;
            out->to = edge->to;
        }
    }
}

/* Names are cut, so that the numbers always fit. */
static void write_limits(const rp_plan *plan, rp_prediction *out) {
    const double work = 100 * out->work_s / out->step_s;
    const double wire = 100 * out->wire_s / out->step_s;
    if (out->wire_s > out->work_s) {
        const bool host = out->from == RP_PLAN_HOST;
        (void)snprintf(out->limits, sizeof out->limits,
                       "%s from %s%.40s to board %.40s is in use %.0f %% of a step",
                       out->takes_turns ? "the medium of the wire" : "the wire",
                       host ? "the host" : "board ", host ? "" : plan->node[out->from].name,
                       plan->node[out->to].name, wire);
    } else {
        (void)snprintf(out->limits, sizeof out->limits, "board %.60s computes %.0f %% of a step%s",
                       plan->node[out->board].name, work,
                       work < 70 ? " and waits for the rest" : "");
    }
}

static rp_err take_costs(rp_arena *arena, predicting *p, double delay_s, rp_prediction *out) {
    const bool splits = p->plan->method.kind->split_backward;
    rp_err err;
    for (uint32_t i = 0; i < 5; i++) {
        RP_TRY(RP_ARENA_NEW(arena, p->plan->hold_count, &p->cost[i]));
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)p->plan->edge_count + 1, &p->edge));
    RP_TRY(RP_ARENA_NEW(arena, p->plan->hold_count, &out->op_s));
    for (uint32_t h = 0; h < p->plan->hold_count; h++) {
        const rp_plan_hold *hold = &p->plan->hold[h];
        double *op = out->op_s[h];
        for (uint32_t kind = 0; kind < RP_OP_KINDS; kind++) {
            const bool exists =
                kind == RP_OP_FORWARD || kind == RP_OP_UPDATE || (kind == RP_OP_BACKWARD) != splits;
            if (rp_role_does(hold->role, (rp_op_kind)kind)) {
                op[kind] = exists ? op_s(p, hold, (rp_op_kind)kind) : 0;
            }
        }
        const double handling_s = rp_profile_handling_s(p->profile, hold->node);
        /* costs of ops that the hold does not have are not used */
        p->cost[FORWARD][h] = op[RP_OP_FORWARD] + handling_s;
        p->cost[INPUT][h] = op[splits ? RP_OP_BACKWARD_INPUT : RP_OP_BACKWARD] + handling_s;
        p->cost[WEIGHT][h] = op[RP_OP_BACKWARD_WEIGHT] + (splits ? handling_s : 0);
        p->cost[UPDATE][h] = op[RP_OP_UPDATE] + handling_s;
    }
    RP_TRY(add_edges(p, delay_s));
    RP_TRY(number_media(arena, p));
fail:
    return err;
}

rp_err rp_predict(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                  const rp_plan *plan, double delay_s, rp_prediction *out) {
    const bool flushed = plan->method.kind->flushed; /* each step starts with an empty pipe */
    const uint64_t fill = flushed ? 1 : steps_to_fill(plan);
    const uint64_t all = flushed ? 2 : 3 * fill;
    predicting p = {.run = run, .profile = profile, .plan = plan};
    rp_sched_facts few;
    rp_sched_facts many;
    rp_err err;
    *out = (rp_prediction){.holds = plan->hold_count};
    RP_TRY(rp_plan_cut(arena, plan, run->model, &p.cut));
    RP_TRY(take_costs(arena, &p, delay_s, out));
    RP_TRY(replay_steps(arena, &p, fill, &few));
    RP_TRY(replay_steps(arena, &p, all, &many));
    out->step_s = (many.makespan - few.makespan) / (double)(all - fill);
    find_busiest(&p, &few, &many, all - fill, out);
    write_limits(plan, out);
fail:
    return err;
}
