/* What comes: every frame is checked, every number accepted once and in order, everything else is
 * dropped with a count. */
#include <string.h>

#include "base/log.h"
#include "link/inside.h"

enum { DRAIN_MAX = 64 }; /* messages a call, so that a flood does not hold the loop */

rp_err receiver_open(rp_link *link) {
    receiver *r = &link->in;
    r->capacity = link->window + RP_LINK_CONTROL_MAX;
    r->expected = 1;
    rp_err err = RP_ARENA_NEW(&link->arena, r->capacity, &r->pool);
    for (uint32_t i = 0; err == RP_OK && i < r->capacity; i++) {
        r->pool[i].next = r->free;
        r->free = &r->pool[i];
    }
    return err;
}

void receiver_close(rp_link *link) {
    receiver *r = &link->in;
    for (uint32_t i = 0; r->pool && i < r->capacity; i++) {
        if (r->pool[i].used) {
            close_frames(r->pool[i].part, r->pool[i].message.part_count);
        }
    }
}

/* What was accepted from the old peer stays: its parcels still occupy the window. */
void receiver_reset(rp_link *link) {
    receiver *r = &link->in;
    r->expected = 1;
    r->data_count = 0;
    r->asked_again = 0;
    r->starved = false;
}

uint64_t receiver_credit(const rp_link *link) {
    return link->in.data_count + link->window - link->in.data_held;
}

static void send_ack(rp_link *link, bool again, uint64_t generation) {
    rp_Frame header = {.which_body = RP_KIND_ACK_ONLY,
                       .body.ack_only = {.again = again, .generation = generation}};
    link->in.ack_due = true; /* stays when it can not be sent now */
    (void)post_bare(link, &header);
}

void receiver_ack(rp_link *link) {
    if (link->in.ack_due && link->peer_session) {
        send_ack(link, false, 0);
    }
}

/* The next number is missing. Said once for each; if that or the repetition is lost, the sender's
 * probe makes us say it again. Later messages of the same gap say nothing new. */
static void ask_again(rp_link *link, uint64_t generation) {
    link->in.asked_again = link->in.expected;
    send_ack(link, true, generation);
}

static void retire(rp_link *link, uint64_t session) {
    link->retired[link->retired_count++ % RETIRED_MAX] = session;
}

static bool is_retired(const rp_link *link, uint64_t session) {
    uint32_t count = link->retired_count < RETIRED_MAX ? link->retired_count : RETIRED_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (link->retired[i] == session) {
            return true;
        }
    }
    return false;
}

/* A bound link serves one peer: another one with a key on the list waits until this one is silent
 * or its connection is gone. */
static bool is_served(rp_link *link) {
    if (!link->bound || link_now_ns(link) - link->stats.last_heard_ns > PEER_SILENT_NS) {
        return false;
    }
    rp_Frame header = {.which_body = RP_KIND_PING, .version = link->wire};
    uint8_t written[RP_FRAME_BYTES_MAX];
    size_t bytes;
    zmq_msg_t frame;
    header.session = link->session;
    header.peer = link->peer_session;
    if (rp_frame_write(&header, written, &bytes) != RP_OK ||
        zmq_msg_init_size(&frame, bytes) != 0) {
        return true;
    }
    memcpy(zmq_msg_data(&frame), written, bytes);
    sent result = socket_send(link, &frame, 1);
    if (result != SENT) {
        (void)zmq_msg_close(&frame);
    }
    return result != GONE;
}

/* Whether frames of this session are for us to read; adopts a new peer. */
static bool know_session(rp_link *link, uint64_t session) {
    if (session == link->peer_session && session != 0) {
        return true;
    }
    if (session == 0 || is_retired(link, session)) {
        return false;
    }
    if (link->peer_session) {
        if (is_served(link)) {
            if (link->warned_session != session) {
                rp_log_warn("link %s: another peer with a trusted key knocks; one at a time",
                            link->name);
                link->warned_session = session;
            }
            return false;
        }
        rp_log_info("link %s: the peer restarted", link->name);
        retire(link, link->peer_session);
        link->stats.peer_restarted = true;
        sender_reset(link);
        receiver_reset(link);
    }
    link->peer_session = link->stats.peer_session = session;
    return true;
}

/* A peer that came over a new connection lost what was in the old one. */
static void know_route(rp_link *link, const uint8_t *route, size_t route_bytes) {
    if (link->bound &&
        (link->route_bytes != route_bytes || memcmp(link->route, route, route_bytes) != 0)) {
        memcpy(link->route, route, route_bytes);
        link->route_bytes = route_bytes;
        link->probe_now = true;
    }
}

static void take_unnumbered(rp_link *link, const rp_Frame *header) {
    receiver *r = &link->in;
    const rp_kind kind = rp_frame_kind(header);
    const bool for_us = header->peer == link->session;
    if (kind == RP_KIND_ACK_ONLY && header->body.ack_only.again && for_us) {
        sender_again(link, header->body.ack_only.generation);
    } else if (kind == RP_KIND_PROBE) {
        /* A pool that is used up is no loss: the repetition would be dropped, too. */
        if (for_us && header->seq >= r->expected && !r->starved) {
            ask_again(link, header->body.probe.generation);
        } else {
            send_ack(link, false, 0);
        }
    } else if (kind == RP_KIND_PING) {
        rp_Frame pong = {.which_body = RP_KIND_PONG,
                         .body.pong = {.time_ns = header->body.ping.time_ns}};
        (void)post_bare(link, &pong);
    } else if (kind == RP_KIND_PONG && header->body.pong.time_ns > 0) {
        int64_t since = link_now_ns(link) - header->body.pong.time_ns;
        link->stats.round_trip_ns = since > 0 ? since : 1;
        link->stats.round_trips++;
    }
}

/* ZeroMQ decrypts small frames in its receive buffer, wherever they lie there; our callers read
 * floats and doubles. */
static void take_aligned(zmq_msg_t *to, zmq_msg_t *from) {
    size_t bytes = zmq_msg_size(from);
    if ((uintptr_t)zmq_msg_data(from) % sizeof(double) != 0 && zmq_msg_init_size(to, bytes) == 0) {
        memcpy(zmq_msg_data(to), zmq_msg_data(from), bytes);
        return;
    }
    (void)zmq_msg_init(to);
    (void)zmq_msg_move(to, from);
}

/* Into the list that rp_link_recv() takes from. */
static void append(rp_link *link, const rp_Frame *header, zmq_msg_t *parts, uint32_t part_count) {
    receiver *r = &link->in;
    incoming *in = r->free;
    r->free = in->next;
    in->next = NULL;
    in->used = true;
    in->data = rp_frame_is_data(header);
    in->message.frame = *header;
    in->message.part_count = part_count;
    for (uint32_t i = 0; i < part_count; i++) {
        take_aligned(&in->part[i], &parts[i]);
        in->message.part[i] =
            rp_frame_part(header, i, zmq_msg_data(&in->part[i]), zmq_msg_size(&in->part[i]));
    }
    if (r->last) {
        r->last->next = in;
    } else {
        r->first = in;
    }
    r->last = in;
    r->news = true;
    r->data_held += in->data ? 1 : 0;
}

/* The next number in order. The parts that are taken are left empty. */
static void accept_next(rp_link *link, const rp_Frame *header, zmq_msg_t *parts,
                        uint32_t part_count) {
    receiver *r = &link->in;
    rp_part views[RP_PARTS_MAX];
    bool data = rp_frame_is_data(header);
    for (uint32_t i = 0; i < part_count; i++) {
        views[i] = (rp_part){.data = zmq_msg_data(&parts[i]), .bytes = zmq_msg_size(&parts[i])};
    }
    if ((data && r->data_count == receiver_credit(link)) ||
        rp_frame_check_parts(header, views, part_count) != RP_OK) {
        link->stats.refused++;
        return;
    }
    if (!r->free) {
        r->starved = true;
        return;
    }
    r->expected++;
    r->data_count += data ? 1 : 0;
    const bool begins = rp_frame_kind(header) == RP_KIND_HELLO; /* the next host, of its own run */
    if (link->run.id && !rp_frame_is_of_run(header, link->run) && !begins) {
        link->stats.refused++; /* acked all the same, or the stream would end here */
        return;
    }
    link->stats.parcels_received++;
    append(link, header, parts, part_count);
}

static void take_numbered(rp_link *link, const rp_Frame *header, zmq_msg_t *parts,
                          uint32_t part_count) {
    receiver *r = &link->in;
    r->ack_due = true;
    if (header->peer != link->session) {
        return; /* meant for the one before us: our ack tells its sender */
    }
    if (header->seq < r->expected) {
        link->stats.duplicates++;
    } else if (header->seq == r->expected) {
        accept_next(link, header, parts, part_count);
    } else if (r->asked_again != r->expected && !r->starved) {
        ask_again(link, ANY_GENERATION);
    }
}

static void take_message(rp_link *link, zmq_msg_t *frames, uint32_t count, const uint8_t *route,
                         size_t route_bytes) {
    rp_Frame header;
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += zmq_msg_size(&frames[i]);
    }
    link->stats.bytes_received += bytes;
    if (rp_frame_decode(zmq_msg_data(&frames[0]), zmq_msg_size(&frames[0]), link->part_bytes_max,
                        &header) != RP_OK ||
        header.part_count != count - 1 || (rp_frame_is_numbered(&header) && header.seq == 0)) {
        link->stats.refused++;
        return;
    }
    if (!know_session(link, header.session)) {
        link->stats.refused++;
        return;
    }
    know_route(link, route, route_bytes);
    link->stats.last_heard_ns = link_now_ns(link);
    if (header.peer == link->session) {
        if (!sender_ack(link, header.ack)) {
            link->stats.refused++;
            return;
        }
        sender_credit(link, header.credit);
    }
    if (rp_frame_is_numbered(&header)) {
        take_numbered(link, &header, frames + 1, count - 1);
    } else {
        take_unnumbered(link, &header);
    }
}

void receiver_drain(rp_link *link) {
    zmq_msg_t frames[FRAMES_MAX];
    uint8_t route[ROUTE_BYTES_MAX];
    size_t route_bytes;
    for (uint32_t i = 0; i < DRAIN_MAX; i++) {
        uint32_t count = socket_recv(link, frames, route, &route_bytes);
        if (count == 0) {
            return;
        }
        take_message(link, frames, count, route, route_bytes);
        close_frames(frames, count);
    }
}

rp_err rp_link_recv(rp_link *link, rp_message **out) {
    receiver *r = &link->in;
    *out = NULL;
    if (!r->first) {
        receiver_drain(link);
        sender_finish(link);
    }
    incoming *in = r->first;
    if (!in) {
        return RP_ERR_AGAIN; /* not a fault: not logged */
    }
    r->first = in->next;
    if (!r->first) {
        r->last = NULL;
    }
    *out = &in->message;
    return RP_OK;
}

void rp_link_release(rp_link *link, rp_message **message) {
    receiver *r = &link->in;
    incoming *in = (incoming *)*message;
    *message = NULL;
    if (!in) {
        return;
    }
    RP_ASSERT(in >= r->pool && in < r->pool + r->capacity && in->used);
    close_frames(in->part, in->message.part_count);
    in->used = false;
    in->next = r->free;
    r->free = in;
    if (in->data) {
        r->data_held--;
        r->ack_due = true; /* with the new credit */
    }
    if (r->starved) {
        r->starved = false;
        ask_again(link, ANY_GENERATION);
    }
}
