/* Ops that the device has finished: what they set free, what the host is told of them. */
#include <math.h>

#include "agent/runner_own.h"

/* ---- reports --------------------------------------------------------------------------------- */

static rp_err send_control(rp_runner *r, rp_Frame *frame, const rp_part *parts,
                           uint32_t part_count) {
    return rp_link_send(r->at.control, frame, parts, part_count, true, NULL, NULL);
}

bool rp_runner_may_report(const rp_runner *r) {
    rp_link_stats stats;
    rp_link_stats_of(r->at.control, &stats);
    return stats.unacked < RP_LINK_CONTROL_MAX / 2;
}

static rp_err report_results(rp_runner *r, const runner_stage *stage, const rp_op *op) {
    uint32_t samples = rp_runner_step_samples(r, op->step);
    double loss = 0;
    uint32_t correct = 0;
    for (uint32_t i = 0; i < samples; i++) {
        loss += (double)r->results[2 * (size_t)i];
        correct += r->results[2 * (size_t)i + 1] > 0.5f;
    }
    rp_Frame frame = {.which_body = RP_KIND_STEP_DONE,
                      .body.step_done = {.step = op->step,
                                         .samples = samples,
                                         .correct = correct,
                                         .loss_sum = loss,
                                         .stage = stage->job->stage}};
    if (r->evaluating) {
        frame.which_body = RP_KIND_EVALUATE_DONE;
        frame.body.evaluate_done = (rp_EvaluateDone){.step = op->step,
                                                     .samples = samples,
                                                     .correct = correct,
                                                     .loss_sum = loss,
                                                     .stage = stage->job->stage};
    }
    return send_control(r, &frame, NULL, 0);
}

/* The stage's own step decision: a gradient that is not finite skips the step here. */
static rp_err decide_step(rp_runner *r, const runner_stage *stage, const rp_op *op, double total) {
    rp_Frame frame = {.which_body = RP_KIND_SKIPPED,
                      .body.skipped = {.step = op->step, .stage = stage->job->stage}};
    rp_err err = rp_runner_decide_step(r, op->step, 1.0f, !isfinite(total));
    if (err != RP_OK || isfinite(total)) {
        return err;
    }
    return send_control(r, &frame, NULL, 0);
}

static rp_err report_norms(rp_runner *r, const runner_stage *stage, const rp_op *op) {
    const rp_job *job = stage->job;
    uint32_t count = rp_stage_norm_count(stage->stage);
    double total = 0;
    for (uint32_t i = 0; i < count; i++) {
        r->sumsq[i] = (double)stage->norms[i];
        total += r->sumsq[i];
    }
    if (rp_decision_maker_of(&job->method, &job->optim, job->guard) == RP_DECISION_OWN) {
        return decide_step(r, stage, op, total);
    }
    rp_Frame frame = {.which_body = RP_KIND_NORMS,
                      .body.norms = {.step = op->step, .stage = job->stage}};
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, r->sumsq, count);
    return send_control(r, &frame, &part, count ? 1 : 0);
}

static rp_err report_probe(rp_runner *r, const running_op *op) {
    const uint32_t count = RP_PROBE_NORMS * rp_stage_norm_count(op->stage->stage);
    for (uint32_t i = 0; i < count; i++) {
        r->sumsq[i] = (double)r->probe[i];
    }
    rp_Frame frame = {.which_body = RP_KIND_PREDICTION_ERROR,
                      .body.prediction_error = {.step = op->op.step,
                                                .staleness = op->about.staleness,
                                                .lookahead = op->about.ahead,
                                                .effect = op->about.effect,
                                                .forward_step = op->about.step,
                                                .stage = op->stage->job->stage}};
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, r->sumsq, count);
    return send_control(r, &frame, &part, 1);
}

/* ---- trace ----------------------------------------------------------------------------------- */

static void put_u64(uint8_t *at, uint64_t value) {
    for (int i = 0; i < 8; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Trace records are a picture, not the run: when the control link is full they wait, and are
 * dropped rather than stop the ring. */
rp_err rp_runner_flush_trace(rp_runner *r) {
    if (r->trace_count == 0 || !rp_runner_may_report(r)) {
        return RP_OK;
    }
    rp_Frame frame = {.which_body = RP_KIND_TRACE};
    const rp_part part = rp_part_of_bytes(r->trace, (size_t)r->trace_count * RP_TRACE_BYTES);
    rp_err err = send_control(r, &frame, &part, 1);
    if (err == RP_OK) {
        r->trace_count = 0;
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

static rp_err record(rp_runner *r, const rp_op *op, int64_t start_ns, int64_t end_ns) {
    if (r->trace_count == RP_TRACE_MAX) {
        rp_err err = rp_runner_flush_trace(r);
        if (err != RP_OK) {
            return err;
        }
    }
    if (r->trace_count == RP_TRACE_MAX) {
        r->facts.trace_dropped++;
        return RP_OK;
    }
    uint8_t *at = r->trace + (size_t)r->trace_count++ * RP_TRACE_BYTES;
    uint64_t kind = (uint64_t)op->kind | (r->evaluating ? 0x100u : 0u);
    put_u64(at, kind);
    put_u64(at + 8, op->step);
    put_u64(at + 16, (uint64_t)op->samples.first | (uint64_t)op->samples.count << 32);
    put_u64(at + 24, (uint64_t)start_ns);
    put_u64(at + 32, (uint64_t)end_ns);
    return RP_OK;
}

/* ---- ops ------------------------------------------------------------------------------------- */

static int64_t start_of(const rp_runner *r, const running_op *op) {
    return op->issued_ns > r->last_done_ns ? op->issued_ns : r->last_done_ns;
}

/* Earliest end of the oldest op on the board that is emulated; 0 = as it comes. */
static int64_t pace_end(const rp_runner *r, const running_op *op) {
    const rp_pace *pace = &op->stage->job->pace;
    const double full_ms = op->op.kind == RP_OP_FORWARD  ? pace->forward_ms
                           : op->op.kind == RP_OP_UPDATE ? 0
                           : op->op.kind == RP_OP_BACKWARD
                               ? pace->backward_ms
                               : pace->backward_ms / 2; /* halves of a split one */
    const double share = (double)op->op.samples.count / op->stage->job->micro;
    return full_ms > 0 ? start_of(r, op) + (int64_t)(full_ms * share * 1e6) : 0;
}

int64_t rp_runner_sleep_ns(const rp_runner *r, int64_t most_ns) {
    const running_op *oldest = r->running_count > 0 ? &r->running[r->running_first] : NULL;
    const int64_t paced_ns = oldest ? pace_end(r, oldest) : 0;
    const int64_t known_ns = oldest ? oldest->mark.end_ns : 0; /* by an executor that says so */
    const int64_t end_ns = paced_ns > known_ns ? paced_ns : known_ns;
    const int64_t left_ns = end_ns - rp_clock_now_ns(r->at.clock);
    return end_ns == 0 || left_ns > most_ns ? most_ns : left_ns > 0 ? left_ns : 0;
}

static void return_pieces(rp_port_in *port, rp_port_pieces *pieces) {
    if (port) {
        rp_port_in_return(port, pieces);
    }
}

static rp_err finish_op(rp_runner *r, running_op *op, int64_t done_ns) {
    rp_err err = RP_OK;
    int64_t start_ns = start_of(r, op);
    r->last_done_ns = done_ns;
    r->facts.busy_ns += done_ns > start_ns ? done_ns - start_ns : 0;
    r->facts.ops++;
    return_pieces(op->from, &op->input);
    return_pieces(op->labels, &op->target);
    if (op->output) {
        rp_port_out_fill(op->output);
    }
    RP_TRY(record(r, &op->op, start_ns, done_ns > start_ns ? done_ns : start_ns));
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        if (op->results && r->held[h].label) {
            RP_TRY(report_results(r, &r->held[h], &op->op));
        }
    }
    if (op->op.kind == RP_OP_UPDATE) {
        RP_TRY(rp_runner_flush_trace(r)); /* the host shows who is busy */
    }
    for (uint32_t h = 0; op->norms && h < r->at.held_count; h++) {
        RP_TRY(report_norms(r, &r->held[h], &op->op));
    }
    if (op->probe) {
        RP_TRY(report_probe(r, op));
    }
fail:
    return err;
}

rp_err rp_runner_collect(rp_runner *r) {
    while (r->running_count > 0) {
        running_op *op = rp_runner_running(r, 0);
        bool done;
        int64_t done_ns = 0;
        rp_err err = rp_stage_poll(op->stage->stage, &op->mark, &done, &done_ns);
        if (err != RP_OK || !done) {
            return err;
        }
        const int64_t paced_ns = pace_end(r, op);
        if (paced_ns > rp_clock_now_ns(r->at.clock)) {
            return RP_OK;
        }
        done_ns = done_ns > paced_ns ? done_ns : paced_ns;
        rp_stage_release(op->stage->stage, &op->mark);
        r->running_first = (r->running_first + 1) % RP_RUNNER_DEPTH;
        r->running_count--;
        err = finish_op(r, op, done_ns);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}
