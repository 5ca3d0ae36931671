#include "control/feed.h"

enum { BATCHES = 4 };

/* A batch on its way; its memory is the feeder's until every parcel of it has been acked. */
typedef struct {
    const rp_batch *batch;
    uint32_t unacked;
    bool sent;
} on_way;

struct rp_feed {
    rp_ring *ring;
    const rp_plan *plan;
    uint32_t micro; /* samples of an input */
    rp_feeder *feeder;
    rp_feed_purpose purpose;
    on_way slot[BATCHES];
    on_way *sending; /* partly sent, or NULL */
    bool labels_sent;
    uint32_t first;        /* of the next microbatch */
    rp_transfer *transfer; /* of what is being sent: labels of a step, or a microbatch */
    uint32_t transfers, transfer_next;
    rp_feed_limit skip;
    uint64_t untouched;
};

rp_err rp_feed_open(rp_arena *arena, rp_ring *ring, const rp_plan *plan, rp_feeder_mode mode,
                    rp_split split, rp_feed_purpose purpose, uint64_t step_first, uint64_t step_end,
                    rp_feed **out) {
    rp_err err;
    rp_feed *feed;
    uint32_t edges;
    (void)rp_plan_node_edges(plan, RP_PLAN_HOST, &edges);
    RP_TRY(RP_ARENA_NEW(arena, 1, &feed));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)edges + 1, &feed->transfer));
    feed->ring = ring;
    feed->plan = plan;
    feed->micro = plan->stage[0].micro_forward;
    feed->purpose = purpose;
    feed->untouched = step_first;
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

int rp_feed_eventfd(const rp_feed *feed) {
    for (uint32_t i = 0; !feed->sending && i < BATCHES; i++) {
        if (!feed->slot[i].batch) {
            return rp_feeder_eventfd(feed->feeder);
        }
    }
    return -1;
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
        if (slot->batch && slot->sent && slot->unacked == 0) {
            rp_feeder_return(feed->feeder, slot->batch);
            *slot = (on_way){0};
        }
    }
}

/* The next batch into a free slot, when there are both. */
static rp_err take_batch(rp_feed *feed) {
    for (uint32_t i = 0; i < BATCHES; i++) {
        on_way *slot = &feed->slot[i];
        if (slot->batch) {
            continue;
        }
        rp_err err = rp_feeder_take(feed->feeder, &slot->batch);
        if (err == RP_OK) {
            feed->sending = slot;
            feed->labels_sent = feed->purpose == RP_FEED_STATISTICS;
            feed->first = 0;
        }
        return err == RP_ERR_AGAIN ? RP_OK : err;
    }
    return RP_OK;
}

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static rp_err send_part(rp_feed *feed, rp_kind kind, const rp_transfer *t, const rp_part *part) {
    on_way *slot = feed->sending;
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

static rp_err send_label(rp_feed *feed, const rp_transfer *t) {
    const rp_runfile *run = feed->ring->run;
    const rp_batch *batch = feed->sending->batch;
    bool classes = run->loss->class_target;
    uint32_t width = classes ? 1 : rp_data_row_width(&run->data);
    const size_t first = (size_t)t->samples.first * width;
    const void *data =
        classes ? (const void *)(batch->labels + first) : (const void *)(batch->rows + first);
    const rp_shape shape = rp_shape_2(t->samples.count, width);
    const rp_part part = rp_part_of_tensor(classes ? RP_DTYPE_I32 : RP_DTYPE_F32, data, &shape);
    return send_part(feed, RP_KIND_LABEL, t, &part);
}

static rp_err send_input(rp_feed *feed, const rp_transfer *t) {
    const rp_runfile *run = feed->ring->run;
    const float *x = feed->sending->batch->x + t->samples.first * rp_shape_count(&run->data.sample);
    const rp_shape shape = rp_shape_batch(t->samples.count, &run->data.sample);
    const rp_part part = rp_part_of_tensor(RP_DTYPE_F32, x, &shape);
    return send_part(feed, RP_KIND_INPUT, t, &part);
}

/* What of the microbatch goes where; with the first one the labels of the step. */
static void list_transfers(rp_feed *feed) {
    const rp_batch *batch = feed->sending->batch;
    const rp_op op = {.kind = RP_OP_FORWARD,
                      .step = batch->step,
                      .micro = feed->first / feed->micro,
                      .samples = {feed->first, smaller(batch->count - feed->first, feed->micro)}};
    const uint32_t eval_samples = feed->purpose == RP_FEED_TRAINING ? 0 : batch->count;
    feed->transfers =
        rp_plan_transfers(feed->plan, RP_PLAN_HOST, &op, eval_samples, feed->transfer);
    feed->transfer_next = 0;
}

/* The labels, or the inputs, of the microbatch at hand. AGAIN when a link has no room: what has
 * gone is not sent twice. */
static rp_err send_all(rp_feed *feed, rp_carries carries) {
    rp_err err = RP_OK;
    if (feed->transfers == 0) {
        list_transfers(feed);
    }
    for (; feed->transfer_next < feed->transfers; feed->transfer_next++) {
        const rp_transfer *t = &feed->transfer[feed->transfer_next];
        if (feed->plan->edge[t->edge].carries == carries) {
            RP_TRY(carries == RP_CARRIES_LABEL ? send_label(feed, t) : send_input(feed, t));
        }
    }
    feed->transfers = 0;
fail:
    return err;
}

static bool within_limit(const rp_feed *feed, rp_feed_limit limit) {
    const uint64_t step = feed->sending->batch->step;
    const uint32_t micro = feed->first / feed->micro;
    return step < limit.step || (step == limit.step && micro < limit.micros);
}

rp_err rp_feed_step(rp_feed *feed, rp_feed_limit limit) {
    return_acked(feed);
    for (;;) {
        rp_err err = RP_OK;
        if (!feed->sending) {
            err = take_batch(feed);
            if (err != RP_OK || !feed->sending) {
                return err;
            }
        }
        if (!within_limit(feed, limit)) {
            return RP_OK;
        }
        feed->untouched = feed->sending->batch->step + 1;
        if (!feed->labels_sent) {
            err = send_all(feed, RP_CARRIES_LABEL);
            feed->labels_sent = err == RP_OK;
        } else {
            const uint32_t rest = feed->sending->batch->count - feed->first;
            err = within_limit(feed, feed->skip) ? RP_OK : send_all(feed, RP_CARRIES_INPUT);
            feed->first += err == RP_OK ? smaller(rest, feed->micro) : 0;
        }
        if (err != RP_OK) {
            return err == RP_ERR_AGAIN ? RP_OK : err;
        }
        if (feed->labels_sent && feed->first == feed->sending->batch->count) {
            feed->sending->sent = true;
            feed->sending = NULL;
        }
    }
}
