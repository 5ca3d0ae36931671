#include "link/sender.h"

#include <string.h>

#include "base/clock.h"

enum {
    EAGER_REPLAYS = 3, /* replays that end with a probe at once; later ones with the usual pause */
    HEAD_BYTES = 100   /* approximate size of a frame */
};

#define PROBE_FIRST_NS (200 * RP_NS_PER_MS)
#define PROBE_LAST_NS (2 * RP_NS_PER_S)

/* A message, kept until the peer has acked it and its memory is no longer read. */
typedef struct message message;

struct message {
    rp_Frame frame;
    rp_buffer *part[RP_PARTS_MAX];
    rp_buffer lent[RP_PARTS_MAX]; /* part[i] points here if its memory is borrowed */
    uint32_t part_count;
    size_t bytes; /* size of the parts */
    bool data;
    bool transmitted, repeated;
    rp_pace_mark mark;
    bool finished; /* done() was called */
    void (*done)(void *context);
    void *context;
    message *next_free;
};

/* Positions count all messages ever; seq counts from the stream's base. Invariant: finished <=
 * acked <= sent <= sent_high <= next. */
struct rp_sender {
    rp_sender_options options;
    message **ring; /* indexed by position */
    message *pool, *free;
    uint32_t capacity;
    uint32_t fresh; /* index of the first message of the pool never used */
    uint64_t finished, acked, sent, sent_high, next;
    uint64_t base;      /* position of seq 1 of the stream to this peer */
    uint32_t data_held; /* data messages in the ring */
    uint64_t unacked_bytes;
    rp_pace pace;
    uint64_t data_count; /* data messages numbered in this stream */
    uint64_t credit;     /* number of them that the peer accepts */
    uint64_t granted;    /* the part of it granted before the first message: the peer's window */
    uint64_t generation; /* number of the replay */
    uint32_t replays;    /* since the last progress */
    bool has_peer;
    bool probe_now;
    bool is_unheard; /* with `calls`: nothing was heard since the connection is new */
    int64_t probe_ns, probe_wait_ns;
    uint64_t sent_count, resent_count;
};

rp_err rp_sender_new(rp_arena *arena, const rp_sender_options *options, int64_t now,
                     rp_sender **out) {
    rp_sender *s;
    rp_err err = RP_ARENA_NEW(arena, 1, &s);
    if (err == RP_OK) {
        s->options = *options;
        s->capacity = options->window + options->control_max;
        s->probe_wait_ns = PROBE_FIRST_NS;
        s->probe_ns = now;
        err = RP_ARENA_NEW(arena, s->capacity, &s->ring);
    }
    if (err == RP_OK) {
        err = RP_ARENA_NEW(arena, s->capacity, &s->pool);
    }
    *out = err == RP_OK ? s : NULL;
    return err;
}

/* ---- messages -------------------------------------------------------------------------------- */

static message *message_at(const rp_sender *s, uint64_t position) {
    return s->ring[position % s->capacity];
}

/* Takes the most recently used free message, to touch as little memory as possible. */
static message *get_message(rp_sender *s) {
    message *m = s->free;
    if (m) {
        s->free = m->next_free;
        return m;
    }
    RP_ASSERT(s->fresh < s->capacity);
    return &s->pool[s->fresh++];
}

static void put_back(rp_sender *s, message *m) {
    m->next_free = s->free;
    s->free = m;
}

bool rp_sender_has_room(const rp_sender *s, bool data) {
    const uint64_t held = s->next - s->finished;
    if (data) {
        return s->data_held < s->options.window && s->data_count < s->credit;
    }
    return held - s->data_held < s->options.control_max;
}

static void drop_parts(message *m) {
    for (uint32_t i = 0; i < m->part_count; i++) {
        if (m->part[i] != &m->lent[i]) {
            rp_buffer_drop(&m->part[i]);
        }
    }
}

static bool is_lent(const message *m) {
    for (uint32_t i = 0; i < m->part_count; i++) {
        if (m->part[i] == &m->lent[i] && rp_buffer_is_lent(&m->lent[i])) {
            return true;
        }
    }
    return false;
}

static rp_err take_part(message *m, uint32_t i, const rp_part *part, bool copy) {
    if (!copy) {
        rp_buffer_borrow(&m->lent[i], part->data, part->bytes);
        m->part[i] = &m->lent[i];
        return RP_OK;
    }
    void *memory;
    rp_err err = rp_buffer_new(part->bytes, &m->part[i], &memory);
    if (err == RP_OK && part->bytes) {
        memcpy(memory, part->data, part->bytes);
    }
    return err;
}

rp_err rp_sender_put(rp_sender *s, const rp_Frame *frame, const rp_part *parts, uint32_t part_count,
                     bool copy, void (*done)(void *context), void *context) {
    const bool data = rp_frame_is_data(frame);
    RP_ASSERT(rp_sender_has_room(s, data) && part_count <= RP_PARTS_MAX);
    message *m = get_message(s);
    m->part_count = 0;
    m->bytes = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        rp_err err = take_part(m, i, &parts[i], copy);
        if (err != RP_OK) {
            drop_parts(m);
            put_back(s, m);
            return err;
        }
        m->part_count++;
        m->bytes += parts[i].bytes;
    }
    s->unacked_bytes += m->bytes;
    m->frame = *frame;
    m->data = data;
    m->transmitted = m->repeated = m->finished = false;
    m->done = done;
    m->context = context;
    s->ring[s->next++ % s->capacity] = m;
    s->data_held += data ? 1 : 0;
    s->data_count += data ? 1 : 0;
    return RP_OK;
}

bool rp_sender_next(rp_sender *s, rp_sender_message *out) {
    if (!s->has_peer || s->sent == s->next) {
        return false;
    }
    message *m = message_at(s, s->sent);
    m->frame.seq = s->sent - s->base + 1;
    *out = (rp_sender_message){&m->frame, m->part, m->part_count};
    return true;
}

void rp_sender_sent(rp_sender *s, int64_t now) {
    message *m = message_at(s, s->sent);
    RP_ASSERT(s->has_peer && s->sent < s->next);
    if (s->acked == s->sent_high) {
        s->probe_ns = now + s->probe_wait_ns; /* nothing else is in flight */
    }
    if (m->transmitted) {
        s->resent_count++;
        m->repeated = true;
    } else {
        rp_pace_sent(&s->pace, &m->mark, s->acked == s->sent_high, now);
        m->transmitted = true;
        s->sent_count++;
    }
    s->sent++;
    s->sent_high = s->sent > s->sent_high ? s->sent : s->sent_high;
}

void rp_sender_call_done(rp_sender *s) {
    for (uint64_t at = s->finished; at < s->acked; at++) {
        message *m = message_at(s, at);
        if (!m->finished && !is_lent(m)) {
            m->finished = true;
            if (m->done) {
                m->done(m->context);
            }
        }
    }
    for (; s->finished < s->acked && message_at(s, s->finished)->finished; s->finished++) {
        s->data_held -= message_at(s, s->finished)->data ? 1 : 0;
        put_back(s, message_at(s, s->finished));
    }
}

bool rp_sender_is_lending(const rp_sender *s) {
    return s->finished < s->acked;
}

static void give_up_to(rp_sender *s, uint64_t position) {
    for (; s->acked < position; s->acked++) {
        drop_parts(message_at(s, s->acked));
        s->unacked_bytes -= message_at(s, s->acked)->bytes;
    }
    s->sent = s->sent > s->acked ? s->sent : s->acked;
    s->sent_high = s->sent_high > s->acked ? s->sent_high : s->acked;
}

void rp_sender_give_up(rp_sender *s) {
    give_up_to(s, s->next);
}

/* ---- the peer -------------------------------------------------------------------------------- */

static void begin_pause(rp_sender *s, int64_t now) {
    s->probe_wait_ns = PROBE_FIRST_NS;
    s->probe_ns = now + s->probe_wait_ns;
}

void rp_sender_meet(rp_sender *s) {
    if (s->has_peer) {
        give_up_to(s, s->next);
        s->base = s->next;
        s->data_count = 0;
        s->credit = s->granted = 0;
        s->generation = 0;
        s->replays = 0;
        s->probe_wait_ns = PROBE_FIRST_NS;
    }
    s->has_peer = true;
}

void rp_sender_reconnected(rp_sender *s) {
    s->probe_now = true;
    s->is_unheard = s->options.calls;
}

static void note_acks(rp_sender *s, uint64_t end, int64_t now) {
    for (uint64_t at = s->acked; at < end; at++) {
        const message *m = message_at(s, at);
        rp_pace_acked(&s->pace, &m->mark, m->bytes + HEAD_BYTES, !m->repeated, now);
    }
}

bool rp_sender_on_ack(rp_sender *s, uint64_t ack, int64_t now) {
    if (ack > s->sent_high - s->base) {
        return false;
    }
    s->is_unheard = false;
    if (s->base + ack > s->acked) {
        note_acks(s, s->base + ack, now);
        give_up_to(s, s->base + ack);
        s->replays = 0;
        begin_pause(s, now);
    }
    return true;
}

bool rp_sender_on_credit(rp_sender *s, uint64_t credit, int64_t now) {
    const bool more = credit > s->credit;
    if (more) {
        s->credit = credit;
        s->granted = s->data_count == 0 ? credit : s->granted;
        begin_pause(s, now);
    }
    return more;
}

void rp_sender_on_again(rp_sender *s, uint64_t generation, int64_t now) {
    if (generation == s->generation || generation == RP_SENDER_ANY_GENERATION) {
        s->generation++;
        s->sent = s->acked;
        /* asks whether the replay arrived completely */
        s->probe_now = s->replays++ < EAGER_REPLAYS;
        begin_pause(s, now);
    }
}

/* Probes also while credit is missing: the frame that granted it may be lost, and no
 * further one would be sent. Also on a new connection, which may lead to a restarted peer that does
 * not know our session, and whose answer was lost. */
static bool awaits_answer(const rp_sender *s) {
    return s->acked < s->sent_high || (s->has_peer && s->data_count >= s->credit) ||
           (!s->has_peer && s->options.calls) || s->is_unheard;
}

bool rp_sender_probe_due(const rp_sender *s, int64_t now, rp_sender_probe *out) {
    *out = (rp_sender_probe){s->sent - s->base, s->generation};
    return s->probe_now || (awaits_answer(s) && now >= s->probe_ns);
}

void rp_sender_probed(rp_sender *s, bool posted, int64_t now) {
    if (posted) {
        s->probe_now = false;
    }
    s->probe_ns = now + s->probe_wait_ns;
    s->probe_wait_ns = 2 * s->probe_wait_ns < PROBE_LAST_NS ? 2 * s->probe_wait_ns : PROBE_LAST_NS;
}

bool rp_sender_is_ready(const rp_sender *s) {
    return s->probe_now || (s->has_peer && s->sent < s->next);
}

int64_t rp_sender_deadline_ns(const rp_sender *s) {
    return awaits_answer(s) ? s->probe_ns : INT64_MAX;
}

const rp_pace *rp_sender_pace_of(const rp_sender *s) {
    return &s->pace;
}

void rp_sender_begin_pace(rp_sender *s) {
    rp_pace_begin(&s->pace);
}

rp_sender_facts rp_sender_facts_of(const rp_sender *s) {
    const uint64_t released = s->credit - s->granted;
    return (rp_sender_facts){.sent = s->sent_count,
                             .resent = s->resent_count,
                             .unacked = s->next - s->acked,
                             .unreleased = s->data_count > released ? s->data_count - released : 0,
                             .unacked_bytes = s->unacked_bytes,
                             .replays = s->replays,
                             .on_the_way = s->acked < s->sent_high};
}
