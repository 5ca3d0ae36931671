/* Incoming packets of a link: identifies the sender, then passes on the message or its acks. */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "link/head.h"
#include "link/link_own.h"

/* Bounds that keep a flood from blocking the loop. */
enum {
    DRAIN_MAX = 64 /* packets a call */,
    DRAINS_MAX = 16 /* calls a round, if the caller takes messages */
};
#define PEER_SILENT_NS (3 * RP_NS_PER_S)

/* A binding end serves one peer. Another peer with an allowed key waits until this one is silent or
 * its connection is gone. A ping after the usual interval finds out. */
static bool is_served(rp_link *link) {
    if (!link->bound || link->peer == 0 ||
        rp_link_now_ns(link) - link->stats.last_heard_ns > PEER_SILENT_NS) {
        return false;
    }
    rp_Frame frame = {.which_body = RP_KIND_PING, .version = link->wire};
    rp_packet packet = {.count = 1, .peer = link->peer};
    rp_link_stamp(link, &frame);
    if (rp_head_write(&frame, &packet.frame[0]) != RP_OK) {
        return true;
    }
    rp_port *port = link->port;
    for (; port->inner; port = port->inner) {
    }
    rp_err err = port->kind->post(port, &packet);
    rp_packet_drop(&packet);
    return err != RP_ERR_PEER;
}

static void meet_peer(rp_link *link, uint64_t session) {
    rp_session_adopt(&link->session, session);
    rp_sender_meet(link->sender);
    rp_sender_reconnected(link->sender); /* the probe tells the peer that we know it */
    rp_receiver_meet(link->receiver);
    link->stats.peer_session = session;
    /* it named our session, so it has heard us */
    link->stats.last_answer_ns = rp_link_now_ns(link);
    link->has_met = link->has_met && !link->bound;
    link->met.bytes_sent = link->stats.bytes_sent;
    link->met.resent = rp_sender_facts_of(link->sender).resent;
    link->met.resets = link->stats.resets;
    link->met.since_ns = rp_link_now_ns(link);
}

/* A sender that does not name our session is new here, or the frame is from an earlier session. The
 * answer names both sessions and nothing else, so that a live sender can repeat its frame with
 * both. */
static void introduce_peer(rp_link *link, uint64_t session, uint64_t from) {
    const rp_Frame frame = {.version = link->wire,
                            .which_body = RP_KIND_ACK_ONLY,
                            .session = link->session.own,
                            .peer = session};
    rp_packet packet = {.count = 1, .peer = from};
    if (rp_head_write(&frame, &packet.frame[0]) == RP_OK) {
        (void)!link->port->kind->post(link->port, &packet);
        rp_packet_drop(&packet);
    }
}

/* A restarted peer leaves its old connection, which is found dead after a while; two peers that are
 * alive at the same time have the same key. */
static void note_twin(rp_link *link, uint64_t session, const rp_packet *packet) {
    const int64_t now = rp_link_now_ns(link);
    if (link->twin.session != session) {
        link->twin.session = session;
        link->twin.since_ns = now;
        link->twin.counted = false;
        rp_log_warn("link %s: another peer with a trusted key tries to connect; only one may",
                    link->name);
    }
    if (!link->twin.counted && link->stats.last_heard_ns - link->twin.since_ns > PEER_SILENT_NS) {
        link->port->kind->address(link->port, packet, link->twin.address);
        link->twin.counted = true;
        link->twin.count++;
    }
}

/* Whether to read frames of this session, which name ours; adopts a new peer. */
static bool know_session(rp_link *link, uint64_t session, const rp_packet *packet) {
    switch (rp_session_classify(&link->session, session)) {
    case RP_SESSION_SAME:
        return true;
    case RP_SESSION_INVALID:
        return false;
    case RP_SESSION_FIRST:
        break;
    case RP_SESSION_OTHER:
        /* A connection carries one session: on the same connection the old peer cannot be alive. */
        if (link->bound && packet->peer != link->peer && is_served(link)) {
            note_twin(link, session, packet);
            return false;
        }
        rp_log_info("link %s: the peer restarted", link->name);
        link->stats.peer_restarted = true;
        break;
    }
    meet_peer(link, session);
    return true;
}

static void take_unnumbered(rp_link *link, const rp_Frame *frame) {
    const rp_kind kind = rp_frame_kind(frame);
    if (kind == RP_KIND_ACK_ONLY && frame->body.ack_only.again) {
        rp_sender_on_again(link->sender, frame->body.ack_only.generation, rp_link_now_ns(link));
    } else if (kind == RP_KIND_PROBE) {
        const bool again = rp_receiver_on_probe(link->receiver, frame->seq);
        rp_link_send_ack(link, again, again ? frame->body.probe.generation : 0);
    } else if (kind == RP_KIND_PING) {
        rp_Frame pong = {
            .which_body = RP_KIND_PONG,
            .body.pong = {.time_ns = frame->body.ping.time_ns, .stall_ns = link->stall_ns}};
        (void)rp_link_post_bare(link, &pong);
    } else if (kind == RP_KIND_PONG && frame->body.pong.time_ns > 0) {
        const int64_t now = rp_link_now_ns(link);
        const int64_t since = now - frame->body.pong.time_ns;
        const int64_t stall = frame->body.pong.stall_ns;
        link->stats.round_trip_ns = since > 0 ? since : 1;
        link->stats.round_trips++;
        link->stats.last_answer_ns = now;
        link->peer_stall_ns = stall > 0 && stall < RP_LINK_STALL_MAX_NS ? stall : 0;
    }
}

/* Whether the frame is the next message, and for the current run. */
static bool take_numbered(rp_link *link, const rp_Frame *frame, rp_buffer **parts,
                          uint32_t part_count) {
    /* A HELLO is kept because the next host begins with it, for its own run. Frames of other runs
     * are still acked; otherwise the stream would stop here. */
    const bool keep = !link->run.id || rp_frame_is_of_run(frame, link->run) ||
                      rp_frame_kind(frame) == RP_KIND_HELLO;
    switch (rp_receiver_offer(link->receiver, frame, parts, part_count, keep)) {
    case RP_RECEIPT_NEXT:
        link->stats.parcels_received += keep ? 1 : 0;
        link->stats.refused += keep ? 0 : 1;
        return keep;
    case RP_RECEIPT_DUPLICATE:
        link->stats.duplicates++;
        return false;
    case RP_RECEIPT_GAP:
        if (rp_receiver_ask_again(link->receiver)) {
            rp_link_send_ack(link, true, RP_SENDER_ANY_GENERATION);
        }
        return false;
    case RP_RECEIPT_DAMAGED:
        link->stats.refused++;
        return false;
    case RP_RECEIPT_NO_ROOM:
        break;
    }
    return false;
}

static void note_address(rp_link *link, const rp_packet *packet) {
    if (link->served_session != link->session.peer) {
        memcpy(link->before, link->served, sizeof link->before);
        link->served_session = link->session.peer;
    }
    link->port->kind->address(link->port, packet, link->served);
}

/* Handles a frame from the peer. Returns whether it brought a message, an ack or credit. */
static bool take_frame(rp_link *link, const rp_Frame *frame, rp_packet *packet) {
    const int64_t now = rp_link_now_ns(link);
    if (link->bound && link->peer != packet->peer) {
        link->peer = packet->peer;
        note_address(link, packet);
        link->stats.resets += link->has_met ? 1 : 0;
        link->has_met = true;
        rp_sender_reconnected(link->sender);
    }
    const uint64_t unacked = rp_sender_facts_of(link->sender).unacked;
    link->stats.last_heard_ns = now;
    if (!rp_sender_on_ack(link->sender, frame->ack, now)) {
        link->stats.refused++;
        return false;
    }
    bool brings = rp_sender_facts_of(link->sender).unacked < unacked;
    if (brings) {
        link->stats.last_answer_ns = now;
    }
    brings |= rp_sender_on_credit(link->sender, frame->credit, now);
    if (rp_frame_is_numbered(frame)) {
        brings |= take_numbered(link, frame, packet->frame + 1, packet->count - 1);
    } else {
        take_unnumbered(link, frame);
    }
    return brings;
}

/* Whether the sender exceeded its limit of useless packets: the packet is then dropped unread and
 * not answered. */
static bool is_flood(rp_link *link, rp_flood *flood, size_t bytes) {
    const int64_t now = rp_link_now_ns(link);
    if (rp_flood_admits(flood, bytes, now)) {
        return false;
    }
    link->stats.flooded++;
    if (rp_flood_is_news(flood, now)) {
        rp_log_warn("link %s: %s sends too many useless packets: %" PRIu64 " were dropped so far",
                    link->name, flood == link->flood ? "its peer" : "another peer", flood->dropped);
    }
    return true;
}

static void take_packet(rp_link *link, rp_packet *packet) {
    rp_Frame frame;
    const size_t bytes = rp_packet_bytes(packet);
    const bool is_other = link->bound && packet->peer != link->peer && link->peer != 0;
    rp_flood *flood = &link->flood[is_other ? 1 : 0];
    link->stats.bytes_received += bytes;
    if (is_flood(link, flood, bytes)) {
        return;
    }
    if (rp_head_read(packet->frame[0], link->part_bytes_max, &frame) != RP_OK ||
        frame.part_count != packet->count - 1 || (rp_frame_is_numbered(&frame) && frame.seq == 0) ||
        rp_session_classify(&link->session, frame.session) == RP_SESSION_INVALID) {
        link->stats.refused++;
    } else if (rp_frame_kind(&frame) == RP_KIND_ASK) {
        link->stats.refused += rp_link_take_question(link, &frame, packet->peer) ? 0 : 1;
    } else if (frame.peer != link->session.own) {
        introduce_peer(link, frame.session, packet->peer);
        link->stats.refused += link->session.peer && link->session.peer != frame.session ? 1 : 0;
    } else if (know_session(link, frame.session, packet)) {
        if (take_frame(link, &frame, packet)) {
            rp_flood_pay(flood, bytes);
        }
    } else {
        link->stats.refused++;
    }
}

void rp_link_drain_port(rp_link *link) {
    rp_packet packet;
    for (uint32_t i = 0; i < DRAIN_MAX; i++) {
        if (link->port->kind->take(link->port, &packet) != RP_OK) {
            return;
        }
        take_packet(link, &packet);
        rp_packet_drop(&packet);
    }
}

rp_err rp_link_recv(rp_link *link, rp_message **out) {
    rp_err err = rp_receiver_take(link->receiver, out);
    if (err == RP_ERR_AGAIN && link->drained < DRAINS_MAX) {
        link->drained++;
        rp_link_drain_port(link);
        rp_sender_call_done(link->sender);
        err = rp_receiver_take(link->receiver, out);
    }
    return err;
}

void rp_link_release(rp_link *link, rp_message **message) {
    if (rp_receiver_release(link->receiver, message)) {
        rp_link_send_ack(link, true, RP_SENDER_ANY_GENERATION);
    }
}
