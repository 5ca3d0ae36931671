#include "link/watch.h"

static const int64_t ASK_NS = 500 * RP_NS_PER_MS;
/* longest time counted per round; more means that the process was stopped */
static const int64_t LOOKS_NS = 1 * RP_NS_PER_S;
static const int64_t TRIP_MAX_NS = 10 * RP_NS_PER_S; /* longer: the clock has jumped */
/* With a part of a message in flight a new connection loses that part, so it is tried only when TCP
 * itself gives up (TCP_UNACKED_MS). */
static const int64_t REOPEN_BUSY_NS = 5 * RP_NS_PER_S;

enum {
    TRIPS = 4,
    MOVES_BYTES = 1024,   /* bytes between two pings; fewer are just pings and probes */
    WAITING_BYTES = 4096, /* bytes in flight; fewer are just pings and probes */
    PARTIAL_BYTES = 65536
};

typedef struct {
    rp_port_traffic traffic;
    bool is_known;
} facts;

static facts read_facts(const rp_link *link, const rp_link_health *health) {
    facts out = {.is_known = rp_link_traffic(link, &out.traffic)};
    if (!out.is_known) {
        out.traffic = (rp_port_traffic){.received = health->bytes_received};
    }
    return out;
}

static void note_facts(rp_link_watch *watch, const rp_link_health *health, const facts *now) {
    watch->has_asked = true;
    watch->sent = now->traffic.sent;
    watch->received = now->traffic.received;
    if (watch->complete != health->bytes_received) {
        watch->complete = health->bytes_received;
        watch->packets_at = now->traffic.received;
    }
}

/* Whether bytes moved since the previous ping. Pings that the peer's machine has confirmed do not
 * count, because a proxy that forwards nothing confirms them as well. */
static bool is_moving(const rp_link_watch *watch, const facts *now) {
    const rp_port_traffic *t = &now->traffic;
    if (!watch->has_asked) {
        return false;
    }
    return (t->received > watch->received && t->received - watch->received >= MOVES_BYTES) ||
           (t->waiting > WAITING_BYTES && t->sent > watch->sent &&
            t->sent - watch->sent >= MOVES_BYTES);
}

static int64_t slack_ns(const rp_link_watch *watch, const rp_link *link,
                        const rp_link_health *health, bool traffic_is_known) {
    return TRIPS * watch->trip_ns + health->stall_ns + rp_link_slow_ns(link, traffic_is_known);
}

static bool has_partial(const rp_link_watch *watch, const facts *now) {
    return now->traffic.waiting > WAITING_BYTES ||
           now->traffic.received > watch->packets_at + PARTIAL_BYTES;
}

/* The first attempt is before the peer is reported as silent; later ones become rarer. */
static void reopen_when_due(rp_link_watch *watch, rp_link *link, const rp_link_health *health,
                            const facts *now) {
    const bool is_patient = watch->trip_ns == 0 || has_partial(watch, now);
    const int64_t first_ns = is_patient ? REOPEN_BUSY_NS : RP_LINK_REOPEN_NS;
    const int64_t due_ns = watch->reopened ? watch->reopen_ns : first_ns + watch->more_ns;
    if (health->connected && watch->silent_ns >= due_ns) {
        rp_link_reopen(link);
        watch->reopened++;
        watch->reopen_ns = 2 * watch->silent_ns;
    }
}

static void note_answer(rp_link_watch *watch, const rp_link_health *health, int64_t now_ns) {
    const int64_t trip_ns = health->round_trip_ns < TRIP_MAX_NS ? health->round_trip_ns : 0;
    const int64_t less_ns = watch->trip_ns - watch->trip_ns / 16;
    watch->answer_ns = health->last_answer_ns;
    watch->asked_ns = now_ns;
    watch->silent_ns = 0;
    watch->reopened = 0;
    watch->has_asked = false;
    watch->trip_ns = trip_ns > less_ns ? trip_ns : less_ns;
}

void rp_link_watch_begin(rp_link_watch *watch, const rp_link *link, int64_t now_ns) {
    const rp_link_health health = rp_link_health_of(link);
    *watch = (rp_link_watch){0};
    note_answer(watch, &health, now_ns);
}

static void send_ping(rp_link_watch *watch, rp_link *link, const rp_link_health *health,
                      int64_t now_ns) {
    const facts now = read_facts(link, health);
    const int64_t since_ns = now_ns - watch->asked_ns;
    const int64_t counts_ns = since_ns < LOOKS_NS ? since_ns : LOOKS_NS;
    watch->asked_ns = now_ns;
    watch->more_ns = slack_ns(watch, link, health, now.is_known);
    watch->silent_ns = is_moving(watch, &now) ? 0 : watch->silent_ns + counts_ns;
    note_facts(watch, health, &now);
    (void)!rp_link_ping(link); /* without a connection there is no answer either */
    reopen_when_due(watch, link, health, &now);
}

rp_watch_state rp_link_look(rp_link_watch *watch, rp_link *link, int64_t now_ns) {
    const rp_link_health health = rp_link_health_of(link);
    if (health.last_answer_ns != watch->answer_ns) {
        note_answer(watch, &health, now_ns);
    } else if (now_ns - watch->asked_ns >= ASK_NS) {
        send_ping(watch, link, &health, now_ns);
    }
    const int64_t meet_ns = watch->meet_ns > RP_LINK_MEET_NS ? watch->meet_ns : RP_LINK_MEET_NS;
    const int64_t lost_ns = health.last_answer_ns ? RP_LINK_LOST_NS : meet_ns;
    if (watch->silent_ns >= lost_ns + watch->more_ns) {
        return RP_WATCH_LOST;
    }
    if (health.stuck) {
        return RP_WATCH_STUCK;
    }
    return watch->silent_ns >= RP_LINK_SILENT_NS + watch->more_ns ? RP_WATCH_SILENT : RP_WATCH_WELL;
}
