/* Submits the next op of the schedule to the device, as soon as its inputs are present. */
#include "agent/runner_own.h"

static runner_stage *stage_of(rp_runner *r, const rp_op *op) {
    uint32_t h = 0;
    while (h + 1 < r->at.held_count && r->held[h].job->stage != op->stage) {
        h++;
    }
    RP_ASSERT(r->held[h].job->stage == op->stage);
    return &r->held[h];
}

/* ---- ops in the device's queue --------------------------------------------------------------- */

/* Finds the ports from which the next op receives by the plan. */
static void find_ports(const rp_runner *r, running_op *op) {
    op->from = op->labels = op->rows = NULL;
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        const runner_edge *edge = rp_runner_edge_of(r, &r->transfer[t]);
        const bool row = edge->carries == RP_KIND_STASH || edge->carries == RP_KIND_WEIGHT;
        if (!r->transfer[t].send && !edge->row) {
            *(edge->carries == RP_KIND_LABEL ? &op->labels
              : row                          ? &op->rows
                                             : &op->from) = edge->port;
        }
    }
    if (r->evaluating && r->eval_training) {
        op->labels = NULL; /* no loss is computed */
    }
}

/* The entry of the next op; it counts as running once it is committed. */
static running_op *next_running_op(rp_runner *r) {
    running_op *op = rp_runner_running(r, r->running_count);
    op->op = r->next;
    op->stage = stage_of(r, &r->next);
    find_ports(r, op);
    op->input.count = op->target.count = op->row.count = 0;
    op->time = 0;
    op->sum = (rp_contributions){0};
    op->output = op->stash = op->values = NULL;
    op->results = op->probe = op->norms = op->updates = op->exchanges = op->rows_read = false;
    return op;
}

static rp_err commit_op(rp_runner *r, running_op *op) {
    rp_err err = rp_runner_commit_part(r, op);
    if (err == RP_OK) {
        r->have_next = false;
        r->at_update = op->op.kind == RP_OP_UPDATE && r->sched.step > op->op.step;
    }
    return err;
}

/* ---- what an op reads and writes ------------------------------------------------------------- */

/* No port: the op needs nothing from it. */
static rp_err gather_pieces(rp_runner *r, rp_port_in *port, rp_port_pieces *pieces, bool *ready) {
    const rp_port_want want = {r->evaluating, r->next.step, r->next.samples};
    bool covered = true;
    rp_err err = port ? rp_port_in_gather(port, &want, pieces, &covered) : RP_OK;
    *ready = *ready && covered;
    return err;
}

/* A stash of the op's samples, or the weights of the op's step: one parcel. */
static rp_err gather_row(rp_runner *r, running_op *op, bool *ready) {
    const bool weights = r->next.kind == RP_OP_FORWARD;
    const rp_range whole = {0, rp_runner_step_samples(r, r->next.step)};
    const rp_port_want want = {r->evaluating, r->next.step, weights ? whole : r->next.samples};
    bool covered = true;
    rp_err err = op->rows ? rp_port_in_gather_one(op->rows, &want, &op->row, &covered) : RP_OK;
    *ready = *ready && covered;
    return err;
}

/* Gathers what a forward or a backward waits for. */
static rp_err gather_inputs(rp_runner *r, running_op *op, bool *ready) {
    rp_err err;
    RP_TRY(gather_pieces(r, op->from, &op->input, ready));
    RP_TRY(gather_pieces(r, op->labels, &op->target, ready));
    RP_TRY(gather_row(r, op, ready));
fail:
    return err;
}

static const void *row_of(const running_op *op) {
    return op->row.piece[0].part[0];
}

static void take_pieces(rp_port_in *port, const rp_port_pieces *pieces) {
    if (port) {
        rp_port_in_take(port, pieces);
    }
}

static void take_inputs(running_op *op) {
    take_pieces(op->from, &op->input);
    take_pieces(op->labels, &op->target);
    take_pieces(op->rows, &op->row);
}

/* slice[e]: the samples that the plan sends over edge e of the op's send port. */
static void find_slices(const rp_runner *r, rp_kind carries, rp_range slice[RP_PORT_EDGES_MAX]) {
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        const runner_edge *edge = rp_runner_edge_of(r, &r->transfer[t]);
        if (r->transfer[t].send && edge->carries == carries) {
            slice[edge->out] = r->transfer[t].samples;
        }
    }
}

static void take_output(rp_runner *r, running_op *op, rp_port_out *port, void **to) {
    rp_range slice[RP_PORT_EDGES_MAX] = {{0}};
    find_slices(r, op->op.kind == RP_OP_FORWARD ? RP_KIND_ACTIVATION : RP_KIND_GRADIENT, slice);
    op->output = rp_port_out_take(port, &op->op, r->evaluating, slice);
    if (op->output) {
        rp_port_out_set_time(op->output, op->time);
        rp_port_out_parts(port, op->output, to);
    }
}

/* Converts gathered pieces to the stage's form. */
static uint32_t point_at(const rp_port_pieces *pieces, rp_stage_piece from[RP_PORT_PIECES_MAX]) {
    for (uint32_t i = 0; i < pieces->count; i++) {
        from[i] = (rp_stage_piece){.samples = pieces->piece[i].samples,
                                   .part = pieces->piece[i].part,
                                   .time = pieces->piece[i].time};
    }
    return pieces->count;
}

/* Sends a forward's stash to the board with the backward. */
static rp_err send_stash(rp_runner *r, running_op *op) {
    rp_port_out *port = op->stage->stash;
    rp_range slice[RP_PORT_EDGES_MAX] = {{0}};
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    find_slices(r, RP_KIND_STASH, slice);
    op->stash = rp_port_out_take(port, &op->op, false, slice);
    rp_port_out_set_time(op->stash, op->time);
    rp_port_out_parts(port, op->stash, to);
    return rp_stage_read_stash(op->stage->stage, &op->op, to[0]);
}

/* Sends the weights of an update to the forwards that see them; the newest for an evaluation. */
static rp_err send_weights(rp_runner *r, running_op *op) {
    rp_port_out *port = op->stage->weight;
    rp_range slice[RP_PORT_EDGES_MAX] = {{0}};
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    rp_op taker = op->op;
    bool is_taken = false;
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        if (r->transfer[t].send &&
            rp_runner_edge_of(r, &r->transfer[t])->carries == RP_KIND_WEIGHT) {
            is_taken = true;
            taker.step = r->transfer[t].step;
            taker.samples = r->transfer[t].samples;
            slice[rp_runner_edge_of(r, &r->transfer[t])->out] = taker.samples;
        }
    }
    if (!is_taken) {
        return RP_OK;
    }
    op->output = rp_port_out_take(port, &taker, r->evaluating, slice);
    rp_port_out_parts(port, op->output, to);
    return r->evaluating ? rp_stage_read_newest(op->stage->stage, to[0])
                         : rp_stage_read_published(op->stage->stage, to[0]);
}

/* ---- forward --------------------------------------------------------------------------------- */

static rp_err run_forward(rp_runner *r, running_op *op) {
    rp_stage_piece from[RP_PORT_PIECES_MAX];
    rp_tie_row values[RP_RUNNER_EDGES_MAX];
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    rp_stage *stage = op->stage->stage;
    uint32_t count = point_at(&op->input, from);
    rp_err err;
    rp_runner_take_values(r, op, values);
    op->time = op->input.count > 0 ? op->input.piece[0].time : 0;
    take_output(r, op, op->stage->forward, to);
    if (op->rows) {
        RP_TRY(r->evaluating ? rp_runner_keep_weights(r) : RP_OK);
        RP_TRY(rp_stage_write_newest(stage, row_of(op)));
    }
    RP_TRY(r->evaluating ? rp_stage_forward_only(stage, &op->op, from, count, to, r->eval_training)
                         : rp_stage_forward(stage, &op->op, from, count, to));
    RP_TRY(rp_runner_send_values(r, op));
    if (op->labels) {
        count = point_at(&op->target, from);
        RP_TRY(
            rp_stage_evaluate(stage, &op->op, rp_runner_step_samples(r, op->op.step), from, count));
    } else if (r->evaluating) {
        rp_stage_forget(stage, &op->op);
    } else {
        RP_TRY(op->stage->job->role == RP_ROLE_FORWARD ? send_stash(r, op) : RP_OK);
        r->forwards++;
        rp_runner_count_in_flight(r, &op->op);
        r->facts.in_flight_max =
            r->in_flight > r->facts.in_flight_max ? r->in_flight : r->facts.in_flight_max;
    }
fail:
    return err;
}

static rp_err try_forward(rp_runner *r) {
    running_op *op = next_running_op(r);
    runner_stage *s = op->stage;
    bool ready = true;
    rp_err err = RP_OK;
    RP_TRY(gather_inputs(r, op, &ready));
    RP_TRY(rp_runner_gather_values(r, op, &ready));
    if (!ready || !rp_port_out_has_room(s->forward) || !rp_port_out_has_room(s->stash) ||
        !rp_port_out_has_room(s->values) ||
        (!r->evaluating && rp_stage_gain_missing(s->stage, &r->next))) {
        return RP_OK;
    }
    take_inputs(op);
    RP_TRY(run_forward(r, op));
    RP_TRY(commit_op(r, op));
fail:
    return err;
}

/* ---- backward -------------------------------------------------------------------------------- */

static bool probe_is_read(rp_runner *r) {
    for (uint32_t i = 0; i < r->running_count; i++) {
        if (rp_runner_running(r, i)->probe) {
            return true;
        }
    }
    return false;
}

static rp_err read_probe(rp_runner *r, running_op *op) {
    rp_err err = RP_OK;
    op->probe = rp_stage_probe_done(op->stage->stage);
    if (op->probe) {
        err = rp_stage_probe_read(op->stage->stage, r->probe, &op->about);
    }
    return err;
}

static rp_err run_backward(rp_runner *r, running_op *op) {
    rp_stage_piece from[RP_PORT_PIECES_MAX];
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    const uint32_t count = point_at(op->labels ? &op->target : &op->input, from);
    rp_err err;
    op->time = op->rows ? op->row.piece[0].time : rp_stage_time_of(op->stage->stage, &op->op);
    if (op->op.kind != RP_OP_BACKWARD_WEIGHT) {
        take_output(r, op, op->stage->backward, to);
    }
    if (op->rows) {
        RP_TRY(rp_stage_write_stash(op->stage->stage, &op->op, op->time, row_of(op)));
    }
    RP_TRY(rp_stage_backward(op->stage->stage, &op->op, from, count, to));
    RP_TRY(read_probe(r, op));
    rp_runner_count_in_flight(r, &op->op);
    r->facts.microbatches += op->op.kind != RP_OP_BACKWARD_INPUT;
fail:
    return err;
}

static rp_err try_backward(rp_runner *r) {
    /* probe reports must never find the control link full, and its memory exists once */
    if (!rp_runner_may_report(r) || probe_is_read(r)) {
        return RP_OK;
    }
    running_op *op = next_running_op(r);
    runner_stage *s = op->stage;
    bool ready = true;
    rp_err err = RP_OK;
    RP_TRY(gather_inputs(r, op, &ready));
    if (r->next.kind != RP_OP_BACKWARD_WEIGHT) {
        ready = ready && rp_port_out_has_room(s->backward);
    }
    if (!ready) {
        return RP_OK;
    }
    take_inputs(op);
    RP_TRY(run_backward(r, op));
    RP_TRY(commit_op(r, op));
fail:
    return err;
}

/* ---- update ---------------------------------------------------------------------------------- */

/* Reads results and norms of the step, for every stage here. */
static rp_err read_step(rp_runner *r, running_op *op, bool norms) {
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        const runner_stage *s = &r->held[h];
        const rp_role scores = r->evaluating ? RP_ROLE_FORWARD : RP_ROLE_BACKWARD;
        const bool has_results = s->job->role == RP_ROLE_BOTH || s->job->role == scores;
        if (s->label && has_results && !(r->evaluating && r->eval_training)) {
            RP_TRY(rp_stage_results(s->stage, r->results, rp_runner_step_samples(r, op->op.step)));
            if (r->evaluating && r->eval_overlap && rp_layout_overlap_classes(s->job)) {
                RP_TRY(
                    rp_stage_overlap(s->stage, r->overlap, rp_runner_step_samples(r, op->op.step)));
            }
            op->results = true;
        }
        if (norms) {
            RP_TRY(rp_stage_norms(s->stage, s->norms));
            op->norms = true;
        }
    }
fail:
    return err;
}

static rp_err run_update(rp_runner *r, running_op *op, bool ask) {
    const bool skip = ask && r->skip;
    const float scale = ask ? r->grad_scale * op->stage->clip_scale : 1.0f;
    rp_err err;
    RP_TRY(rp_stage_update(op->stage->stage, &op->op, scale, skip));
    RP_TRY(op->stage->job->role == RP_ROLE_BACKWARD ? send_weights(r, op) : RP_OK);
    RP_TRY(read_probe(r, op));
    rp_runner_count_in_flight(r, &op->op);
    op->updates = true;
    r->facts.skipped += skip;
fail:
    return err;
}

/* First part of a shared stage's sum: sends this board's gradient to all boards that share it and,
 * if they also send, to its own port. */
static rp_err send_gradient(rp_runner *r, running_op *op, bool receives) {
    const runner_stage *s = op->stage;
    const uint32_t samples = rp_runner_step_samples(r, op->op.step);
    rp_range slice[RP_PORT_EDGES_MAX] = {{0}};
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    rp_err err;
    find_slices(r, RP_KIND_WEIGHT_GRADIENT, slice);
    if (receives) {
        slice[s->own_edge] = rp_job_own_samples(s->job, samples);
    }
    op->output = rp_port_out_take(s->summand, &op->op, false, slice);
    rp_port_out_parts(s->summand, op->output, to);
    RP_TRY(rp_stage_read_gradient(s->stage, to[0]));
    op->exchanges = true;
    RP_TRY(rp_runner_commit_part(r, op));
    r->sent_gradient = true;
fail:
    return err;
}

/* Second part: adds up the gradients of all boards in the order of their samples, which is the same
 * on every board. */
static rp_err sum_gradients(rp_runner *r, running_op *op) {
    const void *gradient[RP_PORT_PIECES_MAX];
    bool ready = true;
    rp_err err;
    RP_TRY(gather_pieces(r, op->from, &op->input, &ready));
    if (!ready) {
        return RP_OK;
    }
    RP_ASSERT(op->input.count > 0);
    for (uint32_t i = 0; i < op->input.count; i++) {
        gradient[i] = op->input.piece[i].part[0];
        rp_contributions_add(&op->sum, op->op.step, op->input.piece[i].samples);
    }
    take_pieces(op->from, &op->input);
    RP_TRY(rp_stage_sum_gradients(op->stage->stage, gradient, op->input.count));
    op->exchanges = true;
    RP_TRY(rp_runner_commit_part(r, op));
    r->summed = true;
fail:
    return err;
}

/* Before the update of a stage that several boards share. A board without samples in a short step
 * sends no gradient. *over: the gradient is that of all boards. The update may have other transfers
 * also, such as rows of tied gradients, which are exchanged later. */
static rp_err exchange_gradients(rp_runner *r, running_op *op, bool *over) {
    bool sends = false;
    bool receives = false;
    for (uint32_t t = 0; t < r->transfer_count; t++) {
        if (rp_runner_edge_of(r, &r->transfer[t])->carries == RP_KIND_WEIGHT_GRADIENT) {
            *(r->transfer[t].send ? &sends : &receives) = true;
        }
    }
    *over = r->summed || (!receives && (!sends || r->sent_gradient));
    if (*over) {
        return RP_OK;
    }
    if (sends && !r->sent_gradient) {
        return rp_port_out_has_room(op->stage->summand) ? send_gradient(r, op, receives) : RP_OK;
    }
    return sum_gradients(r, op);
}

/* Tries to run an update. The first update of a step reads the results of all stages here. If the
 * step needs a decision, the norms are then sent, and the updates follow the decision. */
static rp_err try_update(rp_runner *r) {
    const bool ask = rp_runner_asks(r);
    rp_err err = RP_OK;
    running_op *op = next_running_op(r);
    if (op->stage->summands && !r->evaluating) {
        bool over;
        RP_TRY(exchange_gradients(r, op, &over));
        if (!over) {
            return RP_OK;
        }
    }
    if (!r->evaluating && !r->updating) {
        bool over;
        RP_TRY(rp_runner_exchange_rows(r, op, &over));
        if (!over) {
            return RP_OK;
        }
    }
    if (r->waiting_decision || !rp_runner_may_report(r) ||
        !rp_port_out_has_room(op->stage->weight) ||
        (rp_stage_probe_waits(op->stage->stage) && probe_is_read(r))) {
        return RP_OK;
    }
    if (!r->updating) {
        RP_TRY(read_step(r, op, ask));
        r->updating = true;
        if (ask) {
            r->waiting_decision = true;
            return rp_runner_commit_part(r, op);
        }
    }
    if (!r->evaluating) {
        RP_TRY(run_update(r, op, ask));
    } else if (op->stage->job->role == RP_ROLE_BACKWARD) {
        RP_TRY(send_weights(r, op));
    }
    RP_TRY(commit_op(r, op));
    r->updating = !r->evaluating && !r->at_update; /* true if another stage's update follows */
    r->sent_gradient = r->summed = r->tied = false;
    r->rows_sent = 0;
fail:
    return err;
}

/* ---- the next op ----------------------------------------------------------------------------- */

static uint32_t list_transfers(rp_runner *r) {
    const uint32_t eval = r->evaluating ? rp_runner_step_samples(r, r->next.step) : 0;
    return rp_plan_transfers(r->at.plan, r->at.node, &r->next, eval, r->transfer);
}

rp_err rp_runner_issue(rp_runner *r) {
    if (!r->have_next && !r->ops_over) {
        r->have_next = rp_runner_next_op(r);
        r->ops_over = !r->have_next;
        r->transfer_count = r->have_next ? list_transfers(r) : 0;
    }
    if (!r->have_next || r->running_count == RP_RUNNER_DEPTH) {
        return RP_OK;
    }
    switch (r->next.kind) {
    case RP_OP_FORWARD:
        return try_forward(r);
    case RP_OP_BACKWARD:
    case RP_OP_BACKWARD_INPUT:
    case RP_OP_BACKWARD_WEIGHT:
        return try_backward(r);
    case RP_OP_UPDATE:
        return try_update(r);
    default:
        return rp_fail(RP_ERR_USAGE, "schedule %s asks for op %d, which does not exist",
                       r->held[0].job->method.kind->name, (int)r->next.kind);
    }
}
