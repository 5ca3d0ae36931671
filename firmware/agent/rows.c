/* Ports for rows of tied gradients: one for each edge that brings a row. */
#include "agent/runner_own.h"

#include "nn/ties.h"

/* Whether the edge brings a row to this node. */
static bool brings_row(const rp_runner *r, uint32_t e) {
    const rp_runner_edge *at = &r->at.edge[e];
    return at->carries == RP_KIND_TIED_GRADIENT && (!at->outgoing || !at->link);
}

/* A port for each edge, because rows of different stages have different lengths. */
rp_err rp_runner_open_rows(rp_runner *r) {
    const rp_job *job = r->held[0].job;
    rp_err err = RP_OK;
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        runner_edge *edge = &r->edge[e];
        char *name;
        if (!brings_row(r, e)) {
            continue;
        }
        RP_TRY(rp_arena_printf(r->arena, &name, "tied gradients of stage %u", edge->stage));
        RP_TRY(RP_ARENA_NEW(r->arena, 1, &edge->row));
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
        r->row_count++;
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

void rp_runner_return_rows(rp_runner *r) {
    for (uint32_t e = 0; e < r->at.edge_count; e++) {
        if (r->edge[e].row) {
            rp_port_in_return(r->edge[e].port, r->edge[e].row);
        }
    }
}
