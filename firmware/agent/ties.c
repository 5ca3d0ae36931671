/* Tied weights across stages (nn/ties.h). Before its first update of a step, a node sends a row of
 * gradients for each of its stages that shares tensors with others, then gets the rows that it
 * needs. Without a flush, values go from a forward to the same forward of other stages. */
#include "agent/runner_own.h"

/* ---- gradients ------------------------------------------------------------------------------- */

/* First part of the exchange, once for each stage: reads its row for all nodes that get it. */
static rp_err send_row(rp_runner *r, running_op *op) {
    const rp_range all = {0, rp_runner_step_samples(r, op->op.step)};
    runner_stage *s = &r->held[r->rows_sent];
    rp_range slice[RP_PORT_EDGES_MAX] = {{0}};
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    rp_op whole = op->op;
    rp_err err;
    whole.samples = all;
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        const runner_edge *edge = rp_runner_edge_of(r, &r->transfer[t]);
        if (r->transfer[t].send && edge->carries == RP_KIND_TIED_GRADIENT &&
            edge->stage == s->job->stage) {
            slice[edge->out] = all;
        }
    }
    op->stage = s;
    op->output = rp_port_out_take(s->row, &whole, false, slice);
    rp_port_out_parts(s->row, op->output, to);
    RP_TRY(rp_stage_read_row(s->stage, to[0]));
    op->exchanges = true;
    RP_TRY(rp_runner_commit_part(r, op));
    r->rows_sent++;
fail:
    return err;
}

/* Gathers a row from each edge of a kind, each in one parcel; *ready is false if one is missing. */
static rp_err gather_rows(rp_runner *r, const running_op *op, rp_kind carries,
                          const rp_port_want *want, bool *ready) {
    rp_err err = RP_OK;
    for (uint32_t e = 0; e < r->at.edge_count && *ready; e++) {
        runner_edge *edge = &r->edge[e];
        if (edge->row && edge->carries == carries) {
            RP_TRY(rp_port_in_gather_one(edge->port, want, &edge->row[op - r->running], ready));
        }
    }
fail:
    return err;
}

static uint32_t take_rows(rp_runner *r, running_op *op, rp_kind carries,
                          rp_tie_row row[RP_RUNNER_EDGES_MAX]) {
    uint32_t count = 0;
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        const runner_edge *edge = &r->edge[e];
        if (edge->row && edge->carries == carries) {
            const rp_port_pieces *pieces = &edge->row[op - r->running];
            row[count++] = (rp_tie_row){edge->stage, pieces->piece[0].part[0]};
            rp_port_in_take(edge->port, pieces);
            op->rows_read = true;
        }
    }
    return count;
}

/* Second part: adds up the uses' gradients in every stage here that needs rows, once all have
 * arrived. */
static rp_err add_rows(rp_runner *r, running_op *op) {
    const rp_port_want want = {false, op->op.step, {0, rp_runner_step_samples(r, op->op.step)}};
    rp_tie_row row[RP_RUNNER_EDGES_MAX];
    bool ready = true;
    rp_err err;
    RP_TRY(gather_rows(r, op, RP_KIND_TIED_GRADIENT, &want, &ready));
    if (!ready) {
        return RP_OK;
    }
    const uint32_t count = take_rows(r, op, RP_KIND_TIED_GRADIENT, row);
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        rp_stage *stage = r->held[h].stage;
        RP_TRY(rp_stage_layout(stage)->tie_waits ? rp_stage_tie(stage, row, count) : RP_OK);
    }
    op->exchanges = true;
    RP_TRY(rp_runner_commit_part(r, op));
    r->tied = true;
fail:
    return err;
}

rp_err rp_runner_exchange_rows(rp_runner *r, running_op *op, bool *over) {
    while (r->rows_sent < r->at.held_count && !r->held[r->rows_sent].sends_row) {
        r->rows_sent++;
    }
    const bool sent = r->rows_sent == r->at.held_count;
    *over = sent && (r->tied || r->row_count == 0);
    if (*over) {
        return RP_OK;
    }
    if (!sent) {
        return rp_port_out_has_room(r->held[r->rows_sent].row) ? send_row(r, op) : RP_OK;
    }
    return add_rows(r, op);
}

/* ---- values ---------------------------------------------------------------------------------- */

rp_err rp_runner_gather_values(rp_runner *r, const running_op *op, bool *ready) {
    const rp_port_want want = {r->evaluating, op->op.step, op->op.samples};
    return gather_rows(r, op, RP_KIND_TIED_WEIGHT, &want, ready);
}

void rp_runner_take_values(rp_runner *r, running_op *op, rp_tie_row row[RP_RUNNER_EDGES_MAX]) {
    const uint32_t count = take_rows(r, op, RP_KIND_TIED_WEIGHT, row);
    rp_stage_set_values(op->stage->stage, row, count);
}

rp_err rp_runner_send_values(rp_runner *r, running_op *op) {
    const runner_stage *s = op->stage;
    rp_range slice[RP_PORT_EDGES_MAX] = {{0}};
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        const runner_edge *edge = rp_runner_edge_of(r, &r->transfer[t]);
        if (r->transfer[t].send && edge->carries == RP_KIND_TIED_WEIGHT) {
            slice[edge->out] = r->transfer[t].samples;
        }
    }
    op->values = rp_port_out_take(s->values, &op->op, r->evaluating, slice);
    if (!op->values) {
        return RP_OK;
    }
    rp_port_out_parts(s->values, op->values, to);
    return rp_stage_read_values(s->stage, to[0]);
}
