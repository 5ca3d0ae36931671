/* One round of a link, and the deadline of the next. */
#include "base/log.h"
#include "link/link_own.h"
#include "transport/emulate.h"

#define STEP_NS (1 * RP_NS_PER_S)
#define RECENT_NS (300 * RP_NS_PER_S)
/* A transport does not report when it releases memory, so poll while waiting for it. */
#define LENT_POLL_NS (2 * RP_NS_PER_MS)

/* Measures the longest recent time (about RECENT_NS) for which this end did not process the link.
 * The peer is told, because it may miss an answer meanwhile. */
static void measure_stall(rp_link *link, int64_t now) {
    const int64_t pause = now - link->last_step_ns;
    if (pause >= RP_LINK_STALL_MAX_NS) {
        return;
    }
    if (pause >= link->stall_ns || now - link->stall_since_ns > RECENT_NS) {
        link->stall_ns = pause;
        link->stall_since_ns = now;
    }
}

/* Without an emulated rate the only evidence is that something was un-acked. */
static void measure_busy(rp_link *link, int64_t now) {
    const bool has_rate =
        link->line && rp_link_profile_rate_mbit(rp_emulate_profile(link->line)) > 0;
    if (!has_rate && rp_sender_facts_of(link->sender).on_the_way) {
        link->stats.busy_s += (double)(now - link->last_step_ns) / (double)RP_NS_PER_S;
    }
    link->last_step_ns = now;
}

static void step_port(rp_link *link) {
    rp_port_event event;
    while (link->port->kind->step(link->port, &event)) {
        if (link->bound) {
            continue; /* a new connection is recognised by the number in its first packet */
        }
        if (event.kind == RP_PORT_CONNECTED) {
            link->stats.auth_failed = false;
            link->stats.resets += link->has_met ? 1 : 0;
            link->has_met = true;
            link->absences = 0;
            link->broken_off = false;
            rp_sender_reconnected(link->sender);
        } else if (event.kind == RP_PORT_ABSENT) {
            link->absences++;
        } else if (event.kind == RP_PORT_BROKEN_OFF) {
            link->broken_off = true;
        } else if (event.kind == RP_PORT_REFUSED && link->has_met) {
            /* The keys are right: a peer that exits, or a damaged line, also ends handshakes. */
            rp_log_info("link %s: %s: a connection ended during its handshake", link->name,
                        link->port->endpoint);
        } else if (event.kind == RP_PORT_REFUSED) {
            if (!link->stats.auth_failed) {
                rp_log_error("link %s: %s refuses this end: %s", link->name, link->port->endpoint,
                             event.why);
            }
            link->stats.auth_failed = true;
        }
    }
}

rp_err rp_link_step(rp_link *link) {
    link->blocked = false;
    link->drained = 0;
    measure_stall(link, rp_link_now_ns(link));
    measure_busy(link, rp_link_now_ns(link));
    step_port(link);
    rp_link_drain_port(link);
    rp_link_transmit(link);
    rp_sender_call_done(link->sender);
    rp_link_send_due_probe(link);
    /* No message carried the ack in the whole round after it fell due. */
    if (rp_receiver_end_round(link->receiver)) {
        rp_link_send_due_ack(link);
    }
    return RP_OK;
}

void rp_link_before_wait(rp_link *link) {
    rp_link_send_due_ack(link); /* no message can carry it: the caller is about to sleep */
    rp_receiver_begin_wait(link->receiver);
}

static int64_t earlier_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

int64_t rp_link_deadline_ns(const rp_link *link, int64_t now) {
    const bool can_post = !link->blocked && (!link->bound || link->peer);
    if (rp_receiver_has_news(link->receiver) || (can_post && rp_sender_is_ready(link->sender))) {
        return now;
    }
    int64_t at = earlier_of(now + STEP_NS, link->port->kind->deadline_ns(link->port, now));
    at = earlier_of(at, rp_sender_deadline_ns(link->sender));
    return rp_sender_is_lending(link->sender) ? earlier_of(at, now + LENT_POLL_NS) : at;
}

uint32_t rp_link_handles(const rp_link *link, rp_handle *out) {
    return link->port->kind->handles(link->port, out);
}
