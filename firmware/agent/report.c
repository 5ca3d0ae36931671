/* Reports of a segment to the host: results of steps, norms, prediction errors, the trace. */
#include <math.h>
#include <string.h>

#include "agent/runner_own.h"
#include "wire/trace.h"

static rp_err send_control(rp_runner *r, rp_Frame *frame, const rp_part *parts,
                           uint32_t part_count) {
    return rp_link_send(r->at.control, frame, parts, part_count, true, NULL, NULL);
}

bool rp_runner_may_report(const rp_runner *r) {
    rp_link_stats stats;
    rp_link_stats_of(r->at.control, &stats);
    return stats.unacked < RP_LINK_CONTROL_MAX / 2;
}

static void keep_told(rp_runner *r, uint64_t step, double loss, uint32_t samples,
                      uint32_t ignored) {
    uint64_t *at = r->told[step % RP_RUNNER_TOLD_MAX];
    memcpy(&at[0], &loss, sizeof loss);
    at[1] = (uint64_t)ignored << 32 | samples;
    r->told_count = step == r->told_end ? r->told_count + 1 : 1;
    r->told_count = r->told_count < RP_RUNNER_TOLD_MAX ? r->told_count : RP_RUNNER_TOLD_MAX;
    r->told_end = step + 1;
}

uint32_t rp_runner_told(const rp_runner *r, uint64_t *first, uint64_t (*out)[2]) {
    *first = r->told_end - r->told_count;
    for (uint32_t i = 0; i < r->told_count; i++) {
        memcpy(out[i], r->told[(*first + i) % RP_RUNNER_TOLD_MAX], sizeof out[i]);
    }
    return r->told_count;
}

/* Sums the counts of the samples that belong to this board. Returns 1 if there are counts. */
static uint32_t sum_overlap(rp_runner *r, const runner_stage *stage, rp_range own, rp_part *part) {
    const uint32_t numbers =
        r->evaluating && r->eval_overlap ? 2 * rp_layout_overlap_classes(stage->job) : 0;
    for (uint32_t k = 0; k < numbers; k++) {
        r->overlap_sum[k] = 0;
        for (uint32_t i = own.first; i < own.first + own.count; i++) {
            r->overlap_sum[k] += r->overlap[(size_t)numbers * i + k];
        }
    }
    *part = rp_part_of_array(RP_DTYPE_F64, r->overlap_sum, numbers);
    return numbers > 0;
}

rp_err rp_runner_report_results(rp_runner *r, const runner_stage *stage, const rp_op *op) {
    const rp_range own = rp_job_own_samples(stage->job, rp_runner_step_samples(r, op->step));
    const uint32_t samples = own.count;
    double loss = 0;
    double correct = 0;
    double counted = 0;
    if (samples == 0) {
        return RP_OK; /* in a short step all samples may belong to other boards */
    }
    for (uint32_t i = own.first; i < own.first + own.count; i++) {
        const float *result = &r->results[RP_LOSS_RESULT * (size_t)i];
        loss += (double)result[0];
        correct += (double)result[1];
        counted += (double)result[2];
    }
    const double targets = (double)samples * rp_job_target_rows(stage->job);
    const uint32_t ignored = (uint32_t)(targets - counted);
    rp_Frame frame = {.which_body = RP_KIND_STEP_DONE,
                      .body.step_done = {.step = op->step,
                                         .samples = samples,
                                         .correct = (uint32_t)correct,
                                         .loss_sum = loss,
                                         .stage = stage->job->stage,
                                         .ignored = ignored}};
    if (r->evaluating) {
        frame.which_body = RP_KIND_EVALUATE_DONE;
        frame.body.evaluate_done = (rp_EvaluateDone){.step = op->step,
                                                     .samples = samples,
                                                     .correct = (uint32_t)correct,
                                                     .loss_sum = loss,
                                                     .stage = stage->job->stage,
                                                     .ignored = ignored};
    } else {
        keep_told(r, op->step, loss, samples, ignored);
    }
    rp_part part;
    const uint32_t parts = sum_overlap(r, stage, own, &part);
    return send_control(r, &frame, &part, parts);
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

rp_err rp_runner_report_norms(rp_runner *r, runner_stage *stage, const rp_op *op) {
    const rp_job *job = stage->job;
    uint32_t count = rp_stage_norm_count(stage->stage);
    double total = 0;
    for (uint32_t i = 0; i < count; i++) {
        r->sumsq[i] = (double)stage->norms[i];
        total += rp_stage_norm_counts(stage->stage, i) ? r->sumsq[i] : 0;
    }
    stage->clip_scale = (float)rp_optim_clip_scale(job->optim.clip_norm_stage, sqrt(total));
    if (rp_decision_maker_of(&job->method, &job->optim, job->guard) == RP_DECISION_OWN) {
        return decide_step(r, stage, op, total);
    }
    rp_Frame frame = {.which_body = RP_KIND_NORMS,
                      .body.norms = {.step = op->step, .stage = job->stage}};
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, r->sumsq, count);
    return send_control(r, &frame, &part, count ? 1 : 0);
}

rp_err rp_runner_report_probe(rp_runner *r, const running_op *op) {
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

/* The trace is not part of the result: if the control link is full, records wait, and are dropped
 * rather than stop the ring. */
rp_err rp_runner_flush_trace(rp_runner *r) {
    if (r->trace_count == 0 || !rp_runner_may_report(r)) {
        return RP_OK;
    }
    rp_Frame frame = {.which_body = RP_KIND_TRACE};
    if (r->at.sensors) {
        frame.body.trace = *r->at.sensors;
    }
    const rp_part part = rp_part_of_bytes(r->trace, (size_t)r->trace_count * RP_TRACE_BYTES);
    rp_err err = send_control(r, &frame, &part, 1);
    if (err == RP_OK) {
        r->trace_count = 0;
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

rp_err rp_runner_record_op(rp_runner *r, const rp_op *op, int64_t start_ns, int64_t end_ns) {
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
    const rp_trace_record record = {.kind = (uint8_t)op->kind,
                                    .evaluation = r->evaluating,
                                    .stage = (uint16_t)op->stage,
                                    .step = op->step,
                                    .first = op->samples.first,
                                    .count = op->samples.count,
                                    .start_ns = start_ns,
                                    .end_ns = end_ns};
    rp_trace_pack(&record, r->trace + (size_t)r->trace_count++ * RP_TRACE_BYTES);
    return RP_OK;
}
