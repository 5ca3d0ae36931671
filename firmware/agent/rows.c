/* Ports for rows of tied gradients and weights: one for each edge that brings them. */
#include "agent/runner_own.h"

#include "nn/ties.h"

/* Whether the edge brings rows to this node. */
static bool brings_row(const rp_runner *r, uint32_t e) {
    const rp_runner_edge *at = &r->at.edge[e];
    return (at->carries == RP_KIND_TIED_GRADIENT || at->carries == RP_KIND_TIED_WEIGHT) &&
           (!at->outgoing || !at->link);
}

/* Rows of different stages have different lengths. */
rp_err rp_runner_open_rows(rp_runner *r) {
    const rp_job *job = r->held[0].job;
    rp_err err = RP_OK;
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        runner_edge *edge = &r->edge[e];
        const bool gradient = r->at.edge[e].carries == RP_KIND_TIED_GRADIENT;
        char *name;
        if (!brings_row(r, e)) {
            continue;
        }
        RP_TRY(rp_arena_printf(r->arena, &name, "tied %s of stage %u",
                               gradient ? "gradients" : "weights", edge->stage));
        RP_TRY(RP_ARENA_NEW(r->arena, RP_RUNNER_DEPTH, &edge->row));
        const rp_port_in_options options = {
            .name = name,
            .form = {.tensor_count = 1,
                     .sample_bytes = {rp_ties_row_bytes(job->model, &job->cut, edge->stage)},
                     .dtype = {RP_DTYPE_F32},
                     .is_sum = true},
            .pending_max = r->at.edge[e].window,
            .source_count = 1};
        RP_TRY(rp_port_in_open(r->arena, &options, &edge->port));
        edge->source = 0;
        r->row_count += gradient;
    }
fail:
    return err;
}

void rp_runner_begin_rows(rp_runner *r) {
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        if (r->edge[e].row) {
            rp_port_in_begin(r->edge[e].port);
        }
    }
}

void rp_runner_close_rows(rp_runner *r) {
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        if (r->edge[e].row) {
            rp_port_in_close(&r->edge[e].port);
        }
    }
}

void rp_runner_return_rows(rp_runner *r, running_op *op) {
    const rp_kind carries =
        op->op.kind == RP_OP_FORWARD ? RP_KIND_TIED_WEIGHT : RP_KIND_TIED_GRADIENT;
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        if (r->edge[e].row && r->edge[e].carries == carries) {
            rp_port_in_return(r->edge[e].port, &r->edge[e].row[op - r->running]);
        }
    }
}

/* ---- parcels in flight ----------------------------------------------------------------------- */

void rp_runner_start_far(rp_runner *r, uint64_t step) {
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        runner_edge *edge = &r->edge[e];
        rp_sched_shape shape = rp_job_sched_shape(r->held[0].job, step, r->held[0].job->steps);
        shape.stage = edge->stage;
        if (edge->row && edge->carries == RP_KIND_TIED_WEIGHT) {
            rp_method_order(&r->held[0].job->method, &shape);
            rp_sched_start(&edge->far, &shape);
        }
        edge->far_forwards = 0;
    }
}

void rp_runner_count_far(rp_runner *r, uint64_t pause) {
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        runner_edge *edge = &r->edge[e];
        rp_op op;
        if (!edge->row || edge->carries != RP_KIND_TIED_WEIGHT) {
            continue;
        }
        edge->far.shape.step_end = r->above.shape.step_end;
        while (edge->far.step < pause && r->held[0].job->method.kind->next(&edge->far, &op)) {
            edge->far_forwards += op.kind == RP_OP_FORWARD;
        }
    }
}

uint64_t rp_runner_pending_far(const rp_runner *r, uint32_t e) {
    const runner_edge *edge = &r->edge[e];
    return edge->row && edge->carries == RP_KIND_TIED_WEIGHT ? edge->far_forwards - r->forwards : 0;
}
