/* Connects a sender, a receiver and a session to a port: opening, closing, settings, facts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/log.h"
#include "link/head.h"
#include "link/link_own.h"
#include "transport/emulate.h"

enum {
    NAME_BYTES = RP_PORT_NAME_BYTES,
    /* room for acks and control messages in queues that are sized by the window */
    QUEUE_SLACK = 64,
    SLOW_MAX_S = 3600,
    RATE_BYTES = 65536, /* sent bytes from which a mean rate is known */
    ABSENCES = 2        /* an agent that is restarting may listen at the second attempt */
};

#define LET_GO_MAX_NS (10 * RP_NS_PER_S)

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err check_options(const rp_link_options *options) {
    const char *name = options->name ? options->name : "without a name";
    if (!options->name || strlen(options->name) >= NAME_BYTES) {
        return rp_fail(RP_ERR_USAGE, "link %.60s: expected a name of 1 to %d characters", name,
                       NAME_BYTES - 1);
    }
    if (!options->bind == !options->connect) {
        return rp_fail(RP_ERR_USAGE,
                       "link %s: expected an endpoint to bind or one to connect to, not both",
                       name);
    }
    if (options->window < 1 || options->window > RP_LINK_WINDOW_MAX || options->send_window < 1 ||
        options->send_window > RP_LINK_WINDOW_MAX) {
        return rp_fail(RP_ERR_USAGE, "link %s: windows %u and %u: 1 to %d", name, options->window,
                       options->send_window, RP_LINK_WINDOW_MAX);
    }
    return RP_OK;
}

/* Two lives of a process must differ even with equal seeds; two lives in a simulation differ by
 * their stream. */
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
    link->far = options->far;
    link->wire = options->wire ? options->wire : RP_WIRE_MAX;
    link->last_step_ns = link->met.since_ns = rp_clock_now_ns(links->clock);
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

/* A closed port releases memory within moments. Returns false if it still holds some. */
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
        rp_log_error("link %s: the transport still uses memory of messages, so it is not freed",
                     link->name);
        return; /* the link's arena also stays, because it counts that memory */
    }
    rp_arena arena = link->arena; /* the link itself is stored in its arena */
    rp_arena_finish(&arena);
}

rp_err rp_link_allow(rp_link *link, const char *public_text) {
    return rp_port_allow(link->port, public_text);
}

rp_err rp_link_allow_only(rp_link *link, const char *const *public_text, uint32_t count) {
    return rp_port_allow_only(link->port, public_text, count);
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
    rp_err err = rp_emulate_wrap(&link->port, profile, rng, link->links->media);
    if (err == RP_OK) {
        link->line = link->port;
    }
    return err;
}

void rp_link_begin_line(rp_link *link) {
    if (link->line) {
        rp_emulate_begin(link->line);
    }
}

const char *rp_link_endpoint(const rp_link *link) {
    return link->port->endpoint;
}

/* ---- facts ----------------------------------------------------------------------------------- */

rp_loop *rp_link_loop(const rp_link *link) {
    return link->links->loop;
}

/* A wrapping port (`inner`) has no connection of its own. */
static bool is_unanswered(const rp_link *link) {
    const rp_port *port = link->port;
    while (port->inner) {
        port = port->inner;
    }
    return !link->bound && port->taken_ns > 0 &&
           rp_link_now_ns(link) - port->taken_ns > RP_LINK_UNANSWERED_NS;
}

rp_link_health rp_link_health_of(const rp_link *link) {
    return (rp_link_health){.last_heard_ns = link->stats.last_heard_ns,
                            .peer_restarted = link->stats.peer_restarted,
                            .auth_failed = link->stats.auth_failed,
                            .absent = link->absences >= ABSENCES,
                            .unanswered = is_unanswered(link),
                            .broken_off = link->broken_off,
                            .twins = link->twin.count,
                            .stuck =
                                rp_sender_facts_of(link->sender).replays >= RP_LINK_REPLAYS_MAX,
                            .last_answer_ns = link->stats.last_answer_ns,
                            .round_trip_ns = link->stats.round_trip_ns,
                            .stall_ns = link->peer_stall_ns,
                            .bytes_received = link->stats.bytes_received,
                            .connected = !link->bound && rp_port_is_connected(link->port)};
}

rp_link_peers rp_link_peers_of(const rp_link *link) {
    return (rp_link_peers){.served = link->served,
                           .before = link->before,
                           .twin = link->twin.address,
                           .twins = link->twin.count};
}

rp_stranger rp_link_stranger_of(const rp_link *link) {
    return rp_port_stranger(link->port);
}

bool rp_link_traffic(const rp_link *link, rp_port_traffic *out) {
    return link->port->kind->traffic(link->port, out);
}

void rp_link_reopen(rp_link *link) {
    if (!link->bound) {
        link->port->kind->reopen(link->port);
    }
}

/* Bytes in flight are assumed to arrive at an eighth of the mean rate or faster, because some
 * machines between two ends buffer more than they have forwarded. */
static double backlog_s(const rp_link *link) {
    const double bytes = (double)rp_sender_facts_of(link->sender).unacked_bytes;
    const double line_s = link->line ? rp_emulate_busy_s(link->line) : 0;
    const double busy_s = link->stats.busy_s + line_s;
    const bool is_known = link->stats.bytes_sent >= RATE_BYTES && busy_s > 0;
    const double rate = is_known ? (double)link->stats.bytes_sent / busy_s / 8 : 1e6 / 8;
    return bytes / rate;
}

static double larger_of(double a, double b) {
    return a > b ? a : b;
}

/* The time that the peer's largest part needs on a line. */
static double part_s(const rp_link *link, const rp_link_profile *line, bool traffic_is_known) {
    const double rate_mbit = rp_link_profile_rate_mbit(line);
    const bool has_rate = rate_mbit > 0 && (traffic_is_known || rate_mbit < 1);
    if (rate_mbit <= 0 && traffic_is_known) {
        return 0;
    }
    return 8e-6 * (double)link->part_bytes_max / (has_rate ? rate_mbit : 1);
}

int64_t rp_link_slow_ns(const rp_link *link, bool traffic_is_known) {
    static const rp_link_profile none = {0};
    const rp_link_profile *line = link->line ? rp_emulate_profile(link->line) : &none;
    const rp_link_profile *far = rp_link_profile_has_line(&link->far) ? &link->far : line;
    const double delay_ms = rp_link_profile_delay_ms(line) + rp_link_profile_delay_ms(far);
    const double slow_s =
        larger_of(part_s(link, line, traffic_is_known), part_s(link, far, traffic_is_known)) +
        1e-3 * (delay_ms + line->jitter_ms + far->jitter_ms) +
        larger_of(rp_link_profile_held_s(line), rp_link_profile_held_s(far)) + backlog_s(link);
    return (int64_t)((slow_s < SLOW_MAX_S ? slow_s : SLOW_MAX_S) * (double)RP_NS_PER_S);
}

void rp_link_stats_of(const rp_link *link, rp_link_stats *out) {
    const rp_sender_facts sender = rp_sender_facts_of(link->sender);
    *out = link->stats;
    out->unacked = sender.unacked;
    out->unreleased = sender.unreleased;
    out->parcels_sent = sender.sent;
    out->resent = sender.resent;
    out->refused += rp_port_refused(link->port);
    out->strangers = rp_port_strangers(link->port);
    const rp_pace *pace = rp_sender_pace_of(link->sender);
    const double line_s = link->line ? rp_emulate_busy_s(link->line) : 0;
    out->busy_s += line_s;
    out->rate = line_s > 0 ? (double)link->stats.bytes_sent / line_s : rp_pace_rate(pace);
    out->delay_ns[0] = rp_pace_delay_ns(pace, 0.5);
    out->delay_ns[1] = rp_pace_delay_ns(pace, 0.95);
}

void rp_link_begin_use(rp_link *link) {
    rp_sender_begin_pace(link->sender);
    link->late.bytes_sent = link->stats.bytes_sent;
    link->late.line_s = link->line ? rp_emulate_busy_s(link->line) : 0;
}

/* For an emulated line: bytes passed per busy time. */
static double late_rate(const rp_link *link) {
    const double line_s = link->line ? rp_emulate_busy_s(link->line) - link->late.line_s : 0;
    return line_s > 0 ? (double)(link->stats.bytes_sent - link->late.bytes_sent) / line_s
                      : rp_pace_late_rate(rp_sender_pace_of(link->sender));
}

rp_LinkUse rp_link_use_of(const rp_link *link, uint32_t peer) {
    rp_link_stats stats;
    rp_link_stats_of(link, &stats);
    const uint64_t bytes = stats.bytes_sent - link->met.bytes_sent;
    const double span_s = (double)(rp_link_now_ns(link) - link->met.since_ns) * 1e-9;
    /* all of it has been sent since */
    const double least = span_s > 0 ? (double)bytes / span_s : 0;
    const double rate = stats.rate > 0 ? larger_of(stats.rate, least) : 0;
    const double late = late_rate(link);
    return (rp_LinkUse){.peer = peer,
                        .bytes = bytes,
                        .busy_s = rate > 0 ? (double)bytes / rate : 0,
                        .duplicates = stats.duplicates,
                        .rate = (float)(late > 0 ? late : rate),
                        .delay_s = (float)stats.delay_ns[0] * 1e-9f,
                        .delay_95_s = (float)stats.delay_ns[1] * 1e-9f,
                        .resent = stats.resent - link->met.resent,
                        .resets = stats.resets - link->met.resets};
}
