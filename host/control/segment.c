/* The states that feed the ring: `train` to a pause, `drain` to empty pipes, and passes without
 * training: `evaluate`, `statistics`. */
#include <inttypes.h>

#include "control/controller_own.h"

static rp_err start_segment(rp_controller *c, const rp_Frame *order) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].finished = false;
    }
    c->train.segment_start_ns = c->ring.now_ns;
    rp_waiting_begin(c);
    rp_drift_begin_segment(c->measure);
    return rp_ring_post_all(&c->ring, order);
}

/* The wall time of the segment, for the summary's shares. */
static void note_segment(rp_controller *c, bool whole) {
    rp_record_segment(rp_folder_record(c->folder),
                      (double)(c->ring.now_ns - c->train.segment_start_ns) * 1e-9, whole);
    c->train.segment_start_ns = 0;
}

rp_err rp_segment_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT, "no board has reported anything for %" PRId64 " s",
                   c->machine.timeout_ns / RP_NS_PER_S);
}

/* ---- training -------------------------------------------------------------------------------- */

/* What stage 0 asks for until it pauses at `pause`: where its list is then, and the last input. */
static rp_feed_plan plan_feed(const rp_controller *c, uint64_t pause) {
    rp_feed_plan plan = c->train.fed;
    rp_op op;
    while (plan.list.step < pause && c->setup.plan->method.kind->next(&plan.list, &op)) {
        if (op.kind == RP_OP_FORWARD && op.stage == 0) {
            plan.limit = (rp_feed_limit){op.step, op.micro + 1};
        }
    }
    return plan;
}

static void close_feed(rp_controller *c) {
    rp_feed_close(&c->train.feed);
    rp_arena_finish(&c->train.feed_arena);
}

rp_err rp_controller_open_feed(rp_controller *c) {
    const rp_sched_shape shape = rp_plan_stage_shape(c->setup.plan, 0, c->train.position.fill_step);
    rp_err err;
    close_feed(c);
    rp_arena_init(&c->train.feed_arena, "feed", 0);
    RP_TRY(rp_feed_open(&c->train.feed_arena, &c->ring, c->setup.plan, c->env.feeder,
                        RP_SPLIT_TRAIN, RP_FEED_TRAINING, c->train.position.step, c->run.steps,
                        &c->train.feed));
    rp_arena_seal(&c->train.feed_arena);
    c->train.fed = (rp_feed_plan){0};
    rp_sched_start(&c->train.fed.list, &shape);
    c->train.fed = plan_feed(c, c->train.position.step);
    rp_feed_skip(c->train.feed, c->train.fed.limit);
fail:
    return err;
}

/* After the first interrupt: the boards end before the first step that nothing was sent of. */
static rp_err stop_early(rp_controller *c) {
    const uint64_t stop = rp_feed_untouched(c->train.feed);
    if (stop >= c->train.segment_end) {
        return RP_OK;
    }
    c->train.segment_end = stop;
    c->train.verify.is_due = c->train.verify.alone = false; /* its step is not trained */
    c->train.feeding = plan_feed(c, stop);
    const rp_Frame order = {.which_body = RP_KIND_STOP, .body.stop = {.step = stop}};
    return rp_ring_post_all(&c->ring, &order);
}

static rp_err begin_segment(rp_controller *c, uint64_t end, bool drain) {
    rp_Frame order = {
        .which_body = RP_KIND_START,
        .body.start = {.step_first = c->train.position.step, .pause = end, .drain = drain}};
    c->train.stopping = drain; /* which is short: an interrupt waits */
    c->train.segment_end = end;
    c->train.fed.list.shape.step_end = drain ? end : c->run.steps;
    c->train.feeding = plan_feed(c, end);
    order.body.start.verify = !drain && c->train.verify.is_due;
    order.body.start.verify_micro = c->train.verify.micro;
    c->keep.unsaved = true;
    rp_account_begin(c, &order.body.start);
    return start_segment(c, &order);
}

rp_err rp_train_enter(rp_controller *c) {
    rp_err err;
    c->train.renewed = c->setup.looked_at = false;
    RP_TRY(rp_copy_pace_choose(c));
    RP_TRY(begin_segment(c, rp_controller_next_boundary(c), false));
fail:
    return err;
}

rp_err rp_drain_enter(rp_controller *c) {
    c->train.renewed = c->train.verify.is_due = c->train.verify.alone = false;
    return begin_segment(c, rp_controller_drained_at(c), true);
}

rp_err rp_train_step(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_finite_check_step(c));
    if (c->machine.interrupts > 0 && !c->train.stopping) {
        c->train.stopping = true;
        RP_TRY(stop_early(c));
    }
    RP_TRY(rp_feed_step(c->train.feed, c->train.feeding.limit));
    if (!rp_controller_all_done(c) || c->train.position.step < c->train.segment_end ||
        !rp_feed_quiet(c->train.feed)) {
        return RP_OK;
    }
    c->train.fed = c->train.feeding;
    RP_TRY(rp_controller_follow_wires(c));
    note_segment(c, true);
    RP_TRY(rp_account_check(c));
    RP_TRY(rp_controller_note_losses(c));
    rp_controller_follow_losses(c);
    RP_TRY(rp_controller_record_facts(c));
    RP_TRY(rp_controller_choose_next(c));
fail:
    return err;
}

/* A segment that was cut off has taken its time, too. */
void rp_train_abandon(rp_controller *c) {
    if (c->train.segment_start_ns) {
        note_segment(c, false);
    }
}

/* ---- passes without training ----------------------------------------------------------------- */

static rp_err begin_pass(rp_controller *c, rp_split split, uint64_t samples, bool training) {
    const rp_feed_purpose purpose = training ? RP_FEED_STATISTICS : RP_FEED_EVALUATION;
    const rp_Frame order = {.which_body = RP_KIND_EVALUATE,
                            .body.evaluate = {.samples = samples, .renew_statistics = training}};
    rp_eval_pass *pass = &c->train.pass;
    rp_err err;
    *pass = (rp_eval_pass){.steps = (samples + c->run.batch - 1) / c->run.batch,
                           .scored = training ? 0 : samples};
    rp_tally_begin_pass(&c->train.tally);
    rp_arena_init(&pass->arena, "pass", 0);
    RP_TRY(rp_feed_open(&pass->arena, &c->ring, c->setup.plan, c->env.feeder, split, purpose, 0,
                        pass->steps, &pass->feed));
    rp_arena_seal(&pass->arena);
    RP_TRY(start_segment(c, &order));
fail:
    return err;
}

static rp_err step_pass(rp_controller *c, bool *over) {
    rp_eval_pass *pass = &c->train.pass;
    rp_err err;
    RP_TRY(rp_feed_step(pass->feed, (rp_feed_limit){.step = pass->steps}));
    *over = rp_controller_all_done(c) && pass->samples >= pass->scored && rp_feed_quiet(pass->feed);
    if (*over) {
        rp_feed_close(&pass->feed);
        rp_arena_finish(&pass->arena);
    }
fail:
    return err;
}

rp_err rp_evaluate_enter(rp_controller *c) {
    rp_split split = c->options.split;
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        RP_ASSERT(rp_controller_evaluation_due(c, &split));
    }
    rp_err err = begin_pass(c, split, c->run.data.count[split], false);
    c->train.pass.split = split;
    return err;
}

/* A crash costs an evaluation, not an epoch: the checkpoint of this step has been written. */
static rp_err note_score(rp_controller *c) {
    const rp_eval_pass *pass = &c->train.pass;
    const bool trains = c->options.purpose == RP_PURPOSE_TRAIN;
    rp_position_score *score = rp_position_score_of(&c->train.position, pass->split);
    rp_err err = RP_OK;
    *score = (rp_position_score){true, rp_tally_pass_loss(&c->train.tally) / (double)pass->samples,
                                 pass->samples, pass->correct};
    RP_TRY(rp_record_eval(rp_folder_record(c->folder), trains && pass->split == RP_SPLIT_VALIDATION,
                          c->train.position.step, score->loss, score->samples, score->correct));
fail:
    return err;
}

static rp_err keep_score(rp_controller *c) {
    const rp_split split = c->train.pass.split;
    const rp_position_score *score = rp_position_score_of(&c->train.position, split);
    rp_err err = RP_OK;
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        err = rp_checkpoint_mark_evaluated(rp_folder_paths_of(c->folder)->checkpoints, split,
                                           c->train.position.step, score);
        RP_TRY(err == RP_ERR_IO ? RP_OK : err); /* a resumed run evaluates once more */
        RP_TRY(rp_controller_note_best(c, split, score));
    }
fail:
    return err;
}

/* The test part behind the validation part, in the same state. */
static bool is_more_due(const rp_controller *c) {
    rp_split split;
    return c->options.purpose == RP_PURPOSE_TRAIN && c->machine.interrupts == 0 &&
           rp_controller_evaluation_due(c, &split);
}

static rp_err end_pass(rp_controller *c) {
    rp_err err;
    RP_TRY(step_pass(c, &c->train.pass.is_over));
    if (!c->train.pass.is_over) {
        rp_record_part(rp_folder_record(c->folder), &(rp_sink_part){.text = "evaluating",
                                                                    .done = c->train.pass.samples,
                                                                    .total = c->train.pass.scored,
                                                                    .unit = "samples"});
        return RP_OK;
    }
    note_segment(c, true);
    RP_TRY(note_score(c));
fail:
    return err;
}

rp_err rp_evaluate_step(rp_controller *c) {
    rp_err err;
    RP_TRY(c->train.pass.is_over ? RP_OK : end_pass(c));
    if (!c->train.pass.is_over || rp_disk_rests(c)) {
        return RP_OK;
    }
    err = keep_score(c);
    if (err == RP_ERR_IO) {
        rp_ring_note_progress(&c->ring);
        return rp_disk_failed(c);
    }
    RP_TRY(err);
    if (is_more_due(c)) {
        return rp_evaluate_enter(c);
    }
    RP_TRY(rp_controller_choose_next(c));
fail:
    return err;
}

/* A pass over some training data renews the batch statistics; training reads none of them. A
 * checkpoint is to follow, and an interrupt waits for both: that is short. */
rp_err rp_statistics_enter(rp_controller *c) {
    const uint64_t most = (uint64_t)c->run.recalibrate * c->run.batch;
    const uint64_t all = c->run.data.count[RP_SPLIT_TRAIN];
    return begin_pass(c, RP_SPLIT_TRAIN, most < all ? most : all, true);
}

rp_err rp_statistics_step(rp_controller *c) {
    bool over = false;
    rp_err err;
    RP_TRY(step_pass(c, &over));
    if (!over) {
        rp_record_part(rp_folder_record(c->folder),
                       &(rp_sink_part){.text = "renewing batch statistics",
                                       .done = rp_feed_untouched(c->train.pass.feed),
                                       .total = c->train.pass.steps,
                                       .unit = "batches"});
    } else {
        c->train.segment_start_ns = 0;
        c->train.renewed = true;
        RP_TRY(rp_controller_choose_next(c));
    }
fail:
    return err;
}

void rp_controller_close_feeds(rp_controller *c) {
    close_feed(c);
    rp_feed_close(&c->train.pass.feed);
    rp_arena_finish(&c->train.pass.arena);
}
