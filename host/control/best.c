/* The best evaluation of a run: its weights are kept, and a run without gain for long ends. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "control/controller_own.h"

uint64_t rp_controller_end(const rp_controller *c) {
    return c->train.stop_step > 0 ? c->train.stop_step : c->run.steps;
}

static bool is_by_accuracy(const rp_controller *c) {
    return c->run.best_by == RP_BEST_ACCURACY;
}

static double value_of(const rp_controller *c, const rp_position_score *score) {
    return is_by_accuracy(c) ? (double)score->correct / (double)score->samples : score->loss;
}

/* NaN is no gain, and anything is one over nothing. */
static bool is_gain(const rp_controller *c, double value) {
    const rp_checkpoint_best *best = &c->train.best;
    const bool better = is_by_accuracy(c) ? value > best->value : value < best->value;
    return isfinite(value) && (best->step == 0 || better);
}

static void describe_best(const rp_controller *c, char *text, size_t bytes) {
    (void)snprintf(text, bytes, "best %s so far: %.*f%s after step %" PRIu64,
                   is_by_accuracy(c) ? "accuracy" : "loss", is_by_accuracy(c) ? 2 : 4,
                   is_by_accuracy(c) ? 100 * c->train.best.value : c->train.best.value,
                   is_by_accuracy(c) ? " %" : "", c->train.best.step);
}

/* Counts the evaluation of here. */
static rp_checkpoint_best count_score(const rp_controller *c, double value) {
    rp_checkpoint_best best = c->train.best;
    best.last = c->train.position.step;
    if (!is_gain(c, value)) {
        best.since++;
        return best;
    }
    best.step = c->train.position.step;
    best.value = value;
    /* A gain while the pipes are drained is kept, but the run has ended: a resume finds it so. */
    best.since = c->train.stop_step > 0 ? best.since : 0;
    return best;
}

static bool ends_run(const rp_controller *c, const rp_checkpoint_best *best) {
    return c->run.without_gain > 0 && best->since >= c->run.without_gain &&
           c->train.stop_step == 0 && c->train.position.step < c->run.steps;
}

static rp_err say_gain(rp_controller *c) {
    char text[160];
    describe_best(c, text, sizeof text);
    return rp_record_event(rp_folder_record(c->folder), "best", c->train.position.step, text);
}

static rp_err stop_early(rp_controller *c) {
    char best[120];
    char text[220];
    describe_best(c, best, sizeof best);
    (void)snprintf(text, sizeof text, "no gain in %u evaluations: the run ends here; %s",
                   c->train.best.since, best);
    c->train.stop_step = c->train.best.end;
    c->keep.unsaved =
        c->keep.unsaved || c->run.method.kind->flushed; /* once more: as the run's result */
    return rp_record_event(rp_folder_record(c->folder), "stopped", c->train.position.step, text);
}

/* Nothing has changed where a file could not be written, so that it can be tried again. */
rp_err rp_controller_note_best(rp_controller *c, rp_split split, const rp_position_score *score) {
    const bool tracks = c->run.keep_best || c->run.without_gain > 0;
    const double value = value_of(c, score);
    rp_err err = RP_OK;
    if (!tracks || split != rp_data_scored(&c->run.data) ||
        c->train.position.step <= c->train.best.last) {
        return RP_OK; /* or counted before the run was resumed */
    }
    rp_checkpoint_best best = count_score(c, value);
    const bool keeps = best.step == c->train.position.step && c->run.keep_best;
    const bool ends = ends_run(c, &best);
    if (ends) { /* a schedule that does not flush drains its pipes first */
        best.end =
            c->run.method.kind->flushed ? c->train.position.step : rp_controller_drained_at(c);
    }
    RP_TRY(keeps ? rp_checkpoint_keep_best(&c->run, rp_folder_paths_of(c->folder)->checkpoints,
                                           best.step, rp_folder_paths_of(c->folder)->best_weights)
                 : RP_OK);
    RP_TRY(rp_checkpoint_mark_best(rp_folder_paths_of(c->folder)->checkpoints, &best));
    c->train.best = best;
    RP_TRY(keeps ? say_gain(c) : RP_OK);
    RP_TRY(ends ? stop_early(c) : RP_OK);
fail:
    return err;
}

void rp_controller_resume_best(rp_controller *c) {
    rp_checkpoint_best *best = &c->train.best;
    rp_checkpoint_read_best(rp_folder_paths_of(c->folder)->checkpoints, best);
    const bool ends = c->run.without_gain > 0 && best->since >= c->run.without_gain;
    if (ends && best->end >= c->train.position.step) {
        c->train.stop_step = best->end;
    }
    best->end = c->train.stop_step;
}
