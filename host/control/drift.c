/* Predicted against measured: how long ops, steps and parcels of this assignment take. */
#include <math.h>

#include "base/log.h"
#include "control/controller_own.h"

enum { NODES_MAX = 64, STEPS_LEAST = 8, OPS_LEAST = 8 };
static const char *const kind_name[RP_OP_KINDS] = {
    [RP_OP_FORWARD] = "forward",
    [RP_OP_BACKWARD] = "backward",
    [RP_OP_BACKWARD_INPUT] = "backward_input",
    [RP_OP_BACKWARD_WEIGHT] = "backward_weight",
    [RP_OP_UPDATE] = "update",
};

/* ---- what is predicted ----------------------------------------------------------------------- */

rp_err rp_drift_open(rp_controller *c) {
    rp_drift *drift = &c->measure.drift;
    rp_err err;
    drift->is_known = false;
    drift->steps = 0;
    drift->steps_s = 0;
    drift->step_ns = 0;
    if (!c->measure.has_profile || c->setup.plan->node_count > NODES_MAX) {
        return RP_OK;
    }
    rp_measured_place(c);
    RP_TRY(RP_ARENA_NEW(&c->setup.plan_arena, c->setup.plan->hold_count, &drift->op));
    err = rp_predict(&c->setup.plan_arena, &c->run, &c->measure.profile, c->setup.plan,
                     c->measure.link_delay_s, &drift->predicted);
    if (err != RP_OK) {
        rp_log_debug("controller: no prediction: %s", rp_err_message());
        return err == RP_ERR_MEMORY ? err : RP_OK;
    }
    drift->is_known = drift->predicted.step_s > 0;
    c->setup.plan->predicted_step_s = drift->predicted.step_s;
    c->setup.plan->predicted_limits = drift->is_known ? drift->predicted.limits : NULL;
fail:
    return err;
}

/* ---- what is measured ------------------------------------------------------------------------ */

void rp_drift_note_op(rp_controller *c, const rp_sink_op *op) {
    const rp_plan_stage *stage =
        op->part < c->setup.plan->stage_count ? &c->setup.plan->stage[op->part] : NULL;
    const rp_plan_hold *hold = stage ? rp_plan_find_hold(c->setup.plan, op->stage, op->part) : NULL;
    if (!c->measure.drift.is_known || op->evaluation || !hold) {
        return;
    }
    const uint32_t whole = op->kind == RP_OP_FORWARD ? stage->micro_forward : stage->micro_backward;
    if (op->kind == RP_OP_UPDATE || op->samples.count == whole) {
        rp_drift_op *sum = &c->measure.drift.op[hold - c->setup.plan->hold][op->kind];
        sum->seconds += (double)(op->end_ns - op->start_ns) * 1e-9;
        sum->count++;
    }
}

void rp_drift_begin_segment(rp_controller *c) {
    c->measure.drift.step_ns = 0;
    if (c->measure.drift.assign_ns > 0) {
        c->measure.drift.setup_s = (double)(c->ring.now_ns - c->measure.drift.assign_ns) * 1e-9;
        c->measure.drift.assign_ns = 0;
    }
}

void rp_drift_note_assign(rp_controller *c) {
    c->measure.drift.assign_ns = c->ring.now_ns;
}

/* Between two steps of a segment: the first one fills the pipes. */
void rp_drift_note_step(rp_controller *c) {
    rp_drift *drift = &c->measure.drift;
    const int64_t last_ns = drift->step_ns;
    rp_trials_note_step(c, last_ns > 0 ? (double)(c->ring.now_ns - last_ns) * 1e-9 : 0);
    if (last_ns > 0) {
        drift->steps_s += (double)(c->ring.now_ns - drift->step_ns) * 1e-9;
        drift->steps++;
    }
    drift->step_ns = c->ring.now_ns;
}

static double measured_step_s(const rp_drift *drift) {
    return drift->steps >= STEPS_LEAST ? drift->steps_s / (double)drift->steps : (double)NAN;
}

/* Of all boards that have the stage, each by as many ops as it has done. */
static rp_summary_op tell_op(const rp_controller *c, uint32_t stage, uint32_t kind) {
    const rp_drift *drift = &c->measure.drift;
    rp_summary_op out = {.stage = stage, .kind = kind_name[kind]};
    for (uint32_t h = 0; h < c->setup.plan->hold_count; h++) {
        const rp_drift_op *sum = &drift->op[h][kind];
        if (c->setup.plan->hold[h].stage == stage) {
            out.count += sum->count;
            out.predicted_s += (double)sum->count * drift->predicted.op_s[h][kind];
            out.measured_s += sum->seconds;
        }
    }
    out.predicted_s /= out.count > 0 ? (double)out.count : 1;
    out.measured_s /= out.count > 0 ? (double)out.count : 1;
    return out;
}

rp_err rp_drift_tell(const rp_controller *c, rp_arena *arena, rp_summary_prediction *out) {
    const rp_drift *drift = &c->measure.drift;
    rp_summary_op *op;
    rp_err err = RP_OK;
    *out = (rp_summary_prediction){.cuts = drift->cuts};
    if (!drift->is_known || !c->setup.plan) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)c->setup.plan->stage_count * RP_OP_KINDS, &op));
    out->step_s = drift->predicted.step_s;
    out->measured_step_s = measured_step_s(drift);
    out->limits = drift->predicted.limits;
    out->op = op;
    for (uint32_t i = 0; i < c->setup.plan->stage_count * RP_OP_KINDS; i++) {
        op[out->op_count] = tell_op(c, i / RP_OP_KINDS, i % RP_OP_KINDS);
        out->op_count += op[out->op_count].count > 0;
    }
fail:
    return err;
}

/* ---- boards ------------------------------------------------------------------------------- */

double rp_drift_factor(const rp_controller *c, uint32_t board) {
    const rp_plan_node *node = &c->setup.plan->node[board];
    double sum[2] = {0, 0};
    uint64_t count = 0;
    for (uint32_t h = 0; h < node->hold_count; h++) {
        const uint32_t hold = node->hold_first + h;
        for (uint32_t kind = 0; kind < RP_OP_UPDATE; kind++) {
            const rp_drift_op *op = &c->measure.drift.op[hold][kind];
            sum[0] += op->seconds;
            sum[1] += (double)op->count * c->measure.drift.predicted.op_s[hold][kind];
            count += op->count;
        }
    }
    return count >= OPS_LEAST && sum[0] > 0 && sum[1] > 0 ? sum[0] / sum[1] : 1;
}

/* ---- wires ------------------------------------------------------------------------------------
 */

/* A wire that costs less than this share of a step more, or less, is no matter. */
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

/* Of the samples that both ends have: boards may share their stages. */
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

static double rate_of(const rp_controller *c, uint32_t from, uint32_t to) {
    const rp_board_facts *facts = &c->ring.board[from].facts;
    double rate = 0;
    for (uint32_t i = 0; i < facts->link_count; i++) {
        rate = facts->link[i].peer == to ? facts->link[i].rate : rate;
    }
    return rate;
}

/* Seconds that a parcel kept the wire busy. What acks have shown is less than its rate, where
 * parcels travelled alone: then the time to the ack is in it. Emulated lines say what they did. */
static double seen_s(const rp_controller *c, const rp_plan_edge *edge, double rate,
                     double predicted_s) {
    const double whole_s = (double)edge->parcel_bytes / rate;
    const double latency_s = rp_cost_delay_s(&c->run, &c->measure.profile, edge->from, edge->to,
                                             c->measure.link_delay_s);
    const double alone_s = whole_s - 2 * latency_s;
    return c->run.emulate || whole_s < predicted_s ? whole_s
           : alone_s > predicted_s                 ? alone_s
                                                   : predicted_s;
}

double rp_drift_wire_factor(const rp_controller *c, uint32_t from, uint32_t to) {
    const rp_plan_edge *edge = largest_edge(c->setup.plan, from, to);
    const double rate = rate_of(c, from, to);
    const rp_link_profile line = rp_link_profile_of(&c->run.link, &c->run.hops, from, to);
    if (!edge || !(rate > 0) || (c->run.emulate && line.medium)) { /* what takes turns also waits */
        return 1;
    }
    const double predicted_s =
        rp_cost_wire_s(&c->run, &c->measure.profile, from, to, (double)edge->parcel_bytes);
    const double own_s = seen_s(c, edge, rate, predicted_s);
    const double more_s = fabs(own_s - predicted_s) * parcels_a_step(c->setup.plan, edge);
    return predicted_s > 0 && more_s > MATTERS * c->measure.drift.predicted.step_s
               ? own_s / predicted_s
               : 1;
}
