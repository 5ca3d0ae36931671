/* What we send: numbered messages are kept until acked and sent again from the ack on (go-back-N)
 * when the peer says that one is missing. The peer can only say so after a later message or a probe
 * arrived, so that a slow line never causes a repetition. */
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "link/inside.h"

#define LET_GO_MAX_NS (10 * RP_NS_PER_S)

static outgoing *slot(sender *s, uint64_t position) {
    return &s->ring[position % s->capacity];
}

rp_err sender_open(rp_link *link) {
    sender *s = &link->out;
    s->capacity = link->send_window + RP_LINK_CONTROL_MAX;
    s->probe_wait_ns = PROBE_FIRST_NS;
    s->probe_ns = link_now_ns(link);
    return RP_ARENA_NEW(&link->arena, s->capacity, &s->ring);
}

/* Called by ZeroMQ's thread when the last reference to a part is gone. */
static void let_go(void *data, void *hint) {
    (void)data;
    atomic_fetch_sub_explicit((_Atomic uint32_t *)hint, 1, memory_order_acq_rel);
}

static bool is_lent(outgoing *o) {
    return atomic_load_explicit(&o->lent, memory_order_acquire) != 0;
}

static void drop_parts(outgoing *o) {
    close_frames(o->part, o->part_count);
    o->part_count = 0;
}

static void call_done(outgoing *o) {
    o->finished = true;
    if (o->done) {
        o->done(o->context);
    }
}

void sender_finish(rp_link *link) {
    sender *s = &link->out;
    for (uint64_t at = s->finished; at < s->acked; at++) {
        outgoing *o = slot(s, at);
        if (!o->finished && !is_lent(o)) {
            call_done(o);
        }
    }
    for (; s->finished < s->acked && slot(s, s->finished)->finished; s->finished++) {
        s->data_held -= slot(s, s->finished)->data ? 1 : 0;
    }
}

static void give_up_to(sender *s, uint64_t position) {
    for (; s->acked < position; s->acked++) {
        drop_parts(slot(s, s->acked));
    }
    s->sent = s->sent > s->acked ? s->sent : s->acked;
    s->sent_high = s->sent_high > s->acked ? s->sent_high : s->acked;
}

void sender_close(rp_link *link) {
    sender *s = &link->out;
    if (!s->ring) {
        return;
    }
    give_up_to(s, s->next);
    /* The socket is closed without linger: ZeroMQ's thread lets go within moments. */
    int64_t waited_ns = 0;
    const struct timespec nap = {.tv_nsec = 50000};
    for (uint64_t at = s->finished; at < s->acked; at++) {
        outgoing *o = slot(s, at);
        while (is_lent(o) && waited_ns < LET_GO_MAX_NS) {
            (void)nanosleep(&nap, NULL);
            waited_ns += nap.tv_nsec;
        }
        if (is_lent(o)) {
            rp_log_error("link %s: ZeroMQ keeps the memory of message %llu; it is never given back",
                         link->name, (unsigned long long)o->header.seq);
        } else if (!o->finished) {
            call_done(o);
        }
    }
    s->finished = s->acked;
}

void sender_reset(rp_link *link) {
    sender *s = &link->out;
    give_up_to(s, s->next);
    s->base = s->next;
    s->data_count = 0;
    s->credit = 0;
    s->generation = 0;
    s->replays = 0;
    s->probe_wait_ns = PROBE_FIRST_NS;
}

bool sender_ack(rp_link *link, uint64_t ack) {
    sender *s = &link->out;
    if (ack > s->sent_high - s->base) {
        return false;
    }
    if (s->base + ack > s->acked) {
        give_up_to(s, s->base + ack);
        s->replays = 0;
        s->probe_wait_ns = PROBE_FIRST_NS;
        s->probe_ns = link_now_ns(link) + s->probe_wait_ns;
    }
    return true;
}

void sender_again(rp_link *link, uint64_t generation) {
    sender *s = &link->out;
    if (generation == s->generation || generation == ANY_GENERATION) {
        s->generation++;
        s->sent = s->acked;
        link->probe_now = s->replays++ < EAGER_REPLAYS; /* is it complete this time? */
        s->probe_wait_ns = PROBE_FIRST_NS;
        s->probe_ns = link_now_ns(link) + s->probe_wait_ns;
    }
}

/* The parts' references, the header written anew with the latest ack and credit. */
static bool make_frames(rp_link *link, rp_Frame *header, zmq_msg_t *parts, uint32_t part_count,
                        zmq_msg_t *frames, size_t *bytes) {
    uint8_t written[RP_FRAME_BYTES_MAX];
    header->session = link->session;
    header->peer = link->peer_session;
    header->ack = link->in.expected - 1;
    header->credit = receiver_credit(link);
    if (link->run.id) {
        header->run_id = link->run.id;
        header->term = link->run.term;
    }
    if (rp_frame_write(header, written, bytes) != RP_OK ||
        zmq_msg_init_size(&frames[0], *bytes) != 0) {
        return false;
    }
    memcpy(zmq_msg_data(&frames[0]), written, *bytes);
    for (uint32_t i = 0; i < part_count; i++) {
        (void)zmq_msg_init(&frames[i + 1]);
        (void)zmq_msg_copy(&frames[i + 1], &parts[i]);
        *bytes += zmq_msg_size(&parts[i]);
    }
    return true;
}

sent post(rp_link *link, rp_Frame *header, zmq_msg_t *parts, uint32_t part_count) {
    zmq_msg_t frames[FRAMES_MAX];
    size_t bytes;
    if (link->bound && link->route_bytes == 0) {
        return GONE;
    }
    if (emulate_full(link) || !make_frames(link, header, parts, part_count, frames, &bytes)) {
        return FULL;
    }
    if (link->emulate.on) {
        emulate_park(link, frames, part_count + 1, bytes);
    } else {
        sent result = socket_send(link, frames, part_count + 1);
        if (result != SENT) {
            close_frames(frames, part_count + 1);
            return result;
        }
    }
    link->stats.bytes_sent += bytes;
    link->in.ack_due = link->in.ack_overdue = false;
    return SENT;
}

sent post_bare(rp_link *link, rp_Frame *header) {
    header->version = link->wire;
    header->payload_hash = 0;
    return post(link, header, NULL, 0);
}

void sender_transmit(rp_link *link) {
    sender *s = &link->out;
    while (link->peer_session && s->sent < s->next) {
        outgoing *o = slot(s, s->sent);
        o->header.seq = s->sent - s->base + 1;
        if (post(link, &o->header, o->part, o->part_count) != SENT) {
            return;
        }
        if (s->acked == s->sent_high) {
            s->probe_ns = link_now_ns(link) + s->probe_wait_ns; /* nothing was on its way */
        }
        if (o->transmitted) {
            link->stats.resent++;
        } else {
            o->transmitted = true;
            link->stats.parcels_sent++;
        }
        s->sent++;
        s->sent_high = s->sent > s->sent_high ? s->sent : s->sent_high;
    }
}

bool sender_ready(const rp_link *link) {
    bool known = link->peer_session && (!link->bound || link->route_bytes);
    bool room = !link->want_write && !emulate_full(link);
    return room && (link->probe_now || (known && link->out.sent < link->out.next));
}

/* Without credit we wait, too: the frame that brought it may be lost, and nothing else would come.
 */
bool sender_waits(const rp_link *link) {
    const sender *s = &link->out;
    bool known = link->peer_session != 0;
    return s->acked < s->sent_high || (known && s->data_count >= s->credit) ||
           (!known && !link->bound);
}

void sender_credit(rp_link *link, uint64_t credit) {
    sender *s = &link->out;
    if (credit > s->credit) {
        s->credit = credit;
        s->probe_wait_ns = PROBE_FIRST_NS;
        s->probe_ns = link_now_ns(link) + s->probe_wait_ns;
    }
}

/* "My last number is seq": after a silence, and at once on a new connection. */
void sender_probe(rp_link *link) {
    sender *s = &link->out;
    int64_t now = link_now_ns(link);
    if (!link->probe_now && (!sender_waits(link) || now < s->probe_ns)) {
        return;
    }
    rp_Frame header = {.which_body = RP_KIND_PROBE,
                       .seq = s->sent - s->base,
                       .body.probe = {.generation = s->generation}};
    if (post_bare(link, &header) != FULL) {
        link->probe_now = false; /* without a peer to send to, its next connection asks again */
    }
    s->probe_ns = now + s->probe_wait_ns;
    s->probe_wait_ns = 2 * s->probe_wait_ns < PROBE_LAST_NS ? 2 * s->probe_wait_ns : PROBE_LAST_NS;
}

bool rp_link_can_send(const rp_link *link) {
    const sender *s = &link->out;
    return s->data_held < link->send_window && s->data_count < s->credit;
}

static bool has_room(const rp_link *link, bool data) {
    const sender *s = &link->out;
    uint64_t held = s->next - s->finished;
    return data ? rp_link_can_send(link) : held - s->data_held < RP_LINK_CONTROL_MAX;
}

/* On a failure nothing is taken. */
static rp_err take_parts(rp_link *link, outgoing *o, const rp_part *parts, uint32_t count,
                         bool copy) {
    for (uint32_t i = 0; i < count; i++) {
        int rc;
        if (copy || link->copies || parts[i].bytes == 0) {
            rc = zmq_msg_init_size(&o->part[i], parts[i].bytes);
            if (rc == 0 && parts[i].bytes) {
                memcpy(zmq_msg_data(&o->part[i]), parts[i].data, parts[i].bytes);
            }
        } else {
            /* ZeroMQ only reads it; its signature has no const. */
            union {
                const void *from;
                void *to;
            } data = {.from = parts[i].data};
            atomic_fetch_add_explicit(&o->lent, 1, memory_order_acq_rel);
            rc = zmq_msg_init_data(&o->part[i], data.to, parts[i].bytes, let_go, &o->lent);
            if (rc != 0) {
                atomic_fetch_sub_explicit(&o->lent, 1, memory_order_relaxed);
            }
        }
        if (rc != 0) {
            drop_parts(o);
            return rp_fail(RP_ERR_MEMORY, "link %s: no memory for a part of %zu bytes", link->name,
                           parts[i].bytes);
        }
        o->part_count++;
    }
    return RP_OK;
}

rp_err rp_link_send(rp_link *link, rp_Frame *header, const rp_part *parts, uint32_t part_count,
                    bool copy, void (*done)(void *context), void *context) {
    RP_ASSERT(done || copy || part_count == 0);
    sender *s = &link->out;
    bool data = rp_frame_is_data(header);
    if (!rp_frame_is_numbered(header)) {
        return rp_fail(RP_ERR_FORMAT, "link %s: %s is the link's own", link->name,
                       rp_kind_name(rp_frame_kind(header)));
    }
    for (uint32_t i = 0; i < part_count; i++) {
        if (parts[i].bytes > link->part_bytes_max) {
            return rp_fail(RP_ERR_LIMIT, "link %s: part %u has %zu bytes, at most %zu", link->name,
                           i, parts[i].bytes, link->part_bytes_max);
        }
    }
    if (!has_room(link, data)) {
        return RP_ERR_AGAIN; /* not a fault: not logged */
    }
    header->version = link->wire;
    rp_err err = rp_frame_seal(header, parts, part_count);
    if (err) {
        return err;
    }
    outgoing *o = slot(s, s->next);
    o->header = *header;
    o->part_count = 0;
    o->data = data;
    o->transmitted = o->finished = false;
    o->done = done;
    o->context = context;
    err = take_parts(link, o, parts, part_count, copy);
    if (err) {
        return err;
    }
    s->next++;
    s->data_held += data ? 1 : 0;
    s->data_count += data ? 1 : 0;
    sender_transmit(link);
    return RP_OK;
}
