/* What a runner waits for, derived on request from what its next op needs. */
#include "agent/runner_own.h"
#include "sched/op_limit.h"

static int64_t later_of(int64_t a_ns, int64_t b_ns) {
    return a_ns > b_ns ? a_ns : b_ns;
}

static bool has_come(const rp_runner *r, const rp_transfer *transfer, const runner_edge *edge) {
    const rp_port_want want = {r->evaluating, r->next.step, transfer->samples};
    rp_port_pieces pieces;
    bool ready = true;
    const rp_err err = edge->port ? rp_port_in_find(edge->port, &want, &pieces, &ready) : RP_OK;
    return err != RP_OK || ready;
}

/* Whether the next op has already taken what the edge brings, in an exchange before its update. */
static bool is_taken(const rp_runner *r, const runner_edge *edge) {
    return edge->carries == RP_KIND_WEIGHT_GRADIENT ? r->summed
           : edge->carries == RP_KIND_TIED_GRADIENT ? r->tied || r->updating
                                                    : false;
}

/* The first transfer of the next op that has not arrived. */
static bool find_missing(const rp_runner *r, rp_runner_wait *out) {
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        const rp_transfer *transfer = &r->transfer[t];
        const runner_edge *edge = rp_runner_edge_of(r, transfer);
        const uint32_t from = r->at.plan->edge[transfer->edge].from;
        if (transfer->send || is_taken(r, edge) || has_come(r, transfer, edge)) {
            continue;
        }
        out->what = from == RP_PLAN_HOST ? RP_WAITING_FEED : RP_WAITING_INPUT;
        out->peer = from;
        return true;
    }
    return false;
}

/* A send port of a stage here, and what its edges carry. */
typedef struct {
    const runner_stage *stage;
    const rp_port_out *port; /* NULL: nothing */
    rp_kind carries;
} out_port;

/* The first send port without a free slot that keeps the next op from running; port NULL: none.
 * Before its update an op sends the rows of all stages here, in order of the stages. */
static out_port find_full_port(const rp_runner *r) {
    const runner_stage *s = r->held;
    while (s->job->stage != r->next.stage) {
        s++;
    }
    const rp_op_kind kind = r->next.kind;
    const bool forward = kind == RP_OP_FORWARD;
    const bool backward = kind == RP_OP_BACKWARD || kind == RP_OP_BACKWARD_INPUT;
    const bool update = kind == RP_OP_UPDATE;
    const bool gradient = update && !r->evaluating && !r->sent_gradient && !r->summed;
    const bool row = update && !r->evaluating && !r->updating && r->rows_sent < r->at.held_count;
    const runner_stage *sender = row ? &r->held[r->rows_sent] : s;
    const out_port ports[] = {
        {s, forward ? s->forward : NULL, RP_KIND_ACTIVATION},
        {s, forward ? s->stash : NULL, RP_KIND_STASH},
        {s, forward ? s->values : NULL, RP_KIND_TIED_WEIGHT},
        {s, backward ? s->backward : NULL, RP_KIND_GRADIENT},
        {s, gradient ? s->summand : NULL, RP_KIND_WEIGHT_GRADIENT},
        {sender, row ? sender->row : NULL, RP_KIND_TIED_GRADIENT},
        {s, update ? s->weight : NULL, RP_KIND_WEIGHT},
    };
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        if (ports[i].port && !rp_port_out_has_room(ports[i].port)) {
            return ports[i];
        }
    }
    return (out_port){0};
}

/* If no slot is free for an output of the next op: the first other node that it is sent to. */
static bool find_full(const rp_runner *r, rp_runner_wait *out) {
    const out_port full = find_full_port(r);
    for (uint32_t t = 0; full.port && t < r->transfer_count; t++) {
        const rp_transfer *transfer = &r->transfer[t];
        const rp_plan_edge *edge = &r->at.plan->edge[transfer->edge];
        if (transfer->send && edge->to != r->at.node &&
            rp_runner_edge_of(r, transfer)->carries == full.carries &&
            rp_plan_sending_stage(edge) == full.stage->job->stage) {
            out->what = RP_WAITING_ROOM;
            out->peer = edge->to;
            return true;
        }
    }
    return false;
}

/* An edge with un-acked parcels. */
static void find_unacked(const rp_runner *r, rp_runner_wait *out) {
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        const rp_plan_edge *edge = &r->at.plan->edge[r->edge[e].edge];
        rp_link_stats stats;
        if (!r->edge[e].link || edge->from != r->at.node) {
            continue;
        }
        rp_link_stats_of(r->edge[e].link, &stats);
        if (stats.unacked > 0) {
            out->what = RP_WAITING_ACKS;
            out->peer = edge->to;
            return;
        }
    }
}

bool rp_runner_hangs(const rp_runner *r) {
    return r->running_count > 0 && r->at_work_ns >= rp_op_limit_ns(r->longest_ns);
}

rp_runner_wait rp_runner_wait_of(rp_runner *r) {
    rp_runner_wait out = {.since_ns = later_of(r->began_ns, r->last_done_ns),
                          .longest_ns = r->longest_ns};
    if (!r->active) {
        return out;
    }
    if (r->running_count > 0) {
        const running_op *op = rp_runner_running(r, 0);
        out.what = RP_WAITING_DEVICE;
        out.op = op->op;
        out.since_ns = rp_clock_now_ns(r->at.clock) - r->at_work_ns;
        return out;
    }
    if (!r->have_next) {
        find_unacked(r, &out);
        return out;
    }
    out.op = r->next;
    if (find_missing(r, &out)) {
        return out;
    }
    if (r->waiting_decision) {
        out.what = RP_WAITING_DECISION;
    } else if (!rp_runner_may_report(r)) {
        out.what = RP_WAITING_REPORTS;
    } else if (!find_full(r, &out)) {
        out.what = RP_WAITING_DECISION; /* gains for its prediction */
    }
    return out;
}
