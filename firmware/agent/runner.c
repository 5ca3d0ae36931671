#include "agent/runner_own.h"
#include "wire/trace.h"

#include "base/log.h"

/* ---- opening --------------------------------------------------------------------------------- */

/* Counts of an evaluation whose targets are pixels. */
static rp_err open_overlap(rp_runner *r, const rp_job *job) {
    const size_t numbers = 2 * (size_t)rp_layout_overlap_classes(job);
    rp_err err;
    if (numbers == 0) {
        return RP_OK;
    }
    RP_TRY(RP_ARENA_NEW(r->arena, numbers * job->batch, &r->overlap));
    RP_TRY(RP_ARENA_NEW(r->arena, numbers, &r->overlap_sum));
fail:
    return err;
}

/* Allocates memory for the reports of every stage here. */
static rp_err open_held(rp_runner *r) {
    rp_err err;
    uint32_t norms_max = 0;
    RP_TRY(RP_ARENA_NEW(r->arena, r->at.held_count, &r->held));
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        const uint32_t norms = rp_stage_norm_count(r->at.held[h].stage);
        r->held[h].job = r->at.held[h].job;
        r->held[h].stage = r->at.held[h].stage;
        RP_TRY(RP_ARENA_NEW(r->arena, norms + 1, &r->held[h].norms));
        RP_TRY(open_overlap(r, r->held[h].job));
        norms_max = norms > norms_max ? norms : norms_max;
    }
    RP_TRY(RP_ARENA_NEW(r->arena, RP_PROBE_NORMS * (size_t)norms_max + 1, &r->sumsq));
    RP_TRY(RP_ARENA_NEW(r->arena, RP_PROBE_NORMS * (size_t)norms_max + 1, &r->probe));
    RP_TRY(RP_ARENA_NEW(r->arena, RP_LOSS_RESULT * (size_t)r->held[0].job->batch, &r->results));
fail:
    return err;
}

rp_err rp_runner_open(rp_arena *arena, const rp_runner_options *options, rp_runner **out) {
    rp_err err;
    rp_runner *r;
    RP_ASSERT(options->held_count > 0 && options->held_count <= RP_RUNNER_STAGES_MAX);
    RP_TRY(RP_ARENA_NEW(arena, 1, &r));
    r->at = *options;
    if (options->plan) { /* NULL for a profile, which trains nothing */
        r->plan = *options->plan;
        r->at.plan = &r->plan;
    }
    r->arena = arena;
    RP_TRY(open_held(r));
    RP_TRY(rp_runner_open_edges(r));
    for (uint32_t h = 0; h < r->at.held_count && !r->told; h++) {
        RP_TRY(r->held[h].label ? RP_ARENA_NEW(arena, RP_RUNNER_TOLD_MAX, &r->told) : RP_OK);
    }
    RP_TRY(rp_runner_open_own_weights(r));
    rp_runner_start_order(r, r->held[0].job->step_first);
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
    for (uint32_t h = 0; h < r->at.held_count; h++) {
        if (rp_stage_drain(r->held[h].stage) != RP_OK) {
            rp_log_warn("the executor's queue still has work after a run");
        }
    }
    for (uint32_t i = 0; i < r->running_count; i++) {
        running_op *op = rp_runner_running(r, i);
        rp_stage_release(op->stage->stage, &op->mark);
    }
    rp_runner_close_edges(r);
    *runner = NULL;
}

rp_runner_facts rp_runner_facts_of(const rp_runner *runner) {
    return runner->facts;
}

rp_runner_place rp_runner_place_of(const rp_runner *r) {
    const rp_sched_state *at = r->have_next && !r->evaluating ? &r->before : &r->sched;
    return (rp_runner_place){.step = at->step,
                             .ops = r->facts.ops,
                             .settled = r->running_count == 0 && rp_runner_is_quiet(r),
                             .paused = !r->active,
                             .clean =
                                 !r->active || (r->evaluating ? !r->eval_training : r->at_update),
                             .waits = r->active && r->waiting_decision,
                             .decided_end = r->decided_end,
                             .scale = r->grad_scale,
                             .skip = r->skip};
}

/* ---- segments -------------------------------------------------------------------------------- */

static void begin_segment(rp_runner *r, bool evaluating) {
    RP_ASSERT(!r->active && r->running_count == 0);
    r->active = true;
    r->began_ns = rp_clock_now_ns(r->at.clock);
    r->evaluating = evaluating;
    r->ops_over = false;
    r->have_next = false;
    r->updating = r->waiting_decision = false;
    r->sent_gradient = r->summed = r->tied = false;
    r->rows_sent = 0;
    rp_runner_begin_edges(r);
}

/* Ends the lists before step `end`. */
static rp_err end_lists(rp_runner *r, uint64_t end) {
    const rp_sched_state *list = &r->sched;
    if (list->f_step + (list->f > 0) > end) {
        return rp_fail(RP_ERR_PEER,
                       "step %llu is in flight, so the pipes cannot be drained before it",
                       (unsigned long long)end);
    }
    r->sched.shape.step_end = r->above.shape.step_end = end;
    rp_stage_end(r->held[0].stage, end);
    return RP_OK;
}

rp_err rp_runner_train(rp_runner *r, uint64_t step, uint64_t pause, bool drain) {
    rp_err err = RP_OK;
    if (r->active || step != r->sched.step || pause < step || pause > r->sched.shape.step_end) {
        return rp_fail(RP_ERR_PEER, "steps [%llu, %llu) cannot start now", (unsigned long long)step,
                       (unsigned long long)pause);
    }
    if (r->in_flight_got != r->in_flight_due) { /* missing bytes would be trained as zeros */
        return rp_fail(RP_ERR_PEER,
                       "the in-flight state is incomplete: %zu of %zu bytes were received",
                       r->in_flight_got, r->in_flight_due);
    }
    RP_TRY(drain ? end_lists(r, pause) : RP_OK);
    begin_segment(r, false);
    r->pause = pause;
    r->at_update = true;
fail:
    return err;
}

rp_err rp_runner_evaluate(rp_runner *r, const rp_Evaluate *order) {
    if (r->active || order->samples == 0 || order->samples > UINT32_MAX) {
        return rp_fail(RP_ERR_PEER, "an evaluation of %llu samples cannot start now",
                       (unsigned long long)order->samples);
    }
    begin_segment(r, true);
    r->eval_training = order->renew_statistics;
    r->eval_overlap = order->overlap;
    r->eval_samples = order->samples;
    r->eval_step = 0;
    r->eval_position = 0;
    return RP_OK;
}

rp_err rp_runner_stop(rp_runner *r, uint64_t step) {
    if (!r->active || r->evaluating || step >= r->pause) {
        return RP_OK;
    }
    /* nothing of `step` has been fed, so at most one op was requested, which cannot start */
    const rp_sched_state *at = r->have_next ? &r->before : &r->sched;
    if (step < at->step || (step == at->step && !r->at_update)) {
        return rp_fail(RP_ERR_PEER, "cannot stop before step %llu, which is being trained",
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

rp_err rp_runner_step(rp_runner *r, bool *active) {
    rp_err err = RP_OK;
    *active = r->active;
    if (!r->active) {
        return RP_OK;
    }
    RP_TRY(rp_runner_collect(r));
    /* before issuing, because a neighbour waits for finished ops */
    RP_TRY(rp_runner_send(r));
    for (uint32_t issued = 0; issued < RP_RUNNER_DEPTH; issued++) {
        uint32_t before = r->running_count;
        RP_TRY(rp_runner_receive(r));
        RP_TRY(rp_runner_issue(r));
        if (r->running_count == before) {
            break;
        }
    }
    if (r->ops_over && !r->have_next && r->running_count == 0 && rp_runner_is_quiet(r)) {
        RP_TRY(rp_runner_flush_trace(r));
        RP_TRY(rp_runner_return_weights(r));
        rp_runner_count_above(r, r->evaluating ? 0 : r->pause);
        r->active = false;
    }
    *active = r->active;
fail:
    return err;
}
