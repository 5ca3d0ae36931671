/* What the boards report while a segment runs: steps, norms that wait for a decision, prediction
 * errors, results of an evaluation. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

/* A step whose results are all there. */
rp_err rp_report_step(rp_controller *c, double loss_sum) {
    const uint64_t step = c->train.position.step;
    const uint32_t samples = rp_plan_step_samples(c->setup.plan, step);
    const double lr =
        rp_lr_at(&c->run.lr, (double)c->run.optim.lr, step, c->run.steps, c->run.epoch_steps);
    rp_finite_note_loss(c, loss_sum);
    c->train.round.loss += loss_sum;
    c->train.round.samples += samples;
    rp_trials_note_step(c, rp_drift_note_step(c->measure));
    c->train.position.step++;
    c->train.position.round = 0;
    c->train.position.test.done = c->train.position.validation.done = false;
    return rp_record_step(rp_folder_record(c->folder), step, loss_sum / (double)samples, lr,
                          samples);
}

rp_err rp_report_on_step_done(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_StepDone *done = &message->frame.body.step_done;
    double loss_sum;
    rp_err err;
    if (done->step >= c->train.segment_end) {
        return rp_fail(RP_ERR_PEER,
                       "board %s reports step %" PRIu64 ", the segment ends before step %" PRIu64,
                       c->ring.board[board].name, done->step, c->train.segment_end);
    }
    RP_TRY(rp_tally_add_step(&c->train.tally, board, c->train.position.step, done));
    rp_ring_note_progress(&c->ring);
    while (rp_tally_take_step(&c->train.tally, c->train.position.step, &loss_sum)) {
        rp_copy_pace_note_step(c);
        RP_TRY(rp_waiting_note_step(c));
        RP_TRY(rp_report_step(c, loss_sum));
    }
fail:
    return err;
}

rp_err rp_report_on_evaluated(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_EvaluateDone *done = &message->frame.body.evaluate_done;
    rp_err err;
    if (done->samples > c->train.pass.scored - c->train.pass.samples) {
        return rp_fail(RP_ERR_PEER, "board %s evaluated more samples than it was sent",
                       c->ring.board[board].name);
    }
    RP_TRY(rp_tally_add_pass(&c->train.tally, board, done->loss_sum));
    rp_ring_note_progress(&c->ring);
    c->train.pass.samples += done->samples;
    c->train.pass.correct += done->correct;
    RP_TRY(rp_waiting_note_step(c));
fail:
    return err;
}

static void count_skipped(rp_controller *c, uint32_t board, uint64_t step) {
    rp_board_state *at = &c->ring.board[board];
    at->skipped_row = at->skipped_row > 0 && step == at->skipped_step + 1 ? at->skipped_row + 1 : 1;
    at->skipped_step = step;
}

/* Without a flush every stage judges its own gradients. */
rp_err rp_report_on_skipped(rp_controller *c, uint32_t board, const rp_message *message) {
    char text[160];
    count_skipped(c, board, message->frame.body.skipped.step);
    rp_ring_note_progress(&c->ring);
    (void)snprintf(text, sizeof text,
                   "a gradient is not finite on stage %u: it leaves out this update",
                   rp_controller_first_stage(c, board));
    return rp_record_event(rp_folder_record(c->folder), "skipped",
                           message->frame.body.skipped.step + 1, text);
}

rp_err rp_report_on_trace(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_ring_note_progress(&c->ring);
    return rp_controller_record_ops(c, board, &message->part[0]);
}

/* ---- decisions on a step --------------------------------------------------------------------- */

static bool stage_trains(const rp_controller *c, uint32_t stage, uint32_t param) {
    const rp_model_param *p = &c->run.model->param[param];
    return p->role == RP_PARAM_TRAINED && p->layer >= c->setup.plan_cut.first[stage] &&
           p->layer < c->setup.plan_cut.first[stage + 1];
}

/* The global gradient norm is summed in the order of the model's parameters, so the decision does
 * not depend on the cut; a non-finite gradient anywhere skips the step everywhere. */
static rp_err decide_step(rp_controller *c) {
    double total = 0;
    rp_err err = RP_OK;
    for (uint32_t p = 0; p < c->run.model->param_count; p++) {
        total += c->train.norms.sumsq[p];
    }
    rp_Frame frame = {.which_body = RP_KIND_STEP_DECISION,
                      .body.step_decision = {
                          .step = c->train.norms.step, .scale = 1.0, .skip = !isfinite(total)}};
    if (isfinite(total)) {
        frame.body.step_decision.scale = rp_optim_clip_scale(c->run.optim.clip_norm, sqrt(total));
        RP_TRY(rp_record_norm(rp_folder_record(c->folder), c->train.norms.step, sqrt(total)));
    }
    c->train.norms.got = 0;
    memset(c->train.norms.of, 0, c->setup.plan->hold_count * sizeof *c->train.norms.of);
    if (frame.body.step_decision.skip) {
        count_skipped(c, 0, c->train.norms.step);
        RP_TRY(rp_record_event(rp_folder_record(c->folder), "skipped", c->train.norms.step + 1,
                               "a gradient is not finite: the step is skipped"));
    }
    RP_TRY(rp_ring_post_all(&c->ring, &frame));
fail:
    return err;
}

static rp_err check_norms(const rp_controller *c, const rp_plan_hold *hold, uint64_t step) {
    const char *name = c->ring.board[hold->node].name;
    if (c->train.norms.of[hold - c->setup.plan->hold]) {
        return rp_fail(RP_ERR_PEER, "board %s sent its norms of step %" PRIu64 " twice", name,
                       step);
    }
    if (c->train.norms.got > 0 && c->train.norms.step != step) {
        return rp_fail(RP_ERR_PEER, "board %s is at step %" PRIu64 ", the others at %" PRIu64, name,
                       step, c->train.norms.step);
    }
    return RP_OK;
}

/* The first board of a stage that has sent its norms; NULL: none yet. */
static const rp_plan_hold *find_reported(const rp_controller *c, uint32_t stage) {
    for (uint32_t h = 0; h < c->setup.plan->hold_count; h++) {
        if (c->setup.plan->hold[h].stage == stage && c->train.norms.of[h]) {
            return &c->setup.plan->hold[h];
        }
    }
    return NULL;
}

/* Boards that share a stage have the same gradient, bit for bit; each computes its norm itself, and
 * other devices may round it in another way. */
static bool is_near(double a, double b) {
    return (!isfinite(a) && !isfinite(b)) || fabs(a - b) <= 1e-3 * fmax(a, b);
}

/* Into sumsq: those of the board whose hold comes first decide. */
static rp_err take_norms(rp_controller *c, const rp_plan_hold *hold, const double *got,
                         size_t count) {
    const rp_model *model = c->run.model;
    const rp_plan_hold *other = find_reported(c, hold->stage);
    const char *name = c->ring.board[hold->node].name;
    const uint32_t end = model->param_first[c->setup.plan_cut.first[hold->stage + 1]];
    size_t used = 0;
    for (uint32_t p = model->param_first[c->setup.plan_cut.first[hold->stage]]; p < end; p++) {
        if (!stage_trains(c, hold->stage, p)) {
            continue;
        }
        double own = 0;
        if (used < count) {
            memcpy(&own, &got[used], sizeof own);
        }
        if (used < count && other && !is_near(c->train.norms.sumsq[p], own)) {
            return rp_fail(
                RP_ERR_FAULT,
                "boards %s and %s share stage %u and have different gradients of '%.80s'",
                c->ring.board[other->node].name, name, hold->stage, model->param[p].name);
        }
        if (used < count && (!other || hold < other)) {
            c->train.norms.sumsq[p] = own;
        }
        used++;
    }
    return used == count ? RP_OK
                         : rp_fail(RP_ERR_PEER, "board %s sent %zu norms, it has %zu parameters",
                                   name, count, used);
}

rp_err rp_report_on_norms(rp_controller *c, uint32_t board, const rp_message *message) {
    const uint64_t step = message->frame.body.norms.step;
    const uint32_t stage = message->frame.body.norms.stage;
    const rp_plan_hold *hold = rp_plan_find_hold(c->setup.plan, board, stage);
    const double *got = message->part_count ? message->part[0].data : NULL;
    const size_t count = message->part_count ? message->part[0].bytes / sizeof(double) : 0;
    rp_err err;
    if (!hold) {
        return rp_fail(RP_ERR_PEER, "board %s sent norms of stage %u, which it does not hold",
                       c->ring.board[board].name, stage);
    }
    RP_TRY(check_norms(c, hold, step));
    rp_ring_note_progress(&c->ring);
    RP_TRY(take_norms(c, hold, got, count));
    c->train.norms.of[hold - c->setup.plan->hold] = true;
    c->train.norms.step = step;
    return ++c->train.norms.got == c->setup.plan->hold_count ? decide_step(c) : RP_OK;
fail:
    return err;
}

/* ---- gains of predictions -------------------------------------------------------------------- */

/* Trained parameters of a stage in model order: index `i` of them, or the model's count. */
static uint32_t trained_param(const rp_controller *c, uint32_t stage, size_t i) {
    uint32_t p = 0;
    while (p < c->run.model->param_count && (!stage_trains(c, stage, p) || i-- > 0)) {
        p++;
    }
    return p;
}

static rp_err post_gains(rp_controller *c, uint32_t board, uint64_t effect, const double *gain,
                         size_t count) {
    const rp_Frame frame = {.which_body = RP_KIND_PREDICTION_GAIN,
                            .body.prediction_gain = {.step = effect}};
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, gain, count);
    return rp_ring_post(&c->ring, board, &frame, &part);
}

rp_err rp_controller_repeat_gains(rp_controller *c) {
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < c->train.estimator.history_count; h++) {
        for (uint32_t k = 0; k < c->ring.count; k++) {
            size_t count = 0;
            uint32_t param;
            while ((param = trained_param(c, rp_controller_first_stage(c, k), count)) <
                   c->run.model->param_count) {
                c->train.gain[count++] = c->train.estimator.history[h].gain[param];
            }
            if (count > 0) {
                RP_TRY(post_gains(c, k, c->train.estimator.history[h].step, c->train.gain, count));
            }
        }
    }
fail:
    return err;
}

/* A stage's report changes the gain of its own predictions, from a step on that no board reached.
 */
static rp_err update_gains(rp_controller *c, uint32_t board, const rp_PredictionError *report,
                           const double *sums, size_t count) {
    const uint64_t step = report->step;
    const uint64_t effect = report->effect;
    double mean = 0;
    size_t fallen = 0;
    char text[128];
    rp_err err;
    if (!rp_gain_estimator_may_take_effect(step, effect)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s sent a probe of step %" PRIu64
                       " that takes effect at step %" PRIu64 ", expected a later one",
                       c->ring.board[board].name, step, effect);
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t param = trained_param(c, rp_controller_first_stage(c, board), i);
        if (param == c->run.model->param_count) {
            return rp_fail(RP_ERR_PEER,
                           "board %s sent a probe of %zu parameters, more than it holds",
                           c->ring.board[board].name, count);
        }
        const rp_gain_sample probe = {sums[i], sums[count + i], sums[2 * count + i]};
        c->train.gain[i] = rp_gain_estimator_add(&c->train.estimator, step, effect, param, &probe);
        mean += c->train.gain[i] / (double)count;
        fallen += c->train.gain[i] == 0;
    }
    RP_TRY(post_gains(c, board, effect, c->train.gain, count));
    const int used = snprintf(text, sizeof text, "stage %u has a mean prediction gain of %.0f %%",
                              rp_controller_first_stage(c, board), 100 * mean);
    if (fallen > 0) {
        (void)snprintf(text + used, sizeof text - (size_t)used,
                       ", %zu of %zu tensors fall back to current weights", fallen, count);
    }
    RP_TRY(rp_record_note(rp_folder_record(c->folder), "trust", step + 1, text));
fail:
    return err;
}

/* How many updates lie between a forward and its backward is the order's doing, not the links': a
 * board that counts others than the order has, here, does not run this order. */
static rp_err check_staleness(const rp_controller *c, uint32_t board,
                              const rp_PredictionError *report) {
    const rp_method *method = &c->setup.plan->method;
    const rp_sched_shape shape = rp_plan_stage_shape(
        c->setup.plan, rp_controller_first_stage(c, board), c->train.position.fill_step);
    const uint64_t step = report->forward_step; /* the report's own may be a later update's */
    const uint32_t due = rp_sched_staleness_at(
        method->kind, &shape, step, rp_method_replicas(method, shape.stages, shape.stage));
    if (report->staleness != due) {
        return rp_fail(RP_ERR_PEER,
                       "board %s has made %" PRIu64 " updates between forward and backward of step "
                       "%" PRIu64 ", the schedule has %u",
                       c->ring.board[board].name, report->staleness, step, due);
    }
    return RP_OK;
}

/* Sums of squares by parameter: of the error, of the stale error, of the prediction. */
rp_err rp_report_on_prediction(rp_controller *c, uint32_t board, const rp_message *message) {
    const rp_PredictionError *report = &message->frame.body.prediction_error;
    const size_t bytes = message->part[0].bytes;
    const size_t count = bytes / sizeof(double) / RP_PROBE_NORMS;
    const double *sums = message->part[0].data;
    double error = 0;
    double stale = 0;
    rp_err err;
    rp_ring_note_progress(&c->ring);
    if (count == 0 || bytes != RP_PROBE_NORMS * count * sizeof(double)) {
        return rp_fail(RP_ERR_PEER, "board %s sent a probe of %zu bytes", c->ring.board[board].name,
                       bytes);
    }
    RP_TRY(check_staleness(c, board, report));
    for (size_t i = 0; i < count; i++) {
        error += sums[i];
        stale += sums[count + i];
    }
    const rp_sink_prediction line = {.step = report->step,
                                     .stage = board,
                                     .gap = report->staleness,
                                     .ahead = report->lookahead,
                                     .error = sqrt(error),
                                     .stale_error = sqrt(stale)};
    RP_TRY(rp_record_prediction(rp_folder_record(c->folder), &line));
    if (c->run.method.horizon == RP_HORIZON_MEASURED) {
        RP_TRY(update_gains(c, board, report, sums, count));
    }
fail:
    return err;
}
