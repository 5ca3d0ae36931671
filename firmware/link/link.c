/* Ties a sender, a receiver and a session to a port of a transport. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/log.h"
#include "link/head.h"
#include "link/link_own.h"
#include "link/sender.h"
#include "link/session.h"
#include "transport/emulate.h"

enum {
    NAME_BYTES = RP_PORT_NAME_BYTES,
    QUEUE_SLACK = 64, /* room for acks and control in queues that are sized by the window */
    DRAIN_MAX = 64,   /* packets a call, so that a flood does not hold the loop */
    SLOW_MAX_S = 3600
};

#define PEER_SILENT_NS (3 * RP_NS_PER_S)
#define STEP_NS (1 * RP_NS_PER_S)
/* A transport does not tell when it lets memory go: look again this often while we wait for it. */
#define LENT_POLL_NS (2 * RP_NS_PER_MS)
#define LET_GO_MAX_NS (10 * RP_NS_PER_S)

struct rp_link {
    rp_links *links;
    rp_link *next;
    rp_arena arena; /* holds this struct and its pools; freed at close */
    char name[NAME_BYTES];
    uint32_t number; /* of its links, in the order in which they were opened */
    bool bound;
    size_t part_bytes_max;
    rp_run_identity run;
    uint32_t wire;

    rp_port *port;
    rp_port *line; /* the same when a line stands in front, else NULL */
    uint64_t peer; /* bound: the connection that we answer, 0 = none yet */
    bool blocked;  /* the port had no room in this round */
    rp_session session;
    uint64_t warned_session;

    rp_sender *sender;
    rp_receiver *receiver;
    rp_link_stats stats;
    int64_t last_step_ns;
};

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err check_options(const rp_link_options *options) {
    const char *name = options->name ? options->name : "without a name";
    if (!options->name || strlen(options->name) >= NAME_BYTES) {
        return rp_fail(RP_ERR_USAGE, "link %.60s: a name of 1 to %d characters is needed", name,
                       NAME_BYTES - 1);
    }
    if (!options->bind == !options->connect) {
        return rp_fail(RP_ERR_USAGE, "link %s: either binds or connects", name);
    }
    if (options->window < 1 || options->window > RP_LINK_WINDOW_MAX || options->send_window < 1 ||
        options->send_window > RP_LINK_WINDOW_MAX) {
        return rp_fail(RP_ERR_USAGE, "link %s: windows %u and %u: 1 to %d", name, options->window,
                       options->send_window, RP_LINK_WINDOW_MAX);
    }
    return RP_OK;
}

/* Two lives of a process must differ, whatever their seed; two of a simulation by their stream. */
static rp_err choose_session(rp_link *link) {
    uint64_t number = 0;
    rp_rng *stream = link->links->sessions;
    while (number == 0) {
        if (stream) {
            number = (uint64_t)rp_rng_u32(stream) << 32;
            number |= rp_rng_u32(stream);
            continue;
        }
        ssize_t n = getrandom(&number, sizeof number, 0);
        if (n != (ssize_t)sizeof number) {
            if (n < 0 && errno != EINTR) {
                return rp_fail(RP_ERR_IO, "link %s: getrandom: %s", link->name, strerror(errno));
            }
            number = 0;
        }
    }
    link->session.own = number;
    return RP_OK;
}

static rp_err open_classes(rp_link *link, const rp_link_options *options) {
    const rp_sender_options sender = {options->send_window, RP_LINK_CONTROL_MAX, !link->bound};
    const rp_receiver_options receiver = {options->window, RP_LINK_CONTROL_MAX};
    rp_err err = rp_sender_new(&link->arena, &sender, link->last_step_ns, &link->sender);
    return err ? err : rp_receiver_new(&link->arena, &receiver, &link->receiver);
}

static rp_err open_port(rp_link *link, const rp_link_options *options) {
    const uint32_t window =
        options->window > options->send_window ? options->window : options->send_window;
    const rp_port_options port = {.name = options->name,
                                  .bind = options->bind,
                                  .connect = options->connect,
                                  .peer_public = options->peer_public,
                                  .queue = window + QUEUE_SLACK,
                                  .frame_bytes_max = options->part_bytes_max > RP_HEAD_BYTES_MAX
                                                         ? options->part_bytes_max
                                                         : RP_HEAD_BYTES_MAX};
    return rp_port_open(link->links->transport, &port, &link->port);
}

rp_err rp_link_open(rp_links *links, const rp_link_options *options, rp_link **out) {
    rp_err err;
    rp_arena arena;
    rp_link *link = NULL;
    *out = NULL;
    rp_arena_init(&arena, "link", 0);
    RP_TRY(check_options(options));
    RP_TRY(RP_ARENA_NEW(&arena, 1, &link));
    link->arena = arena;
    link->links = links;
    link->number = links->opened++;
    snprintf(link->name, sizeof link->name, "%s", options->name);
    link->bound = options->bind != NULL;
    link->part_bytes_max = options->part_bytes_max;
    link->run = options->run;
    link->wire = options->wire ? options->wire : RP_WIRE_MAX;
    link->last_step_ns = rp_clock_now_ns(links->clock);
    link->next = links->first;
    links->first = link;
    RP_TRY(choose_session(link));
    RP_TRY(open_classes(link, options));
    RP_TRY(open_port(link, options));
    RP_TRY(rp_link_emulate(link, &options->emulate));
    *out = link;
    return RP_OK;
fail:
    if (link) {
        rp_link_close(&link);
    } else {
        rp_arena_finish(&arena);
    }
    return err;
}

static void remove_from_list(rp_link *link) {
    for (rp_link **at = &link->links->first; *at; at = &(*at)->next) {
        if (*at == link) {
            *at = link->next;
            return;
        }
    }
}

/* A closed port lets go within moments. False: it keeps memory of ours. */
static bool take_memory_back(rp_link *link) {
    const struct timespec nap = {.tv_nsec = 50000};
    int64_t waited_ns = 0;
    if (!link->sender) {
        return true;
    }
    rp_sender_give_up(link->sender);
    rp_sender_call_done(link->sender);
    for (; rp_sender_is_lending(link->sender) && waited_ns < LET_GO_MAX_NS;
         waited_ns += nap.tv_nsec) {
        (void)nanosleep(&nap, NULL);
        rp_sender_call_done(link->sender);
    }
    return !rp_sender_is_lending(link->sender);
}

void rp_link_close(rp_link **link_taken) {
    rp_link *link = *link_taken;
    *link_taken = NULL;
    if (!link) {
        return;
    }
    remove_from_list(link);
    rp_port_close(&link->port);
    rp_receiver_drop_all(link->receiver);
    if (!take_memory_back(link)) {
        rp_log_error("link %s: the transport keeps memory of messages; it is never given back",
                     link->name);
        return; /* nor is the link's own, in which that memory is counted */
    }
    rp_arena arena = link->arena; /* the link itself lies in it */
    rp_arena_finish(&arena);
}

rp_err rp_link_allow(rp_link *link, const char *public_text) {
    return rp_port_allow(link->port, public_text);
}

void rp_link_set_run(rp_link *link, rp_run_identity run) {
    link->run = run;
}

void rp_link_set_wire(rp_link *link, uint32_t version) {
    link->wire = version;
}

rp_err rp_link_emulate(rp_link *link, const rp_link_profile *profile) {
    char stream[NAME_BYTES + 32];
    snprintf(stream, sizeof stream, "link/%s/%u", link->name, link->number);
    const rp_rng rng = rp_rng_named(link->links->seed, stream);
    if (link->line) {
        rp_emulate_set(link->line, profile, rng);
        return RP_OK;
    }
    if (!rp_link_profile_has_line(profile)) {
        return RP_OK;
    }
    rp_err err = rp_emulate_wrap(&link->port, profile, rng, NULL);
    if (err == RP_OK) {
        link->line = link->port;
    }
    return err;
}

const char *rp_link_endpoint(const rp_link *link) {
    return link->port->endpoint;
}

/* ---- sending --------------------------------------------------------------------------------- */

static int64_t now_of(const rp_link *link) {
    return rp_clock_now_ns(link->links->clock);
}

/* What the link owns in every frame: the latest ack and credit, the sessions, the run. */
static void stamp(const rp_link *link, rp_Frame *frame) {
    frame->session = link->session.own;
    frame->peer = link->session.peer;
    frame->ack = rp_receiver_ack(link->receiver);
    frame->credit = rp_receiver_credit(link->receiver);
    if (link->run.id) {
        frame->run_id = link->run.id;
        frame->term = link->run.term;
    }
}

/* errors  AGAIN; PEER: nobody known to send to */
static rp_err post_frame(rp_link *link, rp_Frame *frame, rp_buffer *const *parts,
                         uint32_t part_count) {
    rp_packet packet = {.count = 1 + part_count, .peer = link->peer};
    if (link->bound && link->peer == 0) {
        return RP_ERR_PEER;
    }
    stamp(link, frame);
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

/* A frame of the link's own kinds. */
static rp_err post_bare(rp_link *link, rp_Frame *frame) {
    frame->version = link->wire;
    frame->payload_hash = 0;
    return post_frame(link, frame, NULL, 0);
}

/* An ack that can not be sent now stays due; an "again" then waits for the peer's probe. */
static void send_ack(rp_link *link, bool again, uint64_t generation) {
    rp_Frame frame = {.which_body = RP_KIND_ACK_ONLY,
                      .body.ack_only = {.again = again, .generation = generation}};
    rp_receiver_owe_ack(link->receiver);
    (void)post_bare(link, &frame);
}

static void send_due_ack(rp_link *link) {
    if (rp_receiver_owes_ack(link->receiver) && link->session.peer) {
        send_ack(link, false, 0);
    }
}

static void transmit_messages(rp_link *link) {
    rp_sender_message message;
    while (rp_sender_next(link->sender, &message)) {
        if (post_frame(link, message.frame, message.part, message.part_count) != RP_OK) {
            return;
        }
        rp_sender_sent(link->sender, now_of(link));
    }
}

static void send_due_probe(rp_link *link) {
    rp_sender_probe probe;
    const int64_t now = now_of(link);
    if (rp_sender_probe_due(link->sender, now, &probe)) {
        rp_Frame frame = {.which_body = RP_KIND_PROBE,
                          .seq = probe.seq,
                          .body.probe = {.generation = probe.generation}};
        /* without a peer to send to, its next connection asks again */
        rp_sender_probed(link->sender, post_bare(link, &frame) != RP_ERR_AGAIN, now);
    }
}

rp_err rp_link_ping(rp_link *link) {
    rp_Frame frame = {.which_body = RP_KIND_PING, .body.ping = {.time_ns = now_of(link)}};
    return post_bare(link, &frame) == RP_OK ? RP_OK : RP_ERR_AGAIN;
}

bool rp_link_can_send(const rp_link *link) {
    return rp_sender_has_room(link->sender, true);
}

rp_err rp_link_send(rp_link *link, rp_Frame *frame, const rp_part *parts, uint32_t part_count,
                    bool copy, void (*done)(void *context), void *context) {
    RP_ASSERT(done || copy || part_count == 0);
    rp_err err;
    if (!rp_frame_is_numbered(frame)) {
        return rp_fail(RP_ERR_FORMAT, "link %s: %s is the link's own", link->name,
                       rp_kind_name(rp_frame_kind(frame)));
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
    transmit_messages(link);
fail:
    return err;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* A binding end serves one peer: another one with a key on the list waits until this one is silent
 * or its connection is gone. A ping past the line tells. */
static bool is_served(rp_link *link) {
    if (!link->bound || link->peer == 0 ||
        now_of(link) - link->stats.last_heard_ns > PEER_SILENT_NS) {
        return false;
    }
    rp_Frame frame = {.which_body = RP_KIND_PING, .version = link->wire};
    rp_packet packet = {.count = 1, .peer = link->peer};
    stamp(link, &frame);
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
    rp_sender_reconnected(link->sender); /* a probe tells it that we know it */
    rp_receiver_meet(link->receiver);
    link->stats.peer_session = session;
}

/* Who does not name our session may be new here, or a frame of an earlier life. An answer that
 * names both sessions, and nothing else, lets somebody who lives say it again in full. */
static void introduce(rp_link *link, uint64_t session, uint64_t from) {
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

/* Whether frames of this session, which name ours, are for us to read; adopts a new peer. */
static bool know_session(rp_link *link, uint64_t session, uint64_t from) {
    switch (rp_session_look(&link->session, session)) {
    case RP_SESSION_SAME:
        return true;
    case RP_SESSION_INVALID:
        return false;
    case RP_SESSION_FIRST:
        break;
    case RP_SESSION_OTHER:
        /* A connection carries one life: on its own one the old peer can not be alive. */
        if (link->bound && from != link->peer && is_served(link)) {
            if (link->warned_session != session) {
                rp_log_warn("link %s: another peer with a trusted key knocks; one at a time",
                            link->name);
                link->warned_session = session;
            }
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
        rp_sender_on_again(link->sender, frame->body.ack_only.generation, now_of(link));
    } else if (kind == RP_KIND_PROBE) {
        const bool again = rp_receiver_on_probe(link->receiver, frame->seq);
        send_ack(link, again, again ? frame->body.probe.generation : 0);
    } else if (kind == RP_KIND_PING) {
        rp_Frame pong = {.which_body = RP_KIND_PONG,
                         .body.pong = {.time_ns = frame->body.ping.time_ns}};
        (void)post_bare(link, &pong);
    } else if (kind == RP_KIND_PONG && frame->body.pong.time_ns > 0) {
        const int64_t since = now_of(link) - frame->body.pong.time_ns;
        link->stats.round_trip_ns = since > 0 ? since : 1;
        link->stats.round_trips++;
    }
}

static void take_numbered(rp_link *link, const rp_Frame *frame, rp_buffer **parts,
                          uint32_t part_count) {
    /* A HELLO begins: it is the next host's, of its own run. What is of another run is acked all
     * the same, or the stream would end here. */
    const bool keep = !link->run.id || rp_frame_is_of_run(frame, link->run) ||
                      rp_frame_kind(frame) == RP_KIND_HELLO;
    switch (rp_receiver_offer(link->receiver, frame, parts, part_count, keep)) {
    case RP_RECEIPT_NEXT:
        link->stats.parcels_received += keep ? 1 : 0;
        link->stats.refused += keep ? 0 : 1;
        return;
    case RP_RECEIPT_DUPLICATE:
        link->stats.duplicates++;
        return;
    case RP_RECEIPT_GAP:
        if (rp_receiver_ask_again(link->receiver)) {
            send_ack(link, true, RP_SENDER_ANY_GENERATION);
        }
        return;
    case RP_RECEIPT_DAMAGED:
        link->stats.refused++;
        return;
    case RP_RECEIPT_NO_ROOM:
        return;
    }
}

/* A frame of the peer that we know, to us. */
static void take_frame(rp_link *link, const rp_Frame *frame, rp_packet *packet) {
    const int64_t now = now_of(link);
    if (link->bound && link->peer != packet->peer) {
        link->peer = packet->peer;
        rp_sender_reconnected(link->sender);
    }
    link->stats.last_heard_ns = now;
    if (!rp_sender_on_ack(link->sender, frame->ack, now)) {
        link->stats.refused++;
        return;
    }
    rp_sender_on_credit(link->sender, frame->credit, now);
    if (rp_frame_is_numbered(frame)) {
        take_numbered(link, frame, packet->frame + 1, packet->count - 1);
    } else {
        take_unnumbered(link, frame);
    }
}

static void take_packet(rp_link *link, rp_packet *packet) {
    rp_Frame frame;
    link->stats.bytes_received += rp_packet_bytes(packet);
    if (rp_head_read(packet->frame[0], link->part_bytes_max, &frame) != RP_OK ||
        frame.part_count != packet->count - 1 || (rp_frame_is_numbered(&frame) && frame.seq == 0) ||
        rp_session_look(&link->session, frame.session) == RP_SESSION_INVALID) {
        link->stats.refused++;
    } else if (frame.peer != link->session.own) {
        introduce(link, frame.session, packet->peer);
        link->stats.refused += link->session.peer && link->session.peer != frame.session ? 1 : 0;
    } else if (know_session(link, frame.session, packet->peer)) {
        take_frame(link, &frame, packet);
    } else {
        link->stats.refused++;
    }
}

static void drain_port(rp_link *link) {
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
    if (err == RP_ERR_AGAIN) {
        drain_port(link);
        rp_sender_call_done(link->sender);
        err = rp_receiver_take(link->receiver, out);
    }
    return err;
}

void rp_link_release(rp_link *link, rp_message **message) {
    if (rp_receiver_release(link->receiver, message)) {
        send_ack(link, true, RP_SENDER_ANY_GENERATION);
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Without an emulated rate we can only see that something was not acked yet. */
static void measure_busy(rp_link *link, int64_t now) {
    const bool has_rate = link->line && rp_emulate_profile(link->line)->rate_mbit > 0;
    if (!has_rate && rp_sender_facts_of(link->sender).on_the_way) {
        link->stats.busy_s += (double)(now - link->last_step_ns) / (double)RP_NS_PER_S;
    }
    link->last_step_ns = now;
}

static void step_port(rp_link *link) {
    rp_port_event event;
    while (link->port->kind->step(link->port, &event)) {
        if (link->bound) {
            continue; /* a new connection is known by the number in its first packet */
        }
        if (event.kind == RP_PORT_CONNECTED) {
            link->stats.auth_failed = false;
            rp_sender_reconnected(link->sender);
        } else if (event.kind == RP_PORT_REFUSED) {
            if (!link->stats.auth_failed) {
                rp_log_error("link %s: %s refuses us: %s", link->name, link->port->endpoint,
                             event.why);
            }
            link->stats.auth_failed = true;
        }
    }
}

rp_err rp_link_step(rp_link *link) {
    link->blocked = false;
    measure_busy(link, now_of(link));
    step_port(link);
    drain_port(link);
    transmit_messages(link);
    rp_sender_call_done(link->sender);
    send_due_probe(link);
    if (rp_receiver_end_round(link->receiver)) {
        send_due_ack(link); /* the round since it fell due brought no message to travel with */
    }
    return RP_OK;
}

void rp_link_before_wait(rp_link *link) {
    send_due_ack(link); /* nothing more to travel with: the caller is about to sleep */
    rp_receiver_begin_wait(link->receiver);
}

static int64_t earlier(int64_t a, int64_t b) {
    return a < b ? a : b;
}

int64_t rp_link_deadline_ns(const rp_link *link, int64_t now) {
    const bool can_post = !link->blocked && (!link->bound || link->peer);
    if (rp_receiver_has_news(link->receiver) || (can_post && rp_sender_is_ready(link->sender))) {
        return now;
    }
    int64_t at = earlier(now + STEP_NS, link->port->kind->deadline_ns(link->port, now));
    at = earlier(at, rp_sender_deadline_ns(link->sender));
    return rp_sender_is_lending(link->sender) ? earlier(at, now + LENT_POLL_NS) : at;
}

uint32_t rp_link_handles(const rp_link *link, rp_handle *out) {
    return link->port->kind->handles(link->port, out);
}

rp_loop *rp_link_loop(const rp_link *link) {
    return link->links->loop;
}

rp_link_health rp_link_health_of(const rp_link *link) {
    return (rp_link_health){.last_heard_ns = link->stats.last_heard_ns,
                            .peer_restarted = link->stats.peer_restarted,
                            .auth_failed = link->stats.auth_failed};
}

int64_t rp_link_slow_ns(const rp_link *link) {
    static const rp_link_profile none = {0};
    const rp_link_profile *line = link->line ? rp_emulate_profile(link->line) : &none;
    const bool is_slower = line->rate_mbit > 0 && line->rate_mbit < 1;
    const double bits = 8 * (double)link->part_bytes_max;
    const double part_s = bits / (is_slower ? line->rate_mbit * 1e6 : 1e6);
    const double round_trip_s = 2e-3 * (line->delay_ms + line->jitter_ms);
    const double held_s = line->outage.for_s + line->clog.for_s + line->partition.for_s;
    const double slow_s = part_s + round_trip_s + held_s;
    return (int64_t)((slow_s < SLOW_MAX_S ? slow_s : SLOW_MAX_S) * (double)RP_NS_PER_S);
}

void rp_link_stats_of(const rp_link *link, rp_link_stats *out) {
    const rp_sender_facts sender = rp_sender_facts_of(link->sender);
    *out = link->stats;
    out->unacked = sender.unacked;
    out->parcels_sent = sender.sent;
    out->resent = sender.resent;
    out->refused += rp_port_refused(link->port);
    out->busy_s += link->line ? rp_emulate_busy_s(link->line) : 0;
}
