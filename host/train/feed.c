#include "train/feed.h"

#include "codec/encode.h"
#include "train/feed_pace.h"

/* Minimum number of batches kept at once, which limits how far cursors can be apart. Small inputs
 * need more, to fill the inputs' window. */
enum { BATCHES_LEAST = 4 };

/* A batch being sent; its memory belongs to the feeder until all its parcels are acked. */
typedef struct {
    const rp_batch *batch;
    uint8_t *encoded; /* encoded inputs; NULL: no codec */
    uint64_t number;  /* counts the batches of this feed */
    uint32_t unacked;
    uint32_t cursors; /* cursors that have not sent all of their part */
} sent_batch;

/* Position of one feed of the plan. It stops at a full link, while other feeds go on. */
typedef struct {
    uint32_t feed;
    uint64_t number;  /* number of the current batch */
    sent_batch *slot; /* NULL until that batch is available */
    uint32_t micro;
    rp_op op;              /* current op */
    bool listed;           /* `transfer` has the op's transfers */
    rp_transfer *transfer; /* labels of a step, and an input */
    uint32_t transfers, next;
} cursor;

struct rp_feed {
    rp_ring *ring;
    const rp_plan *plan;
    rp_feeder *feeder;
    rp_codec codec; /* codec of inputs */
    rp_data data;   /* the run's data; with uint8 the first stage normalises */
    rp_feed_purpose purpose;
    sent_batch *slot;
    uint32_t slots;
    rp_feed_pace **pace; /* by board; NULL: it gets no inputs */
    uint64_t taken;      /* number of batches taken */
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

/* Number of batches to keep at once for a feed of `steps` steps. */
static uint32_t batches_ahead(const rp_plan *plan, uint64_t steps) {
    const uint32_t micros = (plan->batch - 1) / plan->stage[0].micro_forward + 1;
    uint32_t most = 0;
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const rp_plan_edge *edge = &plan->edge[e];
        const uint32_t window = edge->window < RP_FEED_PACE_MOST ? edge->window : RP_FEED_PACE_MOST;
        const uint32_t parcels = edge->carries == RP_CARRIES_INPUT ? window : 0;
        most = parcels > most ? parcels : most;
    }
    uint32_t batches = 2 + (most + micros - 1) / micros;
    batches = batches > BATCHES_LEAST ? batches : BATCHES_LEAST;
    return steps > 0 && steps < batches ? (uint32_t)steps : batches;
}

static size_t input_bytes(const rp_feed *feed) {
    return rp_codec_bytes(feed->codec, rp_shape_count(&feed->ring->run->data.sample));
}

/* Inputs have the same codec for all boards. */
static rp_err open_slots(rp_arena *arena, rp_feed *feed) {
    rp_err err;
    feed->codec = rp_plan_input_codec(feed->plan);
    feed->data.raw = feed->codec == RP_CODEC_UINT8;
    RP_TRY(RP_ARENA_NEW(arena, feed->slots, &feed->slot));
    for (uint32_t i = 0; feed->codec != RP_CODEC_F32 && i < feed->slots; i++) {
        RP_TRY(RP_ARENA_NEW(arena, feed->plan->batch * input_bytes(feed), &feed->slot[i].encoded));
    }
fail:
    return err;
}

/* Labels of a step stay in the window until its last forward or backward. */
static rp_err open_paces(rp_arena *arena, rp_feed *feed) {
    const rp_plan *plan = feed->plan;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, plan->node_count, &feed->pace));
    for (uint32_t k = 0; k < plan->node_count; k++) {
        uint32_t count;
        uint32_t inputs = 0;
        uint32_t labels = 0;
        const uint32_t *edge = rp_plan_node_edges(plan, k, &count);
        for (uint32_t i = 0; i < count; i++) {
            const rp_plan_edge *at = &plan->edge[edge[i]];
            inputs += at->carries == RP_CARRIES_INPUT ? at->window : 0;
            labels += at->carries == RP_CARRIES_LABEL ? at->window : 0;
        }
        if (inputs > 0) {
            RP_TRY(RP_ARENA_NEW(arena, 1, &feed->pace[k]));
            rp_feed_pace_start(feed->pace[k], inputs + labels + RP_PLAN_LINK_SLACK, labels);
        }
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
    feed->data = ring->run->data;
    feed->purpose = purpose;
    feed->untouched = step_first;
    RP_ASSERT(step_first <= step_end);
    feed->slots = batches_ahead(plan, step_end - step_first);
    RP_TRY(open_slots(arena, feed));
    RP_TRY(open_cursors(arena, feed));
    RP_TRY(open_paces(arena, feed));
    RP_TRY(rp_feeder_open(arena, &feed->data, mode, split, purpose != RP_FEED_EVALUATION,
                          ring->run->batch, step_first, step_end, feed->slots, &feed->feeder));
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

/* Index of a free slot; feed->slots: none. */
static uint32_t free_slot(const rp_feed *feed) {
    uint32_t i = 0;
    while (i < feed->slots && feed->slot[i].batch) {
        i++;
    }
    return i;
}

int rp_feed_eventfd(const rp_feed *feed) {
    bool wanted = false;
    for (uint32_t i = 0; i < feed->cursors; i++) {
        wanted = wanted || feed->cursor[i].number == feed->taken;
    }
    return wanted && free_slot(feed) < feed->slots ? rp_feeder_eventfd(feed->feeder) : -1;
}

bool rp_feed_quiet(const rp_feed *feed) {
    for (uint32_t i = 0; i < feed->slots; i++) {
        if (feed->slot[i].unacked > 0) {
            return false;
        }
    }
    return true;
}

static void count_ack(void *context) {
    sent_batch *slot = context;
    RP_ASSERT(slot->batch && slot->unacked > 0);
    slot->unacked--;
}

static void return_acked(rp_feed *feed) {
    for (uint32_t i = 0; i < feed->slots; i++) {
        sent_batch *slot = &feed->slot[i];
        if (slot->batch && slot->cursors == 0 && slot->unacked == 0) {
            rp_feeder_return(feed->feeder, slot->batch);
            *slot = (sent_batch){.encoded = slot->encoded};
        }
    }
}

/* Takes the next batch if there are both a batch and a free slot. */
static rp_err take_batch(rp_feed *feed) {
    const uint32_t i = free_slot(feed);
    if (i == feed->slots) {
        return RP_OK;
    }
    sent_batch *slot = &feed->slot[i];
    RP_ASSERT(slot->unacked == 0 && slot->cursors == 0);
    const rp_err err = rp_feeder_take(feed->feeder, &slot->batch);
    if (err == RP_OK) {
        slot->number = feed->taken++;
        slot->cursors = feed->cursors;
        if (slot->encoded) {
            rp_codec_encode_host(feed->codec, slot->batch->x, slot->batch->count,
                                 rp_shape_count(&feed->ring->run->data.sample), slot->encoded);
        }
    }
    return err == RP_ERR_AGAIN ? RP_OK : err;
}

/* Finds the cursor's batch, if available. */
static rp_err find_batch(rp_feed *feed, cursor *at) {
    rp_err err = RP_OK;
    if (at->number == feed->taken) {
        RP_TRY(take_batch(feed));
    }
    for (uint32_t i = 0; i < feed->slots; i++) {
        sent_batch *slot = &feed->slot[i];
        at->slot = slot->batch && slot->number == at->number ? slot : at->slot;
    }
fail:
    return err;
}

static void finish_batch(cursor *at) {
    RP_ASSERT(at->slot && at->slot->cursors > 0 && !at->listed);
    at->slot->cursors--;
    at->slot = NULL;
    at->number++;
    at->micro = 0;
}

static rp_err send_part(rp_feed *feed, sent_batch *slot, rp_kind kind, const rp_transfer *t,
                        const rp_part *part) {
    const uint32_t board = feed->plan->edge[t->edge].to;
    rp_feed_pace *pace = feed->pace[board];
    const rp_Parcel parcel = {.step = slot->batch->step,
                              .first = t->samples.first,
                              .count = t->samples.count,
                              .epoch = slot->batch->epoch,
                              .codec = kind == RP_KIND_INPUT ? feed->codec : RP_CODEC_F32,
                              .time = slot->batch->time,
                              .evaluation = feed->purpose != RP_FEED_TRAINING};
    rp_Frame frame = rp_frame_of_parcel(kind, &parcel);
    if (pace && !rp_feed_pace_may_send(pace)) {
        return RP_ERR_AGAIN;
    }
    rp_err err =
        rp_link_send(feed->ring->board[board].feed, &frame, part, 1, false, count_ack, slot);
    slot->unacked += err == RP_OK;
    if (pace && err == RP_OK) {
        rp_feed_pace_sent(pace, rp_clock_now_ns(feed->ring->clock));
    }
    return err;
}

static rp_err send_label(rp_feed *feed, sent_batch *slot, const rp_transfer *t) {
    const rp_runfile *run = feed->ring->run;
    const rp_batch *batch = slot->batch;
    bool classes = run->loss->class_target;
    const uint32_t width = rp_batch_row_width(&run->data, batch);
    const size_t first = (size_t)t->samples.first * width;
    const void *data =
        classes ? (const void *)(batch->labels + first) : (const void *)(batch->rows + first);
    const rp_shape shape = rp_shape_2(t->samples.count, width);
    const rp_part part = rp_part_of_tensor(classes ? RP_DTYPE_I32 : RP_DTYPE_F32, data, &shape);
    return send_part(feed, slot, RP_KIND_LABEL, t, &part);
}

static rp_part encoded_part(const rp_feed *feed, const sent_batch *slot, const rp_transfer *t) {
    const size_t bytes = input_bytes(feed);
    const rp_shape row = rp_shape_2(t->samples.count, (uint32_t)bytes);
    const rp_shape shape = rp_shape_batch(t->samples.count, &feed->ring->run->data.sample);
    const uint8_t *from = slot->encoded + t->samples.first * bytes;
    switch (rp_codec_dtype(feed->codec)) {
    case RP_F16:
        return rp_part_of_tensor(RP_DTYPE_F16, from, &shape);
    case RP_BF16:
        return rp_part_of_tensor(RP_DTYPE_BF16, from, &shape);
    default:
        return rp_part_of_tensor(RP_DTYPE_U8, from, &row);
    }
}

static rp_err send_input(rp_feed *feed, sent_batch *slot, const rp_transfer *t) {
    const rp_data *data = &feed->ring->run->data;
    const void *x = rp_batch_sample(data, slot->batch, t->samples.first);
    const rp_shape sample = rp_batch_shape(data, slot->batch);
    const rp_shape shape = rp_shape_batch(t->samples.count, &sample);
    const rp_Dtype type = data->type == RP_I32 ? RP_DTYPE_I32 : RP_DTYPE_F32;
    const rp_part part =
        slot->encoded ? encoded_part(feed, slot, t) : rp_part_of_tensor(type, x, &shape);
    return send_part(feed, slot, RP_KIND_INPUT, t, &part);
}

/* A pause or skip within a step only occurs with boards that have all samples. A board with a part
 * of the samples has at most as many microbatches, so its whole step is within the limit. */
static bool within_limit(const rp_op *op, rp_feed_limit limit) {
    return op->step < limit.step || (op->step == limit.step && op->micro < limit.micros);
}

static void list_transfers(rp_feed *feed, cursor *at) {
    RP_ASSERT(!at->listed);
    const uint32_t count = at->slot->batch->count;
    const uint32_t eval_samples = feed->purpose == RP_FEED_TRAINING ? 0 : count;
    at->transfers =
        rp_plan_feed_transfers(feed->plan, at->feed, &at->op, eval_samples, at->transfer);
    at->next = 0;
    at->listed = true;
}

/* Sends the transfers of the current op. AGAIN: a link is full; transfers already sent are not
 * repeated. */
static rp_err send_op(rp_feed *feed, cursor *at) {
    rp_err err = RP_OK;
    RP_ASSERT(at->listed && at->slot);
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

/* Sends until the batches, the limit or a link stop it. */
static rp_err move_cursor(rp_feed *feed, cursor *at, rp_feed_limit limit) {
    rp_err err = RP_OK;
    for (;;) {
        RP_TRY(at->slot ? RP_OK : find_batch(feed, at));
        if (!at->slot) {
            return RP_OK;
        }
        const rp_batch *batch = at->slot->batch;
        if (!rp_plan_feed_op(feed->plan, at->feed, batch->step, batch->count, at->micro, &at->op)) {
            finish_batch(at);
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

static void hear_boards(rp_feed *feed) {
    for (uint32_t k = 0; k < feed->plan->node_count; k++) {
        rp_link_stats stats;
        if (feed->pace[k]) {
            rp_link_stats_of(feed->ring->board[k].feed, &stats);
            rp_feed_pace_heard(feed->pace[k], stats.unacked, stats.unreleased,
                               rp_clock_now_ns(feed->ring->clock));
        }
    }
}

rp_err rp_feed_step(rp_feed *feed, rp_feed_limit limit) {
    rp_err err = RP_OK;
    return_acked(feed);
    hear_boards(feed);
    for (uint32_t i = 0; i < feed->cursors; i++) {
        RP_TRY(move_cursor(feed, &feed->cursor[i], limit));
    }
fail:
    return err;
}
