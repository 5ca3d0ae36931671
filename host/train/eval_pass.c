/* Passes without training: score a split, or renew batch statistics. */
#include "train/train_own.h"

static rp_err begin_pass(rp_train *train, rp_split split, uint64_t samples, bool scores) {
    const rp_feed_purpose purpose = scores ? RP_FEED_EVALUATION : RP_FEED_STATISTICS;
    const rp_runfile *run = train->run;
    const bool overlaps = scores && run->loss_options.classes_first;
    const rp_Frame order = {
        .which_body = RP_KIND_EVALUATE,
        .body.evaluate = {.samples = samples, .renew_statistics = !scores, .overlap = overlaps}};
    rp_eval_pass *pass = &train->pass;
    rp_err err;
    RP_ASSERT(!pass->feed && train->segment_start_ns == 0);
    RP_ASSERT(samples <= run->data.count[split]);
    *pass = (rp_eval_pass){.split = split,
                           .scores = scores,
                           .steps = (samples + run->batch - 1) / run->batch,
                           .scored = scores ? samples : 0};
    rp_tally_begin_pass(&train->tally);
    rp_arena_init(&pass->arena, "pass", 0);
    RP_TRY(rp_feed_open(&pass->arena, train->ring, train->plan, train->needs.feeder, split, purpose,
                        0, pass->steps, &pass->feed));
    RP_TRY(rp_overlap_open(&pass->arena, overlaps ? rp_model_out(run->model)->dim[0] : 0,
                           run->data.classes, &pass->overlap));
    rp_arena_seal(&pass->arena);
    train->watched = scores;
    RP_TRY(rp_segment_begin(train, &order));
fail:
    return err;
}

rp_err rp_train_begin_evaluation(rp_train *train, rp_split split, bool trains) {
    const rp_err err = begin_pass(train, split, train->run->data.count[split], true);
    train->pass.trains = trains;
    return err;
}

/* Training does not read batch statistics. A checkpoint follows; an interrupt waits for both, which
 * take little time. */
rp_err rp_train_begin_statistics(rp_train *train) {
    const uint64_t most = (uint64_t)train->run->score.recalibrate * train->run->batch;
    const uint64_t all = train->run->data.count[RP_SPLIT_TRAIN];
    return begin_pass(train, RP_SPLIT_TRAIN, most < all ? most : all, false);
}

/* After a crash only this evaluation is repeated, because the checkpoint of this step is
 * written. */
static rp_err note_score(rp_train *train) {
    const rp_eval_pass *pass = &train->pass;
    rp_position_score *score = rp_position_score_of(train->position, pass->split);
    RP_ASSERT(pass->samples == pass->scored && pass->samples > 0);
    const rp_loss_sum sum = rp_tally_pass_sum(&train->tally);
    const uint64_t counted = rp_train_counted(train, pass->samples, sum.ignored);
    if (counted == 0) {
        return rp_split_refuse_uncounted(pass->split);
    }
    *score = (rp_position_score){.done = true,
                                 .loss = sum.loss / (double)counted,
                                 .samples = pass->samples,
                                 .counted = counted,
                                 .correct = pass->correct,
                                 .mean_iou = pass->mean_iou};
    const rp_record_score line = rp_train_record_score(score);
    return rp_record_eval(rp_train_record(train),
                          pass->trains && pass->split == RP_SPLIT_VALIDATION, train->position->step,
                          &line);
}

static void show_progress(const rp_train *train) {
    const rp_eval_pass *pass = &train->pass;
    const rp_sink_part scoring = {
        .text = "evaluating", .done = pass->samples, .total = pass->scored, .unit = "samples"};
    const rp_sink_part renewing = {.text = "renewing batch statistics",
                                   .done = rp_feed_untouched(pass->feed),
                                   .total = pass->steps,
                                   .unit = "batches"};
    rp_record_part(rp_train_record(train), pass->scores ? &scoring : &renewing);
}

static rp_err end_pass(rp_train *train) {
    rp_eval_pass *pass = &train->pass;
    pass->is_over = true;
    rp_feed_close(&pass->feed);
    pass->mean_iou = rp_overlap_mean_iou(&pass->overlap);
    rp_arena_finish(&pass->arena);
    if (!pass->scores) {
        train->segment_start_ns = 0;
        return RP_OK;
    }
    rp_segment_note_time(train, true);
    return note_score(train);
}

rp_err rp_train_step_pass(rp_train *train, bool *over) {
    rp_eval_pass *pass = &train->pass;
    rp_err err = RP_OK;
    RP_ASSERT(pass->is_over == !pass->feed);
    RP_ASSERT(pass->samples <= pass->scored);
    *over = pass->is_over;
    if (*over) {
        return RP_OK;
    }
    RP_TRY(rp_feed_step(pass->feed, (rp_feed_limit){.step = pass->steps}));
    *over =
        rp_segment_has_paused(train) && pass->samples == pass->scored && rp_feed_quiet(pass->feed);
    if (*over) {
        return end_pass(train);
    }
    show_progress(train);
fail:
    return err;
}

rp_err rp_train_keep_score(rp_train *train, bool *stops) {
    const rp_split split = train->pass.split;
    const rp_position_score *score = rp_position_score_of(train->position, split);
    rp_err err;
    RP_ASSERT(train->pass.is_over && train->pass.scores && score->done);
    *stops = false;
    err = rp_checkpoint_mark_evaluated(train->paths->checkpoints, split, train->position->step,
                                       score);
    RP_TRY(err == RP_ERR_IO ? RP_OK : err); /* a resumed run only evaluates again */
    RP_TRY(rp_best_note(train, split, score, stops));
fail:
    return err;
}

rp_err rp_train_on_evaluated(rp_train *train, uint32_t board, const rp_message *message) {
    const rp_EvaluateDone *done = &message->frame.body.evaluate_done;
    rp_eval_pass *pass = &train->pass;
    rp_err err;
    RP_ASSERT(pass->samples <= pass->scored);
    if (done->samples > pass->scored - pass->samples) {
        return rp_fail(RP_ERR_PEER, "board %s evaluated more samples than it was sent",
                       train->ring->board[board].name);
    }
    RP_TRY(rp_train_check_ignored(train, board, done->samples, done->ignored));
    RP_TRY(rp_overlap_add(&pass->overlap, message, train->ring->board[board].name,
                          rp_train_counted(train, done->samples, done->ignored)));
    RP_TRY(rp_tally_add_pass(&train->tally, board, done));
    rp_ring_note_progress(train->ring);
    pass->samples += done->samples;
    pass->correct += done->correct;
    RP_TRY(rp_waiting_note_step(train));
fail:
    return err;
}

/* With a validation split the test split is scored only once, at the end. */
bool rp_train_is_evaluation_due(const rp_train *train, rp_split *split) {
    const rp_runfile *run = train->run;
    const rp_position *position = train->position;
    const uint64_t step = position->step;
    const bool is_over = step == rp_train_end(train);
    const bool by_epochs = step % run->epoch_steps == 0 && run->score.eval_epochs &&
                           step / run->epoch_steps % run->score.eval_epochs == 0;
    const bool by_steps = run->score.eval_steps && step % run->score.eval_steps == 0;
    if (step == 0 || (!is_over && !by_epochs && !by_steps)) {
        return false;
    }
    *split = RP_SPLIT_VALIDATION;
    if (run->data.count[RP_SPLIT_VALIDATION] > 0 && !position->validation.done) {
        return true;
    }
    *split = RP_SPLIT_TEST;
    return run->data.count[RP_SPLIT_TEST] > 0 && !position->test.done &&
           (is_over || rp_data_scored(&run->data) == RP_SPLIT_TEST);
}
