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

/* Steps from `end` on are not for these pipes. */
static rp_err end_lists(rp_runner *r, uint64_t end) {
    const rp_sched_state *list = &r->sched;
    if (list->f_step + (list->f > 0) > end) {
        return rp_fail(RP_ERR_PEER, "step %llu is in flight, no drain can end in front of it",
                       (unsigned long long)end);
    }
    r->sched.shape.step_end = r->above.shape.step_end = end;
    rp_stage_end(r->at.stage, end);
    return RP_OK;
}

rp_err rp_runner_train(rp_runner *r, uint64_t step, uint64_t pause, bool drain) {
    rp_err err = RP_OK;
    if (r->active || step != r->sched.step || pause < step || pause > r->sched.shape.step_end) {
        return rp_fail(RP_ERR_PEER, "steps [%llu, %llu) can not start now",
                       (unsigned long long)step, (unsigned long long)pause);
    }
    if (r->flight_got != r->flight_due) { /* the rest would be trained as zeros */
        return rp_fail(RP_ERR_PEER, "of what was in flight %zu of %zu bytes came", r->flight_got,
                       r->flight_due);
    }
    RP_TRY(drain ? end_lists(r, pause) : RP_OK);
    begin(r, false);
    r->pause = pause;
    r->at_update = true;
fail:
    return err;
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

uint32_t rp_runner_step_samples(const rp_runner *r, uint64_t step) {
    rp_sched_shape shape = eval_shape(r);
    return rp_sched_step_samples(r->evaluating ? &shape : &r->sched.shape, step);
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
        RP_TRY(rp_runner_find_target(r, &r->next, &target));
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
        RP_TRY(
            rp_stage_evaluate(r->at.stage, &op.op, rp_runner_step_samples(r, op.op.step), target));
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

static rp_err read_probe(rp_runner *r, running_op *op) {
    rp_err err = RP_OK;
    op->probe = rp_stage_probe_done(r->at.stage);
    if (op->probe) {
        err = rp_stage_probe_read(r->at.stage, r->probe, &op->about);
    }
    return err;
}

static rp_err try_backward(rp_runner *r) {
    const void *from[RP_CUT_TENSORS_MAX] = {NULL};
    void *to[RP_CUT_TENSORS_MAX] = {NULL};
    /* reports of a probe must never find the control link full, and its memory is there once */
    if (!rp_runner_may_report(r) || probe_is_read(r)) {
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
        RP_TRY(rp_runner_find_target(r, &r->next, &from[0]));
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
    RP_TRY(read_probe(r, &op));
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
    if ((r->waiting_verdict && !r->have_verdict) || !rp_runner_may_report(r) ||
        (rp_stage_probe_waits(r->at.stage) && probe_is_read(r))) {
        return RP_OK;
    }
    bool first_half = !r->waiting_verdict;
    if (first_half && scored && is_last(r)) {
        RP_TRY(rp_stage_results(r->at.stage, r->results, rp_runner_step_samples(r, op.op.step)));
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
        RP_TRY(read_probe(r, &op));
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
    RP_TRY(rp_runner_collect(r));
    /* a neighbour waits for what has ended, nobody for what is issued next */
    RP_TRY(rp_outlet_send(&r->forward, r->at.job->stage, r->evaluating));
    RP_TRY(rp_outlet_send(&r->backward, r->at.job->stage, r->evaluating));
    for (uint32_t issued = 0; issued < RP_RUNNER_DEPTH; issued++) {
        uint32_t before = r->running_count;
        if (r->at.feed) {
            RP_TRY(rp_runner_drain_feed(r));
        }
        RP_TRY(try_next(r));
        if (r->running_count == before) {
            break;
        }
    }
    if (r->ops_over && !r->have_next && r->running_count == 0 && rp_outlet_quiet(&r->forward) &&
        rp_outlet_quiet(&r->backward)) {
        RP_TRY(rp_runner_flush_trace(r));
        rp_runner_count_above(r, r->evaluating ? 0 : r->pause);
        r->active = false;
    }
    *active = r->active;
fail:
    return err;
}
