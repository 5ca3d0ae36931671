/* Tied weights across stages (nn/ties.h): before its first update of a step, a node sends a row of
 * gradients for each of its stages that shares tensors with others, then gets the rows of those. */
#include "agent/runner_own.h"

static bool sends_row(const runner_stage *stage) {
    return rp_stage_layout(stage->stage)->tie_row_bytes > 0;
}

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
    r->rows_sent++;
    if (!op->output) { /* another board that shares the stage sends the row */
        return RP_OK;
    }
    rp_port_out_parts(s->row, op->output, to);
    RP_TRY(rp_stage_read_row(s->stage, to[0]));
    op->exchanges = true;
    RP_TRY(rp_runner_commit_part(r, op));
fail:
    return err;
}

/* Second part: adds up the uses' gradients in every stage here, once all rows have arrived. */
static rp_err add_rows(rp_runner *r, running_op *op) {
    const rp_port_want want = {false, op->op.step, {0, rp_runner_step_samples(r, op->op.step)}};
    rp_tie_row row[RP_RUNNER_EDGES_MAX];
    uint32_t count = 0;
    bool ready = true;
    rp_err err = RP_OK;
    for (uint32_t e = 0; e < r->at.edge_count && ready; e++) {
        if (r->edge[e].row) {
            RP_TRY(rp_port_in_gather(r->edge[e].port, &want, r->edge[e].row, &ready));
        }
    }
    if (!ready) {
        return RP_OK;
    }
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        const runner_edge *edge = &r->edge[e];
        if (edge->row) {
            row[count++] = (rp_tie_row){edge->stage, edge->row->piece[0].part[0]};
            rp_port_in_take(edge->port, edge->row);
        }
    }
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        RP_TRY(sends_row(&r->held[h]) ? rp_stage_tie(r->held[h].stage, row, count) : RP_OK);
    }
    op->exchanges = op->rows_read = true;
    RP_TRY(rp_runner_commit_part(r, op));
    r->tied = true;
fail:
    return err;
}

rp_err rp_runner_exchange_rows(rp_runner *r, running_op *op, bool *over) {
    *over = r->tied || r->row_count == 0;
    while (!*over && r->rows_sent < r->at.held_count && !sends_row(&r->held[r->rows_sent])) {
        r->rows_sent++;
    }
    if (*over) {
        return RP_OK;
    }
    if (r->rows_sent < r->at.held_count) {
        return rp_port_out_has_room(r->held[r->rows_sent].row) ? send_row(r, op) : RP_OK;
    }
    return add_rows(r, op);
}
