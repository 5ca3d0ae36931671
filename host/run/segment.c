/* Segments of a run: training to a pause, an evaluation, a renewal of batch statistics. */
#include "run/controller_own.h"

#include <inttypes.h>

/* A ring in which nothing at all is reported for so long has stopped. */
static const int64_t STALL_NS = 900 * RP_NS_PER_S;

static bool all_finished(const rp_controller *c) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (!c->ring.board[k].finished) {
            return false;
        }
    }
    return true;
}

static rp_err start_segment(rp_controller *c, const rp_Frame *frame) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].finished = false;
    }
    c->heard_ns = rp_clock_now_ns(&c->ring.clock);
    return rp_ring_send_all(&c->ring, frame);
}

static rp_err pump_segment(rp_controller *c, rp_feed *feed, rp_feed_limit limit) {
    rp_err err;
    RP_TRY(rp_feed_step(feed, limit));
    RP_TRY(rp_ring_pump(&c->ring, rp_feed_eventfd(feed), 50 * RP_NS_PER_MS));
    RP_TRY(rp_feed_step(feed, limit));
    if (rp_clock_now_ns(&c->ring.clock) - c->heard_ns > STALL_NS) {
        return rp_fail(RP_ERR_TIMEOUT, "no board has reported anything for %" PRId64 " s",
                       STALL_NS / RP_NS_PER_S);
    }
fail:
    return err;
}

/* ---- training -------------------------------------------------------------------------------- */

/* What stage 0 asks for until it pauses at `pause`: where its list is then, and the last input. */
static feed_plan plan_feed(const rp_controller *c, uint64_t pause) {
    feed_plan plan = c->fed;
    rp_op op;
    while (plan.list.step < pause && c->run.method.kind->next(&plan.list, &op)) {
        if (op.kind == RP_OP_FORWARD) {
            plan.limit = (rp_feed_limit){op.step, op.micro + 1};
        }
    }
    return plan;
}

rp_err rp_controller_open_feed(rp_controller *c) {
    const rp_sched_shape shape = rp_runfile_sched_shape(&c->run, c->position.fill);
    rp_err err;
    rp_controller_close_feed(c);
    rp_arena_init(&c->feed_arena, "feed", 0);
    RP_TRY(rp_feed_open(&c->feed_arena, &c->ring, RP_SPLIT_TRAIN, RP_FEED_TRAINING,
                        c->position.step, c->run.steps, &c->feed));
    c->fed = (feed_plan){0};
    rp_sched_start(&c->fed.list, &shape);
    c->fed = plan_feed(c, c->position.step);
    rp_feed_skip(c->feed, c->fed.limit);
fail:
    return err;
}

void rp_controller_close_feed(rp_controller *c) {
    rp_feed_close(&c->feed);
    rp_arena_finish(&c->feed_arena);
}

/* After the first Ctrl-C: the boards end before the first step that nothing was sent of. */
static rp_err stop_early(rp_controller *c) {
    uint64_t stop = rp_feed_untouched(c->feed);
    if (stop >= c->segment_end) {
        return RP_OK;
    }
    c->segment_end = stop;
    c->feeding = plan_feed(c, stop);
    const rp_Frame frame = {.which_body = RP_KIND_STOP, .body.stop = {.step = stop}};
    return rp_ring_send_all(&c->ring, &frame);
}

rp_err rp_controller_train_segment(rp_controller *c, uint64_t end, bool drain) {
    rp_err err;
    bool stopping = drain;
    int64_t start_ns = rp_clock_now_ns(&c->ring.clock);
    c->segment_end = end;
    c->fed.list.shape.step_end = drain ? end : c->run.steps;
    c->feeding = plan_feed(c, end);
    const rp_Frame start = {
        .which_body = RP_KIND_START,
        .body.start = {.step_first = c->position.step, .pause = end, .drain = drain}};
    RP_TRY(start_segment(c, &start));
    while (!all_finished(c) || c->position.step < c->segment_end || !rp_feed_quiet(c->feed)) {
        if (c->ring.interrupts > 0 && !stopping) {
            stopping = true;
            RP_TRY(stop_early(c));
        }
        RP_TRY(pump_segment(c, c->feed, c->feeding.limit));
    }
    c->fed = c->feeding;
fail: /* a segment that was cut off has taken its time, too */
    rp_record_segment(c->record, (double)(rp_clock_now_ns(&c->ring.clock) - start_ns) * 1e-9);
    return err;
}

/* ---- forwards only --------------------------------------------------------------------------- */

/* One pass over `samples` of a split, with losses or, in training mode, without: that is short, a
 * checkpoint is to follow, and an interrupt waits for both. */
static rp_err pass_over(rp_controller *c, rp_split split, uint64_t samples, bool training) {
    const rp_feed_purpose purpose = training ? RP_FEED_STATISTICS : RP_FEED_EVALUATION;
    const uint64_t steps = (samples + c->run.batch - 1) / c->run.batch;
    const uint64_t scored = training ? 0 : samples;
    rp_feed *feed = NULL;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "forwards", 0);
    c->eval_loss = 0;
    c->eval_samples = c->eval_correct = 0;
    RP_TRY(rp_feed_open(&arena, &c->ring, split, purpose, 0, steps, &feed));
    const rp_Frame start = {.which_body = RP_KIND_EVALUATE,
                            .body.evaluate = {.samples = samples, .renew_statistics = training}};
    RP_TRY(start_segment(c, &start));
    while (!all_finished(c) || c->eval_samples < scored || !rp_feed_quiet(feed)) {
        if (c->ring.interrupts > 0 && !training) {
            err = rp_fail(RP_ERR_INTERRUPTED, "interrupted in an evaluation");
            goto fail;
        }
        RP_TRY(pump_segment(c, feed, (rp_feed_limit){.step = steps}));
    }
fail:
    if (err != RP_OK) {
        /* parcels may still borrow batches: the links go first */
        rp_ring_close(&c->ring);
    }
    rp_feed_close(&feed);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_controller_eval_segment(rp_controller *c, rp_split split) {
    const uint64_t samples = c->run.data.count[split];
    const int64_t start_ns = rp_clock_now_ns(&c->ring.clock);
    rp_err err;
    RP_TRY(pass_over(c, split, samples, false));
    rp_record_segment(c->record, (double)(rp_clock_now_ns(&c->ring.clock) - start_ns) * 1e-9);
    RP_TRY(rp_record_eval(c->record, c->position.step, c->eval_loss / (double)samples, samples,
                          c->eval_correct));
    c->position.evaluated = true;
fail:
    return err;
}

/* A centre has never been trained itself, so the batch statistics are not its own: a pass over some
 * training data renews them. Training reads none of them. */
rp_err rp_controller_statistics_segment(rp_controller *c) {
    const uint64_t most = (uint64_t)c->run.recalibrate * c->run.batch;
    const uint64_t all = c->run.data.count[RP_SPLIT_TRAIN];
    return pass_over(c, RP_SPLIT_TRAIN, most < all ? most : all, true);
}
