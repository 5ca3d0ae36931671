#include "control/feed.h"

enum { BATCHES = 4 }; /* on their way: no cursor is further ahead of another */

/* A batch on its way; its memory is the feeder's until every parcel of it has been acked. */
typedef struct {
    const rp_batch *batch;
    uint64_t number; /* of this feed's batches */
    uint32_t unacked;
    uint32_t cursors; /* that have not sent all of their part */
} on_way;

/* Where one of the plan's feeds is. It stops at a link without room, and the others go on. */
typedef struct {
    uint32_t feed;
    uint64_t number; /* of the batch at hand, .. */
    on_way *slot;    /* .. NULL until it is there */
    uint32_t micro;
    rp_op op;              /* at hand, */
    bool listed;           /* .. with its transfers: */
    rp_transfer *transfer; /* labels of a step, and an input */
    uint32_t transfers, next;
} cursor;

struct rp_feed {
    rp_ring *ring;
    const rp_plan *plan;
    rp_feeder *feeder;
    rp_feed_purpose purpose;
    on_way slot[BATCHES];
    uint64_t taken; /* batches */
    cursor *cursor;
    uint32_t cursors;
    rp_feed_limit skip;
    uint64_t untouched;
};

static rp_err open_cursors(rp_arena *arena, rp_feed *feed) {
    uint32_t edges;
    rp_err err;
    (void)rp_plan_node_edges(feed->plan, RP_PLAN_HOST, &edges);
    feed->cursors = rp_plan_feeds(feed->plan);
    RP_TRY(RP_ARENA_NEW(arena, feed->cursors, &feed->cursor));
    for (uint32_t i = 0; i < feed->cursors; i++) {
        feed->cursor[i].feed = i;
        RP_TRY(RP_ARENA_NEW(arena, (size_t)edges + 1, &feed->cursor[i].transfer));
    }
fail:
    return err;
}

rp_err rp_feed_open(rp_arena *arena, rp_ring *ring, const rp_plan *plan, rp_feeder_mode mode,
                    rp_split split, rp_feed_purpose purpose, uint64_t step_first, uint64_t step_end,
                    rp_feed **out) {
    rp_err err;
    rp_feed *feed;
    RP_TRY(RP_ARENA_NEW(arena, 1, &feed));
    feed->ring = ring;
    feed->plan = plan;
    feed->purpose = purpose;
    feed->untouched = step_first;
    RP_TRY(open_cursors(arena, feed));
    RP_TRY(rp_feeder_open(arena, &ring->run->data, mode, split, purpose != RP_FEED_EVALUATION,
                          ring->run->batch, step_first, step_end, BATCHES, &feed->feeder));
    *out = feed;
fail:
    return err;
}

void rp_feed_close(rp_feed **feed) {
    if (*feed) {
        rp_feeder_close(&(*feed)->feeder);
        *feed = NULL;
    }
}

void rp_feed_skip(rp_feed *feed, rp_feed_limit sent) {
    feed->skip = sent;
    if (sent.micros > 0 && sent.step >= feed->untouched) {
        feed->untouched = sent.step + 1;
    }
}

uint64_t rp_feed_untouched(const rp_feed *feed) {
    return feed->untouched;
}

/* For the next batch; BATCHES: all are taken. */
static uint32_t free_slot(const rp_feed *feed) {
    uint32_t i = 0;
    while (i < BATCHES && feed->slot[i].batch) {
        i++;
    }
    return i;
}

int rp_feed_eventfd(const rp_feed *feed) {
    bool wanted = false;
    for (uint32_t i = 0; i < feed->cursors; i++) {
        wanted = wanted || feed->cursor[i].number == feed->taken;
    }
    return wanted && free_slot(feed) < BATCHES ? rp_feeder_eventfd(feed->feeder) : -1;
}

bool rp_feed_quiet(const rp_feed *feed) {
    for (uint32_t i = 0; i < BATCHES; i++) {
        if (feed->slot[i].unacked > 0) {
            return false;
        }
    }
    return true;
}

static void count_ack(void *context) {
    ((on_way *)context)->unacked--;
}

static void return_acked(rp_feed *feed) {
    for (uint32_t i = 0; i < BATCHES; i++) {
        on_way *slot = &feed->slot[i];
        if (slot->batch && slot->cursors == 0 && slot->unacked == 0) {
            rp_feeder_return(feed->feeder, slot->batch);
            *slot = (on_way){0};
        }
    }
}

/* The next batch into a free slot, when there are both. */
static rp_err take_batch(rp_feed *feed) {
    const uint32_t i = free_slot(feed);
    if (i == BATCHES) {
        return RP_OK;
    }
    on_way *slot = &feed->slot[i];
    const rp_err err = rp_feeder_take(feed->feeder, &slot->batch);
    if (err == RP_OK) {
        slot->number = feed->taken++;
        slot->cursors = feed->cursors;
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

/* The cursor's batch, once it is there. */
static rp_err find_batch(rp_feed *feed, cursor *at) {
    rp_err err = RP_OK;
    if (at->number == feed->taken) {
        RP_TRY(take_batch(feed));
    }
    for (uint32_t i = 0; i < BATCHES; i++) {
        on_way *slot = &feed->slot[i];
        at->slot = slot->batch && slot->number == at->number ? slot : at->slot;
    }
fail:
    return err;
}

static void leave_batch(cursor *at) {
    at->slot->cursors--;
    at->slot = NULL;
    at->number++;
    at->micro = 0;
}

static rp_err send_part(rp_feed *feed, on_way *slot, rp_kind kind, const rp_transfer *t,
                        const rp_part *part) {
    const uint32_t board = feed->plan->edge[t->edge].to;
    const rp_Parcel parcel = {.step = slot->batch->step,
                              .first = t->samples.first,
                              .count = t->samples.count,
                              .epoch = slot->batch->epoch,
                              .evaluation = feed->purpose != RP_FEED_TRAINING};
    rp_Frame frame = rp_frame_of_parcel(kind, &parcel);
    rp_err err =
        rp_link_send(feed->ring->board[board].feed, &frame, part, 1, false, count_ack, slot);
    slot->unacked += err == RP_OK;
    return err;
}

static rp_err send_label(rp_feed *feed, on_way *slot, const rp_transfer *t) {
    const rp_runfile *run = feed->ring->run;
    const rp_batch *batch = slot->batch;
    bool classes = run->loss->class_target;
    uint32_t width = classes ? 1 : rp_data_row_width(&run->data);
    const size_t first = (size_t)t->samples.first * width;
    const void *data =
        classes ? (const void *)(batch->labels + first) : (const void *)(batch->rows + first);
    const rp_shape shape = rp_shape_2(t->samples.count, width);
    const rp_part part = rp_part_of_tensor(classes ? RP_DTYPE_I32 : RP_DTYPE_F32, data, &shape);
    return send_part(feed, slot, RP_KIND_LABEL, t, &part);
}

static rp_err send_input(rp_feed *feed, on_way *slot, const rp_transfer *t) {
    const rp_runfile *run = feed->ring->run;
    const float *x = slot->batch->x + t->samples.first * rp_shape_count(&run->data.sample);
    const rp_shape shape = rp_shape_batch(t->samples.count, &run->data.sample);
    const rp_part part = rp_part_of_tensor(RP_DTYPE_F32, x, &shape);
    return send_part(feed, slot, RP_KIND_INPUT, t, &part);
}

/* A pause or a skip in the middle of a step is one of a board that has all of its samples: of a
 * part of them there are no more microbatches than of all, so a whole step is within its limit. */
static bool within_limit(const rp_op *op, rp_feed_limit limit) {
    return op->step < limit.step || (op->step == limit.step && op->micro < limit.micros);
}

static void list_transfers(rp_feed *feed, cursor *at) {
    const uint32_t count = at->slot->batch->count;
    const uint32_t eval_samples = feed->purpose == RP_FEED_TRAINING ? 0 : count;
    at->transfers =
        rp_plan_feed_transfers(feed->plan, at->feed, &at->op, eval_samples, at->transfer);
    at->next = 0;
    at->listed = true;
}

/* What belongs to the op at hand. AGAIN when a link has no room: what has gone is not sent twice.
 */
static rp_err send_op(rp_feed *feed, cursor *at) {
    rp_err err = RP_OK;
    for (; at->next < at->transfers; at->next++) {
        const rp_transfer *t = &at->transfer[at->next];
        if (feed->plan->edge[t->edge].carries == RP_CARRIES_LABEL) {
            RP_TRY(feed->purpose == RP_FEED_STATISTICS ? RP_OK : send_label(feed, at->slot, t));
        } else {
            RP_TRY(within_limit(&at->op, feed->skip) ? RP_OK : send_input(feed, at->slot, t));
        }
    }
    at->listed = false;
    at->micro++;
fail:
    return err;
}

/* As far as its batches, the limit and its links let it. */
static rp_err move_cursor(rp_feed *feed, cursor *at, rp_feed_limit limit) {
    rp_err err = RP_OK;
    for (;;) {
        RP_TRY(at->slot ? RP_OK : find_batch(feed, at));
        if (!at->slot) {
            return RP_OK;
        }
        const rp_batch *batch = at->slot->batch;
        if (!rp_plan_feed_op(feed->plan, at->feed, batch->step, batch->count, at->micro, &at->op)) {
            leave_batch(at);
            continue;
        }
        if (!within_limit(&at->op, limit)) {
            return RP_OK;
        }
        if (batch->step >= feed->untouched) {
            feed->untouched = batch->step + 1;
        }
        if (!at->listed) {
            list_transfers(feed, at);
        }
        err = send_op(feed, at);
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
    }
fail:
    return err;
}

rp_err rp_feed_step(rp_feed *feed, rp_feed_limit limit) {
    rp_err err = RP_OK;
    return_acked(feed);
    for (uint32_t i = 0; i < feed->cursors; i++) {
        RP_TRY(move_cursor(feed, &feed->cursor[i], limit));
    }
fail:
    return err;
}
