/* Segments of training: from one pause to the next, or until the pipes are empty. */
#include "train/train_own.h"

/* Also begins passes. */
rp_err rp_segment_begin(rp_train *train, const rp_Frame *order) {
    RP_ASSERT(train->plan && train->plan->node_count == train->ring->count);
    for (uint32_t k = 0; k < train->ring->count; k++) {
        train->ring->board[k].train.finished = false;
    }
    train->segment_start_ns = train->ring->now_ns;
    rp_waiting_begin(train);
    return rp_ring_post_all(train->ring, order);
}

void rp_segment_note_time(rp_train *train, bool whole) {
    RP_ASSERT(train->segment_start_ns <= train->ring->now_ns);
    rp_record_segment(rp_train_record(train),
                      (double)(train->ring->now_ns - train->segment_start_ns) * 1e-9, whole);
    train->segment_start_ns = 0;
}

bool rp_segment_has_paused(const rp_train *train) {
    for (uint32_t k = 0; k < train->ring->count; k++) {
        if (!train->ring->board[k].train.finished) {
            return false;
        }
    }
    return true;
}

/* ---- what goes in ---------------------------------------------------------------------------- */

/* The inputs that stage 0 requests until it pauses at `pause`, and its op list at that point. */
static rp_feed_plan plan_feed(const rp_train *train, uint64_t pause) {
    rp_feed_plan plan = train->fed;
    rp_op op;
    while (plan.list.step < pause && train->plan->method.kind->next(&plan.list, &op)) {
        if (op.kind == RP_OP_FORWARD && op.stage == 0) {
            plan.limit = (rp_feed_limit){op.step, op.micro + 1};
        }
    }
    return plan;
}

rp_err rp_train_open_feed(rp_train *train) {
    rp_err err;
    RP_ASSERT(train->plan && train->segment_start_ns == 0);
    const rp_sched_shape shape = rp_plan_stage_shape(train->plan, 0, train->position->fill_step);
    rp_feed_close(&train->feed);
    rp_arena_finish(&train->feed_arena);
    rp_arena_init(&train->feed_arena, "feed", 0);
    RP_TRY(rp_feed_open(&train->feed_arena, train->ring, train->plan, train->needs.feeder,
                        RP_SPLIT_TRAIN, RP_FEED_TRAINING, train->position->step, train->run->steps,
                        &train->feed));
    rp_arena_seal(&train->feed_arena);
    train->fed = (rp_feed_plan){0};
    rp_sched_start(&train->fed.list, &shape);
    train->fed = plan_feed(train, train->position->step);
    rp_feed_skip(train->feed, train->fed.limit);
fail:
    return err;
}

/* ---- a segment ------------------------------------------------------------------------------- */

/* Makes the boards pause before the first step of which nothing was sent. */
static rp_err stop_early(rp_train *train) {
    const uint64_t stop = rp_feed_untouched(train->feed);
    if (stop >= train->segment_end) {
        return RP_OK;
    }
    train->segment_end = stop;
    train->verify.is_due = train->verify.alone = false; /* that step is not trained */
    train->feeding = plan_feed(train, stop);
    const rp_Frame order = {.which_body = RP_KIND_STOP, .body.stop = {.step = stop}};
    return rp_ring_post_all(train->ring, &order);
}

static rp_err begin_segment(rp_train *train, uint64_t end, bool drain) {
    rp_Frame order = {
        .which_body = RP_KIND_START,
        .body.start = {.step_first = train->position->step, .pause = end, .drain = drain}};
    RP_ASSERT(train->feed && train->segment_start_ns == 0);
    RP_ASSERT(train->position->step <= end && end <= train->run->steps);
    train->stopping = drain; /* a drain is short, so an interrupt waits for it */
    train->segment_end = end;
    train->fed.list.shape.step_end = drain ? end : train->run->steps;
    train->feeding = plan_feed(train, end);
    order.body.start.verify = !drain && train->verify.is_due;
    order.body.start.verify_micro = train->verify.micro;
    rp_ledger_check_begin(train, &order.body.start);
    train->watched = 0;
    return rp_segment_begin(train, &order);
}

rp_err rp_train_begin(rp_train *train, uint64_t end) {
    return begin_segment(train, rp_verify_choose(train, end), false);
}

rp_err rp_train_begin_drain(rp_train *train) {
    train->verify.is_due = train->verify.alone = false;
    return begin_segment(train, rp_train_drained_at(train), true);
}

rp_err rp_train_step(rp_train *train, bool stop, bool *paused, rp_FaultClass *fault_class) {
    rp_err err;
    RP_ASSERT(train->feed && train->segment_start_ns != 0);
    *paused = false;
    RP_TRY(rp_finite_check_step(train, fault_class));
    if (stop && !train->stopping) {
        train->stopping = true;
        RP_TRY(stop_early(train));
    }
    RP_TRY(rp_feed_step(train->feed, train->feeding.limit));
    *paused = rp_segment_has_paused(train) && train->position->step >= train->segment_end &&
              rp_feed_quiet(train->feed);
    if (*paused) {
        train->fed = train->feeding;
    }
fail:
    return err;
}

rp_err rp_train_end_segment(rp_train *train) {
    RP_ASSERT(train->segment_start_ns != 0);
    RP_ASSERT(rp_segment_has_paused(train));
    rp_segment_note_time(train, true);
    return rp_ledger_check_boards(train);
}

/* An interrupted segment also counts its time. */
void rp_train_abandon(rp_train *train) {
    if (train->segment_start_ns != 0) {
        rp_segment_note_time(train, false);
    }
}
