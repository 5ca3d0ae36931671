/* Keeps the weights of the best evaluation, and ends a run after many evaluations without gain. */
#include <math.h>
#include <unistd.h>

#include "train/train_own.h"

uint64_t rp_train_end(const rp_train *train) {
    return train->stop_step > 0 ? train->stop_step : train->run->steps;
}

uint64_t rp_train_stop_step(const rp_train *train) {
    return train->stop_step;
}

const rp_checkpoint_best *rp_train_best(const rp_train *train) {
    return &train->best;
}

static bool is_by_accuracy(const rp_train *train) {
    return train->run->score.best_by == RP_BEST_ACCURACY;
}

static double value_of(const rp_train *train, const rp_position_score *score) {
    return is_by_accuracy(train) ? (double)score->correct / (double)score->counted : score->loss;
}

/* NaN never counts as an improvement; any value beats "no result yet". */
static bool is_gain(const rp_train *train, double value) {
    const rp_checkpoint_best *best = &train->best;
    const bool better = is_by_accuracy(train) ? value > best->value : value < best->value;
    return isfinite(value) && (best->step == 0 || better);
}

/* Counts the evaluation at the position. */
static rp_checkpoint_best count_score(const rp_train *train, double value) {
    rp_checkpoint_best best = train->best;
    best.last = train->position->step;
    if (!is_gain(train, value)) {
        best.since++;
        return best;
    }
    best.step = train->position->step;
    best.value = value;
    /* A gain while the pipes drain is kept, but does not continue the run; a resume finds it the
     * same. */
    best.since = train->stop_step > 0 ? best.since : 0;
    return best;
}

static bool ends_run(const rp_train *train, const rp_checkpoint_best *best) {
    return train->run->score.without_gain > 0 && best->since >= train->run->score.without_gain &&
           train->stop_step == 0 && train->position->step < train->run->steps;
}

/* The best evaluation, as facts of an event. */
static rp_run_event describe_best(const rp_train *train, rp_event_kind kind) {
    const bool by_accuracy = is_by_accuracy(train);
    return (rp_run_event){.kind = kind,
                          .step = train->position->step,
                          .accuracy = by_accuracy ? train->best.value : (double)NAN,
                          .loss = by_accuracy ? (double)NAN : train->best.value};
}

static rp_err say_gain(rp_train *train) {
    const rp_run_event event =
        describe_best(train, is_by_accuracy(train) ? RP_EVENT_BEST_ACCURACY : RP_EVENT_BEST_LOSS);
    return rp_record_event(rp_train_record(train), &event);
}

static rp_err stop_early(rp_train *train) {
    rp_run_event event = describe_best(train, RP_EVENT_STOPPED);
    event.evaluations = train->best.since;
    event.best_step = train->best.step;
    RP_ASSERT(train->best.end >= train->position->step && train->best.end <= train->run->steps);
    train->stop_step = train->best.end;
    return rp_record_event(rp_train_record(train), &event);
}

rp_err rp_best_note(rp_train *train, rp_split split, const rp_position_score *score, bool *stops) {
    const bool tracks = train->run->score.keep_best || train->run->score.without_gain > 0;
    rp_err err = RP_OK;
    RP_ASSERT(score->done && score->samples > 0);
    const double value = value_of(train, score);
    if (!tracks || split != rp_data_scored(&train->run->data) ||
        train->position->step <= train->best.last) {
        return RP_OK; /* already counted before the run was resumed */
    }
    rp_checkpoint_best best = count_score(train, value);
    const bool keeps = best.step == train->position->step && train->run->score.keep_best;
    const bool ends = ends_run(train, &best);
    if (ends) { /* a schedule without flushes drains its pipes first */
        best.end =
            train->run->method.kind->flushed ? train->position->step : rp_train_drained_at(train);
    }
    RP_TRY(keeps ? rp_checkpoint_keep_best(train->run, train->paths->checkpoints, best.step,
                                           train->paths->best_weights)
                 : RP_OK);
    RP_TRY(rp_checkpoint_mark_best(train->paths->checkpoints, &best));
    train->best = best;
    RP_TRY(keeps ? say_gain(train) : RP_OK);
    *stops = ends;
    RP_TRY(ends ? stop_early(train) : RP_OK);
fail:
    return err;
}

void rp_train_resume_best(rp_train *train) {
    rp_checkpoint_best *best = &train->best;
    train->stop_step = 0;
    rp_checkpoint_read_best(train->paths->checkpoints, best);
    const bool ends =
        train->run->score.without_gain > 0 && best->since >= train->run->score.without_gain;
    if (ends && best->end >= train->position->step) {
        train->stop_step = best->end;
    }
    best->end = train->stop_step;
}

rp_summary_best rp_train_tell_best(const rp_train *train) {
    const rp_runfile *run = train->run;
    const char *weights = train->paths->best_weights; /* NULL: an evaluation has no folder */
    const bool kept = weights && run->score.keep_best && access(weights, F_OK) == 0;
    return (rp_summary_best){
        .step = train->best.step,
        .metric = is_by_accuracy(train) ? "accuracy" : "loss",
        .split = rp_data_scored(&run->data) == RP_SPLIT_VALIDATION ? "validation" : "test",
        .value = train->best.value,
        .path = kept ? "best.safetensors" : NULL};
}
