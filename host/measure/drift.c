/* Compares the measured times of ops, steps and parcels with the prediction for the plan in
 * force. */
#include <math.h>

#include "base/log.h"
#include "measure/drift.h"
#include "measure/measure_own.h"
#include "planning/cost.h"

enum { NODES_MAX = 64, STEPS_LEAST = 8, OPS_LEAST = 8 };
static const char *const kind_name[RP_OP_KINDS] = {
    [RP_OP_FORWARD] = "forward",
    [RP_OP_BACKWARD] = "backward",
    [RP_OP_BACKWARD_INPUT] = "backward_input",
    [RP_OP_BACKWARD_WEIGHT] = "backward_weight",
    [RP_OP_UPDATE] = "update",
};

/* ---- what is predicted ----------------------------------------------------------------------- */

void rp_drift_begin_plan(rp_measure *m) {
    rp_arena_finish(&m->plan_arena);
    rp_arena_init(&m->plan_arena, "drift", 0);
    m->drift.is_known = false;
    m->drift.op = NULL;
    m->losses = NULL;
    m->holds = 0;
}

rp_err rp_drift_open(rp_measure *m, const rp_plan *plan, const rp_prediction **out) {
    rp_drift *drift = &m->drift;
    rp_err err;
    RP_ASSERT(plan->hold_count > 0 && (m->holds == 0 || m->holds == plan->hold_count));
    *out = NULL;
    drift->is_known = false;
    drift->steps = 0;
    drift->steps_s = 0;
    drift->step_ns = 0;
    if (!m->has_profile || plan->node_count > NODES_MAX) {
        return RP_OK;
    }
    rp_measure_place(m);
    RP_TRY(RP_ARENA_NEW(&m->plan_arena, plan->hold_count, &drift->op));
    err =
        rp_predict(&m->plan_arena, m->needs.run, &m->profile, plan, m->delay_s, &drift->predicted);
    if (err != RP_OK) {
        rp_log_debug("controller: no prediction: %s", rp_err_message());
        return err == RP_ERR_MEMORY ? err : RP_OK;
    }
    RP_ASSERT(drift->predicted.holds == plan->hold_count);
    m->holds = plan->hold_count;
    drift->is_known = drift->predicted.step_s > 0;
    *out = &drift->predicted;
fail:
    return err;
}

const rp_prediction *rp_drift_prediction(const rp_measure *m) {
    return m->drift.is_known ? &m->drift.predicted : NULL;
}

/* ---- what is measured ------------------------------------------------------------------------ */

void rp_drift_note_op(rp_measure *m, const rp_plan *plan, const rp_sink_op *op) {
    const rp_plan_stage *stage = op->part < plan->stage_count ? &plan->stage[op->part] : NULL;
    const rp_plan_hold *hold = stage ? rp_plan_find_hold(plan, op->stage, op->part) : NULL;
    if (!m->drift.is_known || op->evaluation || !hold) {
        return;
    }
    RP_ASSERT(m->holds == plan->hold_count && op->kind < RP_OP_KINDS);
    const uint32_t whole = op->kind == RP_OP_FORWARD ? stage->micro_forward : stage->micro_backward;
    if (op->kind == RP_OP_UPDATE || op->samples.count == whole) {
        rp_drift_op *sum = &m->drift.op[hold - plan->hold][op->kind];
        sum->seconds += (double)(op->end_ns - op->start_ns) * 1e-9;
        sum->count++;
    }
}

void rp_drift_note_assign(rp_measure *m) {
    m->drift.assign_ns = m->needs.ring->now_ns;
}

void rp_drift_begin_segment(rp_measure *m) {
    rp_drift *drift = &m->drift;
    drift->step_ns = 0;
    if (drift->assign_ns > 0) {
        drift->setup_s = (double)(m->needs.ring->now_ns - drift->assign_ns) * 1e-9;
        drift->assign_ns = 0;
    }
    RP_ASSERT(drift->setup_s >= 0);
}

double rp_drift_setup_s(const rp_measure *m) {
    return m->drift.setup_s;
}

void rp_drift_note_step(rp_measure *m) {
    rp_drift *drift = &m->drift;
    const int64_t now_ns = m->needs.ring->now_ns;
    RP_ASSERT(drift->step_ns <= now_ns);
    if (drift->step_ns > 0) {
        drift->steps++;
        drift->steps_s += (double)(now_ns - drift->step_ns) * 1e-9;
    }
    drift->step_ns = now_ns;
}

void rp_drift_count_change(rp_measure *m) {
    m->drift.changes++;
}

/* ---- the summary ----------------------------------------------------------------------------- */

static double measured_step_s(const rp_drift *drift) {
    return drift->steps >= STEPS_LEAST ? drift->steps_s / (double)drift->steps : (double)NAN;
}

/* The mean over all boards with the stage, weighted by the ops of each. */
static rp_summary_op tell_op(const rp_measure *m, const rp_plan *plan, uint32_t stage,
                             uint32_t kind) {
    const rp_drift *drift = &m->drift;
    rp_summary_op out = {.stage = stage, .kind = kind_name[kind]};
    for (uint32_t h = 0; h < plan->hold_count; h++) {
        const rp_drift_op *sum = &drift->op[h][kind];
        if (plan->hold[h].stage == stage) {
            out.count += sum->count;
            out.predicted_s += (double)sum->count * drift->predicted.op_s[h][kind];
            out.measured_s += sum->seconds;
        }
    }
    out.predicted_s /= out.count > 0 ? (double)out.count : 1;
    out.measured_s /= out.count > 0 ? (double)out.count : 1;
    return out;
}

rp_err rp_drift_tell(const rp_measure *m, const rp_plan *plan, rp_arena *arena,
                     rp_summary_prediction *out) {
    const rp_drift *drift = &m->drift;
    rp_summary_op *op;
    rp_err err = RP_OK;
    *out = (rp_summary_prediction){.cuts = drift->changes};
    if (!drift->is_known || !plan) {
        return RP_OK;
    }
    RP_ASSERT(m->holds == plan->hold_count);
    RP_TRY(RP_ARENA_NEW(arena, (size_t)plan->stage_count * RP_OP_KINDS, &op));
    out->step_s = drift->predicted.step_s;
    out->measured_step_s = measured_step_s(drift);
    out->limits = drift->predicted.limits;
    out->op = op;
    for (uint32_t i = 0; i < plan->stage_count * RP_OP_KINDS; i++) {
        op[out->op_count] = tell_op(m, plan, i / RP_OP_KINDS, i % RP_OP_KINDS);
        out->op_count += op[out->op_count].count > 0;
    }
fail:
    return err;
}

/* ---- boards ---------------------------------------------------------------------------------- */

double rp_drift_board_factor(const rp_measure *m, const rp_plan *plan, uint32_t board) {
    double sum[2] = {0, 0};
    uint64_t count = 0;
    RP_ASSERT(m->drift.is_known && m->holds == plan->hold_count && board < plan->node_count);
    const rp_plan_node *node = &plan->node[board];
    for (uint32_t h = 0; h < node->hold_count; h++) {
        const uint32_t hold = node->hold_first + h;
        for (uint32_t kind = 0; kind < RP_OP_UPDATE; kind++) {
            const rp_drift_op *op = &m->drift.op[hold][kind];
            sum[0] += op->seconds;
            sum[1] += (double)op->count * m->drift.predicted.op_s[hold][kind];
            count += op->count;
        }
    }
    return count >= OPS_LEAST && sum[0] > 0 && sum[1] > 0 ? sum[0] / sum[1] : 1;
}

/* ---- wires ----------------------------------------------------------------------------------- */

/* A wire is ignored if its deviation changes a step by less than this share. */
static const double MATTERS = 0.05;

static const rp_plan_edge *largest_edge(const rp_plan *plan, uint32_t from, uint32_t to) {
    const rp_plan_edge *found = NULL;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const bool passes =
            edge->carries == RP_CARRIES_ACTIVATION || edge->carries == RP_CARRIES_GRADIENT;
        if (passes && edge->from == from && edge->to == to &&
            (!found || edge->parcel_bytes > found->parcel_bytes)) {
            found = edge;
        }
    }
    return found;
}

/* Share of a step's samples that travels over the edge; boards may share their stages. */
static double part_of_step(const rp_plan *plan, const rp_plan_edge *edge) {
    const rp_plan_hold *from = rp_plan_find_hold(plan, edge->from, rp_plan_sending_stage(edge));
    const rp_plan_hold *to = rp_plan_find_hold(plan, edge->to, edge->stage);
    return from && to ? fmin(from->share[1], to->share[1]) - fmax(from->share[0], to->share[0]) : 1;
}

static double parcels_a_step(const rp_plan *plan, const rp_plan_edge *edge) {
    const rp_plan_stage *sender = &plan->stage[rp_plan_sending_stage(edge)];
    const uint32_t samples =
        edge->carries == RP_CARRIES_ACTIVATION ? sender->micro_forward : sender->micro_backward;
    return part_of_step(plan, edge) * (double)plan->batch / samples;
}

static double rate_of(const rp_measure *m, uint32_t from, uint32_t to) {
    const rp_board_facts *facts = &m->needs.ring->board[from].facts;
    double rate = 0;
    for (uint32_t i = 0; i < facts->link_count; i++) {
        rate = facts->link[i].peer == to ? facts->link[i].rate : rate;
    }
    return rate;
}

/* Seconds that a parcel kept the wire busy. If parcels travelled alone, the rate shown by acks is
 * too low, because it includes the time to the ack. Emulated lines report exact times. */
static double seen_s(const rp_measure *m, const rp_plan_edge *edge, double rate,
                     double predicted_s) {
    const double whole_s = (double)edge->parcel_bytes / rate;
    const double latency_s =
        rp_cost_delay_s(m->needs.run, &m->profile, edge->from, edge->to, m->delay_s);
    const double alone_s = whole_s - 2 * latency_s;
    return m->needs.run->emulate || whole_s < predicted_s ? whole_s
           : alone_s > predicted_s                        ? alone_s
                                                          : predicted_s;
}

double rp_drift_wire_factor(const rp_measure *m, const rp_plan *plan, uint32_t from, uint32_t to) {
    const rp_runfile *run = m->needs.run;
    RP_ASSERT(m->drift.is_known && m->holds == plan->hold_count);
    RP_ASSERT(from != to && from < plan->node_count && to < plan->node_count);
    const rp_plan_edge *edge = largest_edge(plan, from, to);
    const double rate = rate_of(m, from, to);
    const rp_link_profile line = rp_link_profile_of(&run->link, &run->hops, from, to);
    if (!edge || !(rate > 0) ||
        (run->emulate && line.medium)) { /* parcels that take turns also wait */
        return 1;
    }
    const double predicted_s =
        rp_cost_wire_s(run, &m->profile, from, to, (double)edge->parcel_bytes);
    const double own_s = seen_s(m, edge, rate, predicted_s);
    const double more_s = fabs(own_s - predicted_s) * parcels_a_step(plan, edge);
    return predicted_s > 0 && more_s > MATTERS * m->drift.predicted.step_s ? own_s / predicted_s
                                                                           : 1;
}

rp_err rp_drift_take_factors(rp_measure *m, const rp_plan *plan, const rp_prediction **out) {
    const uint32_t boards = m->needs.ring->count;
    RP_ASSERT(boards == plan->node_count);
    rp_measure_place(m);
    for (uint32_t k = 0; k < boards; k++) {
        rp_profile_slow_down(&m->profile, k, rp_drift_board_factor(m, plan, k));
        for (uint32_t to = 0; to < boards; to++) {
            if (to != k) {
                rp_profile_slow_wire(&m->profile, k, to, rp_drift_wire_factor(m, plan, k, to));
            }
        }
    }
    return rp_drift_open(m, plan, out);
}
