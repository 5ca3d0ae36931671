/* Prediction gains (horizon: measured): boards report the errors of their predictions, and each
 * stage gets its own gains. */
#include <inttypes.h>
#include <math.h>

#include "train/train_own.h"

/* Index in the model of a stage's trained parameter `i`, in model order; the model's number of
 * parameters if the stage has fewer. */
static uint32_t trained_param(const rp_train *train, uint32_t stage, size_t i) {
    uint32_t p = 0;
    while (p < train->run->model->param_count &&
           (!rp_train_stage_trains(train, stage, p) || i-- > 0)) {
        p++;
    }
    return p;
}

/* A tensor that several layers share counts once, at its first use, which its updates reach. */
static bool is_owner(const rp_train *train, uint32_t param) {
    return train->run->model->param[param].owner == param;
}

static size_t count_owned(const rp_train *train, uint32_t stage, size_t count) {
    size_t owned = 0;
    for (size_t i = 0; i < count; i++) {
        owned += is_owner(train, trained_param(train, stage, i));
    }
    return owned;
}

static rp_err post_gains(rp_train *train, uint32_t board, uint64_t effect, const double *gain,
                         size_t count) {
    const rp_Frame frame = {.which_body = RP_KIND_PREDICTION_GAIN,
                            .body.prediction_gain = {.step = effect}};
    const rp_part part = rp_part_of_array(RP_DTYPE_F64, gain, count);
    return rp_ring_post(train->ring, board, &frame, &part);
}

rp_err rp_train_repeat_gains(rp_train *train) {
    rp_err err = RP_OK;
    for (uint32_t h = 0; h < train->estimator.history_count; h++) {
        for (uint32_t k = 0; k < train->ring->count; k++) {
            size_t count = 0;
            uint32_t param;
            while ((param = trained_param(train, rp_train_first_stage(train, k), count)) <
                   train->run->model->param_count) {
                train->gain[count++] = train->estimator.history[h].gain[param];
            }
            RP_ASSERT(count <= train->run->model->param_count);
            if (count > 0) {
                RP_TRY(post_gains(train, k, train->estimator.history[h].step, train->gain, count));
            }
        }
    }
fail:
    return err;
}

/* A stage's report changes the gains of its own predictions, from a step that no board has reached
 * yet. */
static rp_err update_gains(rp_train *train, uint32_t board, const rp_PredictionError *report,
                           const double *sums, size_t count) {
    const uint64_t step = report->step;
    const uint64_t effect = report->effect;
    const size_t owned = count_owned(train, rp_train_first_stage(train, board), count);
    double mean = 0;
    size_t fallen = 0;
    rp_err err;
    if (!rp_gain_estimator_may_take_effect(step, effect)) {
        return rp_fail(RP_ERR_PEER,
                       "board %s sent a probe of step %" PRIu64
                       " that takes effect at step %" PRIu64 ", expected a later one",
                       train->ring->board[board].name, step, effect);
    }
    for (size_t i = 0; i < count; i++) {
        const uint32_t param = trained_param(train, rp_train_first_stage(train, board), i);
        const rp_gain_sample probe = {sums[i], sums[count + i], sums[2 * count + i]};
        train->gain[i] = rp_gain_estimator_add(&train->estimator, step, effect, param, &probe);
        if (is_owner(train, param)) {
            mean += train->gain[i] / (double)owned;
            fallen += train->gain[i] == 0;
        }
    }
    RP_ASSERT(count <= train->run->model->param_count && fallen <= count);
    RP_TRY(post_gains(train, board, effect, train->gain, count));
    if (owned == 0) { /* the stage only has uses of other stages' tensors */
        return RP_OK;
    }
    RP_TRY(rp_record_event(rp_train_record(train),
                           &(rp_run_event){.kind = RP_EVENT_TRUST,
                                           .step = step + 1,
                                           .stage = rp_train_first_stage(train, board),
                                           .gain = mean,
                                           .fallen = fallen,
                                           .tensors = owned}));
fail:
    return err;
}

/* Only the schedule determines the number of updates between a forward and its backward. A board
 * with another count does not run this schedule. */
static rp_err check_staleness(const rp_train *train, uint32_t board,
                              const rp_PredictionError *report) {
    const rp_method *method = &train->plan->method;
    const rp_sched_shape shape = rp_plan_stage_shape(
        train->plan, rp_train_first_stage(train, board), train->position->fill_step);
    const uint64_t step =
        report->forward_step; /* the report's own step may be that of a later update */
    const uint32_t due = rp_sched_staleness_at(
        method->kind, &shape, step, rp_method_replicas(method, shape.stages, shape.stage));
    if (report->staleness != due) {
        return rp_fail(RP_ERR_PEER,
                       "board %s has made %" PRIu64 " updates between forward and backward of step "
                       "%" PRIu64 ", the schedule has %u",
                       train->ring->board[board].name, report->staleness, step, due);
    }
    return RP_OK;
}

/* Adds up the errors and the stale errors of a stage's parameters. errors PEER: too many */
static rp_err sum_errors(const rp_train *train, uint32_t board, const double *sums, size_t count,
                         double *error, double *stale) {
    const uint32_t stage = rp_train_first_stage(train, board);
    *error = *stale = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t param = trained_param(train, stage, i);
        if (param == train->run->model->param_count) {
            return rp_fail(RP_ERR_PEER,
                           "board %s sent a probe of %zu parameters, more than it holds",
                           train->ring->board[board].name, count);
        }
        if (is_owner(train, param)) {
            *error += sums[i];
            *stale += sums[count + i];
        }
    }
    return RP_OK;
}

/* Sums of squares by parameter: of the error, the stale error and the prediction. */
rp_err rp_train_on_prediction(rp_train *train, uint32_t board, const rp_message *message) {
    const rp_PredictionError *report = &message->frame.body.prediction_error;
    const size_t bytes = message->part[0].bytes;
    const size_t count = bytes / sizeof(double) / RP_PROBE_NORMS;
    const double *sums = message->part[0].data;
    double error;
    double stale;
    rp_err err;
    rp_ring_note_progress(train->ring);
    if (count == 0 || bytes != RP_PROBE_NORMS * count * sizeof(double)) {
        return rp_fail(RP_ERR_PEER, "board %s sent a probe of %zu bytes",
                       train->ring->board[board].name, bytes);
    }
    RP_TRY(check_staleness(train, board, report));
    RP_TRY(sum_errors(train, board, sums, count, &error, &stale));
    const rp_sink_prediction line = {.step = report->step,
                                     .stage = board,
                                     .gap = report->staleness,
                                     .ahead = report->lookahead,
                                     .error = sqrt(error),
                                     .stale_error = sqrt(stale)};
    RP_TRY(rp_record_prediction(rp_train_record(train), &line));
    if (train->run->method.horizon == RP_HORIZON_MEASURED) {
        RP_TRY(update_gains(train, board, report, sums, count));
    }
fail:
    return err;
}
