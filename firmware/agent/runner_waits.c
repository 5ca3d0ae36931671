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

/* The first transfer of the next op that has not arrived. */
static bool find_missing(const rp_runner *r, rp_runner_wait *out) {
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        const rp_transfer *transfer = &r->transfer[t];
        const runner_edge *edge = rp_runner_edge_of(r, transfer);
        const uint32_t from = r->at.plan->edge[transfer->edge].from;
        if (transfer->send || has_come(r, transfer, edge)) {
            continue;
        }
        out->what = from == RP_PLAN_HOST ? RP_WAITING_FEED : RP_WAITING_INPUT;
        out->peer = from;
        return true;
    }
    return false;
}

static bool is_full(const rp_port_out *port) {
    return port && !rp_port_out_has_room(port);
}

/* Whether a send port of the next op has no free slot. */
static bool lacks_slot(const rp_runner *r) {
    const runner_stage *s = r->held;
    while (s->job->stage != r->next.stage) {
        s++;
    }
    return r->next.kind == RP_OP_FORWARD  ? is_full(s->forward) || is_full(s->values)
           : r->next.kind == RP_OP_UPDATE ? is_full(s->summand) || is_full(s->row)
                                          : is_full(s->backward);
}

/* If no slot is free for the output of the next op: the first other node that it is sent to. */
static bool find_full(const rp_runner *r, rp_runner_wait *out) {
    if (!lacks_slot(r)) {
        return false;
    }
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        const rp_transfer *transfer = &r->transfer[t];
        const uint32_t to = r->at.plan->edge[transfer->edge].to;
        if (transfer->send && to != r->at.node) {
            out->what = RP_WAITING_ROOM;
            out->peer = to;
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
