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
    rp_feeder *feeder;
    rp_feed_purpose purpose;
    on_way slot[BATCHES];
    on_way *sending; /* partly sent, or NULL */
    bool labels_sent;
    uint32_t first; /* of the next microbatch */
    rp_feed_limit skip;
    uint64_t untouched;
};

rp_err rp_feed_open(rp_arena *arena, rp_ring *ring, rp_feeder_mode mode, rp_split split,
                    rp_feed_purpose purpose, uint64_t step_first, uint64_t step_end,
                    rp_feed **out) {
    rp_err err;
    rp_feed *feed;
    RP_TRY(RP_ARENA_NEW(arena, 1, &feed));
    feed->ring = ring;
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

static void acked(void *context) {
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

static rp_err send_part(rp_feed *feed, uint32_t stage, rp_kind kind, uint32_t first,
                        const rp_part *part) {
    on_way *slot = feed->sending;
    const rp_Parcel parcel = {.step = slot->batch->step,
                              .first = first,
                              .count = part->shape.dim[0],
                              .epoch = slot->batch->epoch,
                              .evaluation = feed->purpose != RP_FEED_TRAINING};
    rp_Frame frame = rp_frame_of_parcel(kind, &parcel);
    rp_err err = rp_link_send(feed->ring->board[stage].feed, &frame, part, 1, false, acked, slot);
    slot->unacked += err == RP_OK;
    return err;
}

static rp_err send_labels(rp_feed *feed) {
    const rp_runfile *run = feed->ring->run;
    const rp_batch *batch = feed->sending->batch;
    bool classes = run->loss->class_target;
    uint32_t width = classes ? 1 : run->data.target_width;
    const void *data = classes ? (const void *)batch->labels : (const void *)batch->rows;
    const rp_shape shape = rp_shape_2(batch->count, width);
    const rp_part part = rp_part_of_tensor(classes ? RP_DTYPE_I32 : RP_DTYPE_F32, data, &shape);
    return send_part(feed, feed->ring->count - 1, RP_KIND_LABEL, 0, &part);
}

static rp_err send_inputs(rp_feed *feed) {
    const rp_runfile *run = feed->ring->run;
    const rp_batch *batch = feed->sending->batch;
    size_t sample = rp_shape_count(&run->data.sample);
    uint32_t rest = batch->count - feed->first;
    uint32_t count = rest < run->micro ? rest : run->micro;
    const rp_shape shape = rp_shape_batch(count, &run->data.sample);
    const rp_part part = rp_part_of_tensor(RP_DTYPE_F32, batch->x + feed->first * sample, &shape);
    return send_part(feed, 0, RP_KIND_INPUT, feed->first, &part);
}

static bool within(const rp_feed *feed, rp_feed_limit limit) {
    const uint64_t step = feed->sending->batch->step;
    const uint32_t micro = feed->first / feed->ring->run->micro;
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
        if (!within(feed, limit)) {
            return RP_OK;
        }
        feed->untouched = feed->sending->batch->step + 1;
        if (!feed->labels_sent) {
            err = send_labels(feed);
            feed->labels_sent = err == RP_OK;
        } else {
            uint32_t rest = feed->sending->batch->count - feed->first;
            uint32_t micro = feed->ring->run->micro;
            err = within(feed, feed->skip) ? RP_OK : send_inputs(feed);
            feed->first += err == RP_OK ? (rest < micro ? rest : micro) : 0;
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
