#include "agent/runner.h"

#include <math.h>
#include <string.h>

#include "agent/runner_own.h"
#include "base/log.h"

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_first(const rp_runner *r) {
    return r->at.job->stage == 0;
}

static bool is_last(const rp_runner *r) {
    return rp_job_is_last(r->at.job);
}

uint32_t rp_runner_window(const rp_job *job) {
    rp_sched_shape first = rp_job_sched_shape(job, 0, job->steps);
    first.stage = 0;
    return rp_sched_in_flight_max(&first) + 4;
}

rp_err rp_runner_open(rp_arena *arena, const rp_runner_links *links, rp_runner **out) {
    rp_err err;
    rp_runner *r;
    const rp_layout *layout = rp_stage_layout(links->stage);
    uint32_t micro = links->job->micro;
    RP_TRY(RP_ARENA_NEW(arena, 1, &r));
    r->at = *links;
    r->arena = arena;
    r->label_max = rp_runner_window(links->job);
    const rp_crossing lower = rp_layout_crossing(layout, false, false);
    const rp_crossing upper = rp_layout_crossing(layout, true, true);
    RP_TRY(rp_outlet_open(arena, links->out, RP_KIND_ACTIVATION,
                          rp_layout_crossing(layout, true, false), micro, &r->forward));
    RP_TRY(rp_outlet_open(arena, links->in, RP_KIND_GRADIENT,
                          rp_layout_crossing(layout, false, true), micro, &r->backward));
    RP_TRY(
        rp_inlet_open(arena, links->in, RP_KIND_ACTIVATION, lower, r->label_max, &r->activation));
    RP_TRY(rp_inlet_open(arena, links->feed, RP_KIND_INPUT, lower, 0, &r->input));
    RP_TRY(rp_inlet_open(arena, links->out, RP_KIND_GRADIENT, upper, 0, &r->gradient));
    RP_TRY(RP_ARENA_NEW(arena, r->label_max, &r->label));
    rp_runner_fill(r, links->job->step_first);
    RP_TRY(RP_ARENA_NEW(arena, 2 * (size_t)links->job->batch, &r->results));
    RP_TRY(RP_ARENA_NEW(arena, rp_stage_norm_count(links->stage) + 1, &r->norms));
    RP_TRY(RP_ARENA_NEW(arena, RP_PROBE_NORMS * (size_t)rp_stage_norm_count(links->stage) + 1,
                        &r->sumsq));
    RP_TRY(RP_ARENA_NEW(arena, RP_PROBE_NORMS * (size_t)rp_stage_norm_count(links->stage) + 1,
                        &r->probe));
    RP_TRY(RP_ARENA_NEW(arena, RP_TRACE_MAX * RP_TRACE_BYTES, &r->trace));
    *out = r;
fail:
    return err;
}

void rp_runner_close(rp_runner **runner) {
    rp_runner *r = *runner;
    if (!r) {
        return;
    }
    if (rp_device_drain(r->at.device) != RP_OK) {
        rp_log_warn("work was left in the device's queue");
    }
    for (uint32_t i = 0; i < r->running_count; i++) {
        rp_fence_release(&r->running[i].fence);
        rp_inlet_release(r->running[i].from, &r->running[i].input);
    }
    rp_inlet_close(&r->activation);
    rp_inlet_close(&r->gradient);
    rp_inlet_close(&r->input);
    if (r->feed_head) {
        rp_link_release(r->at.feed, &r->feed_head);
    }
    for (uint32_t i = 0; i < r->label_count; i++) {
        rp_link_release(r->at.feed, &r->label[i]);
    }
    *runner = NULL;
}

rp_runner_facts rp_runner_facts_of(const rp_runner *runner) {
    return runner->facts;
}

void rp_runner_fill(rp_runner *r, uint64_t step) {
    rp_sched_shape shape = rp_job_sched_shape(r->at.job, step, r->at.job->steps);
    rp_sched_start(&r->sched, &shape);
    shape.stage -= shape.stage > 0;
    rp_method_order(&r->at.job->method, &shape);
    rp_sched_start(&r->above, &shape);
    r->fill = step;
    r->forwards = r->forwards_above = 0;
    r->in_flight = 0;
}

void rp_runner_count_above(rp_runner *r, uint64_t pause) {
    rp_op op;
    while (r->above.step < pause && r->at.job->method.kind->next(&r->above, &op)) {
        r->forwards_above += op.kind == RP_OP_FORWARD;
    }
}

/* ---- segments -------------------------------------------------------------------------------- */

static void begin(rp_runner *r, bool evaluating) {
    RP_ASSERT(!r->active && r->running_count == 0);
    r->active = true;
    r->evaluating = evaluating;
    r->ops_over = false;
    r->have_next = false;
    r->waiting_verdict = r->have_verdict = false;
}

rp_err rp_runner_train(rp_runner *r, uint64_t step, uint64_t pause) {
    if (r->active || step != r->sched.step || pause < step || pause > r->at.job->steps) {
        return rp_fail(RP_ERR_PEER, "steps [%llu, %llu) can not start now",
                       (unsigned long long)step, (unsigned long long)pause);
    }
    if (r->flight_got != r->flight_due) { /* the rest would be trained as zeros */
        return rp_fail(RP_ERR_PEER, "of what was in flight %zu of %zu bytes came", r->flight_got,
                       r->flight_due);
    }
    begin(r, false);
    r->pause = pause;
    r->at_update = true;
    return RP_OK;
}

/* The steps of an evaluation: `batch` samples each, the last one may be short. */
static rp_sched_shape eval_shape(const rp_runner *r) {
    rp_sched_shape shape = rp_job_sched_shape(r->at.job, 0, UINT64_MAX);
    shape.epoch_samples = r->eval_samples;
    return shape;
}

rp_err rp_runner_evaluate(rp_runner *r, uint64_t samples, bool training) {
    if (r->active || samples == 0 || samples > UINT32_MAX) {
        return rp_fail(RP_ERR_PEER, "an evaluation of %llu samples can not start now",
                       (unsigned long long)samples);
    }
    begin(r, true);
    r->eval_training = training;
    r->eval_samples = samples;
    r->eval_step = 0;
    r->eval_micro = 0;
    return RP_OK;
}

rp_err rp_runner_stop(rp_runner *r, uint64_t step) {
    if (!r->active || r->evaluating || step >= r->pause) {
        return RP_OK;
    }
    /* nothing of `step` has been fed, so at most an op was asked for that can not start */
    const rp_sched_state *at = r->have_next ? &r->before : &r->sched;
    if (step < at->step || (step == at->step && !r->at_update)) {
        return rp_fail(RP_ERR_PEER, "stop before step %llu, which is in work",
                       (unsigned long long)step);
    }
    r->pause = step;
    if (r->have_next && step == at->step) {
        r->sched = r->before;
        r->have_next = false;
        r->ops_over = true;
    }
    return RP_OK;
}

/* Forwards step by step; behind the last microbatch of a step an UPDATE collects its results. */
static bool next_eval(rp_runner *r, rp_op *op) {
    rp_sched_shape shape = eval_shape(r);
    if (r->eval_step == rp_sched_epoch_steps(&shape)) {
        return false;
    }
    *op = (rp_op){.kind = RP_OP_FORWARD, .step = r->eval_step, .micro = r->eval_micro};
    if (r->eval_micro == rp_sched_micro_count(&shape, r->eval_step)) {
        op->kind = RP_OP_UPDATE;
        r->eval_micro = 0;
        r->eval_step++;
        return true;
    }
    op->samples = rp_sched_micro_range(&shape, r->eval_step, r->eval_micro++);
    return true;
}

static uint32_t step_samples(const rp_runner *r, uint64_t step) {
    rp_sched_shape shape = eval_shape(r);
    return rp_sched_step_samples(r->evaluating ? &shape : &r->sched.shape, step);
}

/* ---- what comes in --------------------------------------------------------------------------- */

/* The feed mixes labels and inputs: labels are put aside, an input stays the head. */
static rp_err drain_feed(rp_runner *r) {
    for (;;) {
        if (!r->feed_head) {
            rp_err err = rp_link_recv(r->at.feed, &r->feed_head);
            if (err != RP_OK) {
                return err == RP_ERR_AGAIN ? RP_OK : err;
            }
        }
        if (r->feed_head->header.kind == RP_KIND_LABEL) {
            if (r->label_count == r->label_max) {
                return RP_OK;
            }
            r->label[r->label_count++] = r->feed_head;
        } else if (r->feed_head->header.kind == RP_KIND_INPUT && is_first(r)) {
            if (r->input.head) {
                return RP_OK;
            }
            r->input.head = r->feed_head;
        } else {
            return rp_fail(RP_ERR_PEER, "the feed brought kind %d", (int)r->feed_head->header.kind);
        }
        r->feed_head = NULL;
    }
}

static uint32_t label_index(const rp_runner *r, uint64_t step) {
    uint32_t i = 0;
    while (i < r->label_count &&
           (r->label[i]->header.step != step || rp_of_evaluation(r->label[i]) != r->evaluating)) {
        i++;
    }
    return i;
}

/* The labels of the op's step, or NULL when they have not come yet. */
static rp_err find_target(rp_runner *r, const rp_op *op, const void **target) {
    uint32_t i = label_index(r, op->step);
    *target = NULL;
    if (i == r->label_count) {
        return i < r->label_max ? RP_OK
                                : rp_fail(RP_ERR_PEER, "no labels of step %llu among %u",
                                          (unsigned long long)op->step, i);
    }
    const rp_message *message = r->label[i];
    size_t width = r->at.job->loss->class_target ? 1 : r->at.job->target_width;
    uint32_t samples = step_samples(r, op->step);
    if (message->part_count != 1 || message->part[0].bytes != width * samples * sizeof(float)) {
        return rp_fail(RP_ERR_PEER, "labels of step %llu have the wrong size",
                       (unsigned long long)op->step);
    }
    *target = (const char *)message->part[0].data + op->samples.first * width * sizeof(float);
    return RP_OK;
}

static void drop_label(rp_runner *r, uint64_t step) {
    uint32_t i = label_index(r, step);
    if (i == r->label_count) {
        return;
    }
    rp_link_release(r->at.feed, &r->label[i]);
    r->label_count--;
    memmove(r->label + i, r->label + i + 1, (r->label_count - i) * sizeof *r->label);
}

static rp_err send_control(rp_runner *r, rp_Header *header, const rp_part *parts,
                           uint32_t part_count) {
    header->stage = r->at.job->stage;
    return rp_link_send(r->at.control, header, parts, part_count, true, NULL, NULL);
}

/* Reports of finished steps must never find the control link full. */
static bool control_has_room(const rp_runner *r) {
    rp_link_stats stats;
    rp_link_stats_of(r->at.control, &stats);
    return stats.unacked < RP_LINK_CONTROL_MAX / 2;
}

/* ---- issuing ops ----------------------------------------------------------------------------- */

static rp_err commit(rp_runner *r, running_op *op) {
    op->issued_ns = rp_clock_now_ns(r->at.clock);
    rp_err err = rp_device_fence(r->at.device, &op->fence);
    if (err == RP_OK) {
        r->running[r->running_count++] = *op;
        r->have_next = false;
        r->at_update = op->op.kind == RP_OP_UPDATE;
    }
    return err;
}

static rp_err try_forward(rp_runner *r) {
    rp_inlet *in = is_first(r) ? &r->input : &r->activation;
    const void *target = NULL;
    bool ready;
    rp_err err = RP_OK;
    if (is_first(r)) {
        ready = in->head != NULL;
        if (ready) {
            RP_TRY(rp_inlet_check(in, &r->next));
        }
    } else {
        RP_TRY(rp_inlet_peek(in, r->evaluating, &r->next, &ready));
    }
    const bool scored = r->evaluating && !r->eval_training;
    if (scored && is_last(r)) {
        RP_TRY(find_target(r, &r->next, &target));
        ready &= target != NULL;
    }
    if (!r->evaluating && rp_stage_trust_missing(r->at.stage, &r->next)) {
        return RP_OK;
    }
    if (!ready || !rp_outlet_free(&r->forward)) {
        return RP_OK;
    }
    running_op op = {.op = r->next, .input = in->head, .from = in};
    const void *from[RP_CUT_TENSORS_MAX];
    void *to[RP_CUT_TENSORS_MAX];
    for (uint32_t i = 0; i < in->crossing.count; i++) {
        from[i] = in->head->part[i].data;
    }
    in->head = NULL;
    op.output = rp_outlet_take(&r->forward, &op.op);
    if (op.output) {
        rp_outlet_parts(&r->forward, op.output, to);
    }
    RP_TRY(r->evaluating ? rp_stage_forward_only(r->at.stage, &op.op, from, to, r->eval_training)
                         : rp_stage_forward(r->at.stage, &op.op, from, to));
    if (scored && is_last(r)) {
        RP_TRY(rp_stage_evaluate(r->at.stage, &op.op, step_samples(r, op.op.step), target));
    } else if (r->evaluating) {
        rp_stage_forget(r->at.stage, &op.op);
    } else {
        r->forwards++;
        r->in_flight++;
        r->facts.in_flight_max =
            r->in_flight > r->facts.in_flight_max ? r->in_flight : r->facts.in_flight_max;
    }
    RP_TRY(commit(r, &op));
fail:
    return err;
}

static bool probe_is_read(const rp_runner *r) {
    for (uint32_t i = 0; i < r->running_count; i++) {
        if (r->running[i].probe) {
            return true;
        }
    }
    return false;
}

static rp_err try_backward(rp_runner *r) {
    const void *from[RP_CUT_TENSORS_MAX] = {NULL};
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    /* reports of a probe must never find the control link full, and its memory is there once */
    if (!control_has_room(r) || probe_is_read(r)) {
        return RP_OK;
    }
    bool weights_only = r->next.kind == RP_OP_BACKWARD_WEIGHT;
    bool needs_parcel = !weights_only && !is_last(r) && r->gradient.crossing.count > 0;
    bool ready = true;
    rp_err err = RP_OK;
    running_op op = {.op = r->next};
    if (needs_parcel) {
        RP_TRY(rp_inlet_peek(&r->gradient, false, &r->next, &ready));
    } else if (!weights_only && is_last(r)) {
        RP_TRY(find_target(r, &r->next, &from[0]));
        ready = from[0] != NULL;
    }
    if (!ready || (!weights_only && !rp_outlet_free(&r->backward))) {
        return RP_OK;
    }
    if (needs_parcel) {
        for (uint32_t i = 0; i < r->gradient.crossing.count; i++) {
            from[i] = r->gradient.head->part[i].data;
        }
        op.input = r->gradient.head;
        op.from = &r->gradient;
        r->gradient.head = NULL;
    }
    if (!weights_only) {
        op.output = rp_outlet_take(&r->backward, &op.op);
        if (op.output) {
            rp_outlet_parts(&r->backward, op.output, to);
        }
    }
    RP_TRY(rp_stage_backward(r->at.stage, &op.op, from, to));
    if (rp_stage_probe_done(r->at.stage)) {
        RP_TRY(rp_stage_probe_read(r->at.stage, r->probe, &op.about));
        op.probe = true;
    }
    r->in_flight -= op.op.kind != RP_OP_BACKWARD_WEIGHT;
    r->facts.microbatches += op.op.kind != RP_OP_BACKWARD_INPUT;
    RP_TRY(commit(r, &op));
fail:
    return err;
}

/* An update: with a verdict to wait for, first the norms go out, then the update runs as told. */
static rp_err try_update(rp_runner *r) {
    running_op op = {.op = r->next};
    rp_err err = RP_OK;
    const rp_job *job = r->at.job;
    bool ask =
        !r->evaluating && rp_verdict_of(&job->method, &job->optim, job->guard) != RP_VERDICT_NONE;
    bool scored = !r->eval_training || !r->evaluating;
    if ((r->waiting_verdict && !r->have_verdict) || !control_has_room(r)) {
        return RP_OK;
    }
    bool first_half = !r->waiting_verdict;
    if (first_half && scored && is_last(r)) {
        RP_TRY(rp_stage_results(r->at.stage, r->results, step_samples(r, op.op.step)));
        op.results = true;
    }
    if (ask && first_half) {
        RP_TRY(rp_stage_norms(r->at.stage, r->norms));
        op.norms = true;
        r->waiting_verdict = true;
        RP_TRY(commit(r, &op));
        r->have_next = true; /* the second half is still to come */
        return RP_OK;
    }
    if (!r->evaluating) {
        RP_TRY(rp_stage_update(r->at.stage, &op.op, ask ? r->grad_scale : 1.0f, ask && r->skip));
        r->facts.skipped += ask && r->skip;
    }
    r->waiting_verdict = r->have_verdict = false;
    RP_TRY(commit(r, &op));
fail:
    return err;
}

static bool next_training(rp_runner *r) {
    if (r->at_update && r->sched.step == r->pause) {
        return false;
    }
    r->before = r->sched;
    return r->at.job->method.kind->next(&r->sched, &r->next);
}

static rp_err try_next(rp_runner *r) {
    if (!r->have_next && !r->ops_over) {
        r->have_next = r->evaluating ? next_eval(r, &r->next) : next_training(r);
        r->ops_over = !r->have_next;
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
        return rp_fail(RP_ERR_USAGE, "schedule %s asks for op %d, which no stage can do",
                       r->at.job->method.kind->name, (int)r->next.kind);
    }
}

/* ---- finished ops ---------------------------------------------------------------------------- */

static rp_err report_results(rp_runner *r, const rp_op *op) {
    uint32_t samples = step_samples(r, op->step);
    double loss = 0;
    uint64_t correct = 0;
    for (uint32_t i = 0; i < samples; i++) {
        loss += (double)r->results[2 * (size_t)i];
        correct += r->results[2 * (size_t)i + 1] > 0.5f;
    }
    rp_Header header = rp_Header_init_zero;
    header.kind = r->evaluating ? RP_KIND_EVAL_DONE : RP_KIND_STEP_DONE;
    header.step = op->step;
    header.number_count = 1;
    header.number[0] = loss;
    header.whole_count = 2;
    header.whole[0] = samples;
    header.whole[1] = correct;
    drop_label(r, op->step);
    return send_control(r, &header, NULL, 0);
}

/* The stage's own verdict: a gradient that is not finite skips the step here. */
static rp_err judge(rp_runner *r, const rp_op *op, double total) {
    rp_Header header = rp_Header_init_zero;
    rp_err err = rp_runner_verdict(r, op->step, 1.0f, !isfinite(total));
    if (err != RP_OK || isfinite(total)) {
        return err;
    }
    header.kind = RP_KIND_SKIPPED;
    header.step = op->step;
    return send_control(r, &header, NULL, 0);
}

static rp_err report_norms(rp_runner *r, const rp_op *op) {
    const rp_job *job = r->at.job;
    uint32_t count = rp_stage_norm_count(r->at.stage);
    double total = 0;
    for (uint32_t i = 0; i < count; i++) {
        r->sumsq[i] = (double)r->norms[i];
        total += r->sumsq[i];
    }
    if (rp_verdict_of(&job->method, &job->optim, job->guard) == RP_VERDICT_OWN) {
        return judge(r, op, total);
    }
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_NORMS;
    header.step = op->step;
    rp_part part = {r->sumsq, count * sizeof *r->sumsq};
    return send_control(r, &header, &part, count ? 1 : 0);
}

static rp_err report_probe(rp_runner *r, const running_op *op) {
    const uint32_t count = RP_PROBE_NORMS * rp_stage_norm_count(r->at.stage);
    for (uint32_t i = 0; i < count; i++) {
        r->sumsq[i] = (double)r->probe[i];
    }
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_PROBE_DONE;
    header.step = op->op.step;
    header.whole_count = 3;
    header.whole[0] = op->about.gap;
    header.whole[1] = op->about.ahead;
    header.whole[2] = op->about.effect;
    const rp_part part = {r->sumsq, count * sizeof *r->sumsq};
    return send_control(r, &header, &part, 1);
}

static void put_u64(uint8_t *at, uint64_t value) {
    for (int i = 0; i < 8; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Trace records are a picture, not the run: when the control link is full they wait, and are
 * dropped rather than stop the ring. */
static rp_err flush_trace(rp_runner *r) {
    if (r->trace_count == 0 || !control_has_room(r)) {
        return RP_OK;
    }
    rp_Header header = rp_Header_init_zero;
    header.kind = RP_KIND_TRACE;
    rp_part part = {r->trace, (size_t)r->trace_count * RP_TRACE_BYTES};
    rp_err err = send_control(r, &header, &part, 1);
    if (err == RP_OK) {
        r->trace_count = 0;
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

static rp_err record(rp_runner *r, const rp_op *op, int64_t start_ns, int64_t end_ns) {
    if (r->trace_count == RP_TRACE_MAX) {
        rp_err err = flush_trace(r);
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

static int64_t start_of(const rp_runner *r, const running_op *op) {
    return op->issued_ns > r->last_done_ns ? op->issued_ns : r->last_done_ns;
}

/* Earliest end of the oldest op on the board that is emulated; 0 = as it comes. */
static int64_t pace_end(const rp_runner *r, const running_op *op) {
    const rp_pace *pace = &r->at.job->pace;
    const double full_ms = op->op.kind == RP_OP_FORWARD  ? pace->forward_ms
                           : op->op.kind == RP_OP_UPDATE ? 0
                           : op->op.kind == RP_OP_BACKWARD
                               ? pace->backward_ms
                               : pace->backward_ms / 2; /* halves of a split one */
    const double share = (double)op->op.samples.count / r->at.job->micro;
    return full_ms > 0 ? start_of(r, op) + (int64_t)(full_ms * share * 1e6) : 0;
}

int64_t rp_runner_sleep_ns(const rp_runner *r, int64_t most_ns) {
    const int64_t end_ns = r->running_count > 0 ? pace_end(r, &r->running[0]) : 0;
    const int64_t left_ns = end_ns - rp_clock_now_ns(r->at.clock);
    return end_ns == 0 || left_ns > most_ns ? most_ns : left_ns > 0 ? left_ns : 0;
}

static rp_err finish_op(rp_runner *r, running_op *op, int64_t done_ns) {
    rp_err err = RP_OK;
    int64_t start_ns = start_of(r, op);
    r->last_done_ns = done_ns;
    r->facts.busy_ns += done_ns > start_ns ? done_ns - start_ns : 0;
    r->facts.ops++;
    rp_inlet_release(op->from, &op->input);
    if (op->output) {
        op->output->state = RP_OUTLET_READY;
    }
    RP_TRY(record(r, &op->op, start_ns, done_ns > start_ns ? done_ns : start_ns));
    if (op->results) {
        RP_TRY(report_results(r, &op->op));
    }
    if (op->op.kind == RP_OP_UPDATE) {
        RP_TRY(flush_trace(r)); /* the host shows who is busy */
    }
    if (op->norms) {
        RP_TRY(report_norms(r, &op->op));
    }
    if (op->probe) {
        RP_TRY(report_probe(r, op));
    }
fail:
    return err;
}

static rp_err collect(rp_runner *r) {
    while (r->running_count > 0) {
        running_op op = r->running[0];
        bool done;
        int64_t done_ns = 0;
        rp_err err = rp_fence_poll(&op.fence, &done, &done_ns);
        if (err != RP_OK || !done) {
            return err;
        }
        const int64_t paced_ns = pace_end(r, &op);
        if (paced_ns > rp_clock_now_ns(r->at.clock)) {
            return RP_OK;
        }
        done_ns = done_ns > paced_ns ? done_ns : paced_ns;
        rp_fence_release(&op.fence);
        r->running_count--;
        memmove(r->running, r->running + 1, r->running_count * sizeof *r->running);
        err = finish_op(r, &op, done_ns);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

rp_err rp_runner_verdict(rp_runner *r, uint64_t step, float grad_scale, bool skip) {
    if (!r->active || !r->waiting_verdict || r->have_verdict || r->next.step != step) {
        return rp_fail(RP_ERR_PEER, "a verdict for step %llu that nobody waits for",
                       (unsigned long long)step);
    }
    r->have_verdict = true;
    r->grad_scale = grad_scale;
    r->skip = skip;
    return RP_OK;
}

rp_err rp_runner_step(rp_runner *r, bool *active) {
    rp_err err = RP_OK;
    *active = r->active;
    if (!r->active) {
        return RP_OK;
    }
    RP_TRY(collect(r));
    for (uint32_t issued = 0; issued < RP_RUNNER_DEPTH; issued++) {
        uint32_t before = r->running_count;
        if (r->at.feed) {
            RP_TRY(drain_feed(r));
        }
        RP_TRY(try_next(r));
        if (r->running_count == before) {
            break;
        }
    }
    RP_TRY(rp_outlet_send(&r->forward, r->at.job->stage, r->evaluating));
    RP_TRY(rp_outlet_send(&r->backward, r->at.job->stage, r->evaluating));
    if (r->ops_over && !r->have_next && r->running_count == 0 && rp_outlet_quiet(&r->forward) &&
        rp_outlet_quiet(&r->backward)) {
        RP_TRY(flush_trace(r));
        rp_runner_count_above(r, r->evaluating ? 0 : r->pause);
        r->active = false;
    }
    *active = r->active;
fail:
    return err;
}
