/* Outgoing packets of a link: messages, acks, probes, pings. */
#include "link/head.h"
#include "link/link_own.h"

void rp_link_stamp(const rp_link *link, rp_Frame *frame) {
    frame->session = link->session.own;
    frame->peer = link->session.peer;
    frame->ack = rp_receiver_ack(link->receiver);
    frame->credit = rp_receiver_credit(link->receiver);
    if (link->run.id) {
        frame->run_id = link->run.id;
        frame->term = link->run.term;
    }
}

/* errors  AGAIN; PEER: there is no known peer to send to */
static rp_err post_frame(rp_link *link, rp_Frame *frame, rp_buffer *const *parts,
                         uint32_t part_count) {
    rp_packet packet = {.count = 1 + part_count, .peer = link->peer};
    if (link->bound && link->peer == 0) {
        return RP_ERR_PEER;
    }
    rp_link_stamp(link, frame);
    if (rp_head_write(frame, &packet.frame[0]) != RP_OK) {
        return RP_ERR_AGAIN;
    }
    for (uint32_t i = 0; i < part_count; i++) {
        packet.frame[1 + i] = parts[i];
    }
    rp_err err = link->port->kind->post(link->port, &packet);
    if (err == RP_OK) {
        link->stats.bytes_sent += rp_packet_bytes(&packet);
        rp_receiver_acked(link->receiver);
    } else if (err == RP_ERR_PEER) {
        link->peer = 0;
    } else {
        link->blocked = true;
    }
    rp_buffer_drop(&packet.frame[0]);
    return err;
}

rp_err rp_link_post_bare(rp_link *link, rp_Frame *frame) {
    frame->version = link->wire;
    frame->payload_hash = 0;
    return post_frame(link, frame, NULL, 0);
}

void rp_link_send_ack(rp_link *link, bool again, uint64_t generation) {
    rp_Frame frame = {.which_body = RP_KIND_ACK_ONLY,
                      .body.ack_only = {.again = again, .generation = generation}};
    rp_receiver_owe_ack(link->receiver);
    (void)rp_link_post_bare(link, &frame);
}

void rp_link_send_due_ack(rp_link *link) {
    if (rp_receiver_owes_ack(link->receiver) && link->session.peer) {
        rp_link_send_ack(link, false, 0);
    }
}

void rp_link_transmit(rp_link *link) {
    rp_sender_message message;
    while (rp_sender_next(link->sender, &message)) {
        if (post_frame(link, message.frame, message.part, message.part_count) != RP_OK) {
            return;
        }
        rp_sender_sent(link->sender, rp_link_now_ns(link));
    }
}

void rp_link_send_due_probe(rp_link *link) {
    rp_sender_probe probe;
    const int64_t now = rp_link_now_ns(link);
    if (rp_sender_probe_due(link->sender, now, &probe)) {
        rp_Frame frame = {.which_body = RP_KIND_PROBE,
                          .seq = probe.seq,
                          .body.probe = {.generation = probe.generation}};
        /* without a peer, its next connection probes again */
        rp_sender_probed(link->sender, rp_link_post_bare(link, &frame) != RP_ERR_AGAIN, now);
    }
}

rp_err rp_link_ping(rp_link *link) {
    rp_Frame frame = {.which_body = RP_KIND_PING, .body.ping = {.time_ns = rp_link_now_ns(link)}};
    return rp_link_post_bare(link, &frame) == RP_OK ? RP_OK : RP_ERR_AGAIN;
}

bool rp_link_can_send(const rp_link *link) {
    return rp_sender_has_room(link->sender, true);
}

rp_err rp_link_send(rp_link *link, rp_Frame *frame, const rp_part *parts, uint32_t part_count,
                    bool copy, void (*done)(void *context), void *context) {
    RP_ASSERT(done || copy || part_count == 0);
    rp_err err;
    if (!rp_frame_is_numbered(frame)) {
        return rp_fail(RP_ERR_FORMAT, "link %s: only the link itself sends messages of kind %s",
                       link->name, rp_kind_name(rp_frame_kind(frame)));
    }
    for (uint32_t i = 0; i < part_count; i++) {
        if (parts[i].bytes > link->part_bytes_max) {
            return rp_fail(RP_ERR_LIMIT, "link %s: part %u has %zu bytes, at most %zu", link->name,
                           i, parts[i].bytes, link->part_bytes_max);
        }
    }
    if (!rp_sender_has_room(link->sender, rp_frame_is_data(frame))) {
        return RP_ERR_AGAIN; /* not a fault: not logged */
    }
    frame->version = link->wire;
    RP_TRY(rp_frame_seal(frame, parts, part_count));
    RP_TRY(rp_sender_put(link->sender, frame, parts, part_count, copy, done, context));
    rp_link_transmit(link);
fail:
    return err;
}
