#include "planning/predict.h"

#include <stdio.h>
#include <string.h>

#include "planning/cost.h"
#include "planning/halves.h"

typedef struct {
    const rp_runfile *run;
    const rp_profile *profile;
    const rp_plan *plan;
    rp_cut cut;
    double *cost[7]; /* by hold, as rp_sched_costs names them */
    double *edge;    /* where stages are split: by edge; else NULL */
} predicting;

enum { FORWARD, INPUT, WEIGHT, UPDATE, SEND, SEND_BACK, DELAY };

static double op_s(const predicting *p, const rp_plan_hold *hold, rp_op_kind kind) {
    const uint32_t first = p->cut.first[hold->stage];
    const uint32_t end = p->cut.first[hold->stage + 1];
    const rp_plan_stage *stage = &p->plan->stage[hold->stage];
    const uint32_t samples = kind == RP_OP_FORWARD ? stage->micro_forward : stage->micro_backward;
    const bool again = stage->recompute && kind != RP_OP_FORWARD && kind != RP_OP_UPDATE;
    return rp_cost_op_s(p->run, p->profile, hold->node, first, end, kind, samples) +
           (again ? rp_cost_op_s(p->run, p->profile, hold->node, first, end, RP_OP_FORWARD, samples)
                  : 0);
}

/* On a wire whose directions take turns, a parcel also waits for as much the other way: in a ring
 * at work both are in use. Emulated media have their part of the rate (rp_cost_wire_s). */
static double busy_s(const predicting *p, const rp_plan_edge *edge, double bytes) {
    const bool shared = !p->run->emulate && edge->from < p->profile->board_count &&
                        edge->to < p->profile->board_count &&
                        rp_profile_wire_at(p->profile, edge->from, edge->to)->shared;
    const double own_s = rp_cost_wire_s(p->run, p->profile, edge->from, edge->to, bytes);
    return shared ? 2 * own_s : own_s;
}

/* What a hold sends is on its way so long besides. */
static double latency_s(const predicting *p, const rp_plan_edge *edge, double bytes,
                        double delay_s) {
    return rp_cost_delay_s(p->run, p->profile, edge->from, edge->to, delay_s) +
           rp_profile_copy_s(p->profile, edge->from, true, bytes) +
           rp_profile_copy_s(p->profile, edge->to, false, bytes);
}

/* Of a full microbatch, or of an update. */
static rp_err edge_bytes(const predicting *p, const rp_plan_edge *edge, double *out) {
    double stash = (double)edge->parcel_bytes;
    double weights = 0;
    rp_err err = RP_OK;
    if (edge->carries == RP_CARRIES_STASH || edge->carries == RP_CARRIES_WEIGHT) {
        err = rp_halves_bytes(p->run, &p->cut, edge->stage, &stash, &weights);
    }
    *out = edge->carries == RP_CARRIES_WEIGHT ? weights : stash;
    return err;
}

/* A board with a half of a stage sends two kinds of things, over wires of their own. */
static rp_err add_edges(rp_arena *arena, predicting *p, double delay_s) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)p->plan->edge_count + 1, &p->edge));
    for (uint32_t e = 0; e < p->plan->edge_count; e++) {
        const rp_plan_edge *edge = &p->plan->edge[e];
        double bytes;
        if (edge->from == RP_PLAN_HOST) {
            continue;
        }
        RP_TRY(edge_bytes(p, edge, &bytes));
        p->edge[e] = busy_s(p, edge, bytes);
        double *delay = &p->cost[DELAY][p->plan->node[edge->from].hold_first];
        const double own_s = latency_s(p, edge, bytes, delay_s);
        *delay = own_s > *delay ? own_s : *delay;
    }
fail:
    return err;
}

static void add_wires(predicting *p, double delay_s) {
    for (uint32_t h = 0; h < p->plan->hold_count; h++) {
        const rp_plan_hold *hold = &p->plan->hold[h];
        for (uint32_t e = 0; e < p->plan->edge_count; e++) {
            const rp_plan_edge *edge = &p->plan->edge[e];
            const bool on = edge->carries == RP_CARRIES_ACTIVATION;
            const bool back = edge->carries == RP_CARRIES_GRADIENT;
            const bool sends = edge->from == hold->node && edge->to != hold->node;
            if (!sends || !((on && edge->stage == hold->stage + 1) ||
                            (back && edge->stage + 1 == hold->stage))) {
                continue;
            }
            const double bytes = (double)edge->parcel_bytes;
            const double own_s = busy_s(p, edge, bytes);
            const double way_s = latency_s(p, edge, bytes, delay_s);
            double *cost = &p->cost[back ? SEND_BACK : SEND][h];
            *cost = own_s > *cost ? own_s : *cost;
            p->cost[DELAY][h] = way_s > p->cost[DELAY][h] ? way_s : p->cost[DELAY][h];
        }
    }
}

/* Steps until the fullest ring is filled, and as many again that are looked at. */
static uint64_t steps_to_fill(const rp_plan *plan) {
    const uint64_t advance = plan->method.advance;
    const rp_sched_shape first = rp_plan_stage_shape(plan, 0, 0);
    const uint64_t ahead = rp_sched_ahead(&first); /* 0 but where stages are split */
    const uint64_t full = 1 + (uint64_t)(plan->stage_count - 1) * (1 + advance);
    const uint64_t micros = (plan->batch - 1) / plan->micro + 1;
    return 2 + ahead + (full + micros - 1) / micros;
}

static rp_err replay(rp_arena *arena, const predicting *p, uint64_t steps, rp_sched_facts *out) {
    const rp_sched_costs costs = {.forward = p->cost[FORWARD],
                                  .backward_input = p->cost[INPUT],
                                  .backward_weight = p->cost[WEIGHT],
                                  .update = p->cost[UPDATE],
                                  .send = p->cost[SEND],
                                  .send_back = p->cost[SEND_BACK],
                                  .delay = p->cost[DELAY],
                                  .edge = p->edge};
    rp_plan some = *p->plan;
    some.step_first = 0;
    some.steps = steps;
    some.epoch_samples = steps * some.batch; /* no short step, and no drain inside */
    return rp_plan_replay(arena, &some, &costs, true, NULL, RP_NO_NODE, out);
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
        const double own = (many->edge[e].busy - few->edge[e].busy) / (double)steps;
        if (edge->from != RP_PLAN_HOST && own > out->wire_s) {
            out->wire_s = own;
            out->from = edge->from;
            out->to = edge->to;
        }
    }
}

/* Without names of a user's in more than a part of the line. */
static void say_limits(const rp_plan *plan, rp_prediction *out) {
    const double work = 100 * out->work_s / out->step_s;
    const double wire = 100 * out->wire_s / out->step_s;
    if (out->wire_s > out->work_s) {
        (void)snprintf(out->limits, sizeof out->limits,
                       "the wire from board %.40s to board %.40s is in use %.0f %% of it",
                       plan->node[out->from].name, plan->node[out->to].name, wire);
    } else {
        (void)snprintf(out->limits, sizeof out->limits, "board %.60s computes %.0f %% of it%s",
                       plan->node[out->board].name, work,
                       work < 70 ? ", and waits for others else" : "");
    }
}

static rp_err take_costs(rp_arena *arena, predicting *p, double delay_s, rp_prediction *out) {
    const bool splits = p->plan->method.kind->split_backward;
    rp_err err;
    for (uint32_t i = 0; i < 7; i++) {
        RP_TRY(RP_ARENA_NEW(arena, p->plan->hold_count, &p->cost[i]));
    }
    RP_TRY(RP_ARENA_NEW(arena, out->stages, &out->op_s));
    for (uint32_t h = p->plan->hold_count; h-- > 0;) {
        const rp_plan_hold *hold = &p->plan->hold[h];
        double *op = out->op_s[hold->stage];
        for (uint32_t kind = 0; kind < RP_OP_KINDS; kind++) {
            const bool exists =
                kind == RP_OP_FORWARD || kind == RP_OP_UPDATE || (kind == RP_OP_BACKWARD) != splits;
            if (rp_role_does(hold->role, (rp_op_kind)kind)) {
                op[kind] = exists ? op_s(p, hold, (rp_op_kind)kind) : 0;
            }
        }
        p->cost[FORWARD][h] = op[RP_OP_FORWARD]; /* of what it does not do nobody asks */
        p->cost[INPUT][h] = op[splits ? RP_OP_BACKWARD_INPUT : RP_OP_BACKWARD];
        p->cost[WEIGHT][h] = op[RP_OP_BACKWARD_WEIGHT];
        p->cost[UPDATE][h] = op[RP_OP_UPDATE];
    }
    if (p->plan->method.kind->splits) {
        return add_edges(arena, p, delay_s);
    }
    add_wires(p, delay_s);
fail:
    return err;
}

rp_err rp_predict(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                  const rp_plan *plan, double delay_s, rp_prediction *out) {
    const uint64_t fill = steps_to_fill(plan);
    predicting p = {.run = run, .profile = profile, .plan = plan};
    rp_sched_facts few;
    rp_sched_facts many;
    rp_err err;
    *out = (rp_prediction){.stages = plan->stage_count};
    RP_TRY(rp_plan_cut(arena, plan, run->model, &p.cut));
    RP_TRY(take_costs(arena, &p, delay_s, out));
    RP_TRY(replay(arena, &p, fill, &few));
    RP_TRY(replay(arena, &p, 3 * fill, &many));
    out->step_s = (many.makespan - few.makespan) / (double)(2 * fill);
    find_busiest(&p, &few, &many, 2 * fill, out);
    say_limits(plan, out);
fail:
    return err;
}
