#include "transport/emulate.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_BYTES = RP_PORT_NAME_BYTES + 32 };

/* The most by which a reordered packet is delayed: this plus REORDER_TIMES its own time on the
 * line. */
#define REORDER_NS (10 * RP_NS_PER_MS)
#define REORDER_TIMES 4

typedef struct line line;

extern const rp_transport_kind rp_transport_emulate;

typedef struct {
    rp_transport transport;
    rp_transport *inner;
    rp_link_profile profile;
    uint64_t seed;
    uint64_t opened; /* number of ports opened so far */
    line *first;
} emulate_transport;

typedef struct {
    rp_packet packet;
    int64_t due_ns;
} parked;

struct line {
    rp_port port; /* `inner` carries packets that have left the line */
    line *next;   /* next line of the transport */
    rp_link_profile profile;
    rp_rng rng;
    const rp_media *media; /* NULL: none */
    rp_medium own, *medium;
    int64_t left_ns; /* time at which the last sent packet has left the medium */
    parked *ring;    /* ordered by due_ns; the head is delivered first */
    uint32_t head, count, capacity;
    int64_t began_ns, last_due_ns;
    bool full;     /* the inner port had no room for the head */
    uint64_t gone; /* bound: peer of the last packet that found its connection ended */
    double busy_s;
};

static int64_t to_ns(double seconds) {
    return (int64_t)(seconds * (double)RP_NS_PER_S);
}

static int64_t now_ns(const line *l) {
    return rp_clock_now_ns(l->port.transport->clock);
}

static bool draw_event(line *l, double probability) {
    return probability > 0 && (double)rp_rng_uniform(&l->rng) < probability;
}

/* ---- times ----------------------------------------------------------------------------------- */

static bool is_within(const line *l, const rp_link_period *period, int64_t at) {
    const int64_t every = to_ns(period->every_s);
    const int64_t since = at - l->began_ns;
    return every > 0 && since >= every && since % every < to_ns(period->for_s);
}

/* The end of the period if `at` is within it, otherwise `at`. */
static int64_t after_period(const line *l, const rp_link_period *period, int64_t at) {
    if (!is_within(l, period, at)) {
        return at;
    }
    return at - (at - l->began_ns) % to_ns(period->every_s) + to_ns(period->for_s);
}

/* The end of the outage that contains `at`, otherwise `at`. */
static int64_t after_outages(const line *l, int64_t at) {
    const rp_link_profile *profile = &l->profile;
    at = after_period(l, &profile->outage, at);
    for (uint32_t i = 0; i < profile->outages; i++) { /* in ascending order */
        const int64_t from = l->began_ns + to_ns(profile->away[i].at_s);
        const int64_t end = from + to_ns(profile->away[i].for_s);
        if (at >= from && at < end) {
            at = after_period(l, &profile->outage, end);
        }
    }
    return at;
}

/* Packets up to mtu_bytes pass. */
static bool is_too_large(const line *l, const rp_packet *packet) {
    return l->profile.mtu_bytes > 0 && rp_packet_bytes(packet) > l->profile.mtu_bytes;
}

/* The trace's point for a time, or NULL without a trace. */
static const rp_trace_point *traced_at(const line *l, int64_t at) {
    return l->profile.trace ? rp_link_trace_at(l->profile.trace, at - l->began_ns) : NULL;
}

/* The time at which `bytes` have left the medium if they start at `at`. */
static int64_t left_ns(const line *l, size_t bytes, int64_t at) {
    const rp_link_trace *trace = l->profile.trace;
    const double bits = 8 * (double)bytes;
    if (trace && trace->has_rate) {
        return l->began_ns + rp_link_trace_end_ns(trace, at - l->began_ns, bits);
    }
    return l->profile.rate_mbit > 0 ? at + (int64_t)(bits * 1e3 / l->profile.rate_mbit) : at;
}

/* Takes the next free time of the medium and returns the duration. Other lines may take times
 * concurrently. */
static int64_t occupy_medium(line *l, size_t bytes, int64_t now) {
    rp_medium *medium = l->medium;
    const bool own = medium == &l->own;
    const int64_t ahead = own ? 0 : rp_media_ahead_ns(l->media, l->port.transport->clock);
    int64_t free_ns = atomic_load(&medium->free_ns);
    int64_t begins;
    do {
        const int64_t at = free_ns + ahead > now ? free_ns + ahead : now;
        begins = after_outages(l, at);
        l->left_ns = left_ns(l, bytes, begins);
    } while (!atomic_compare_exchange_weak(&medium->free_ns, &free_ns, l->left_ns - ahead));
    return l->left_ns - begins;
}

static double loss_at(const line *l, int64_t at) {
    const rp_trace_point *traced = traced_at(l, at);
    return traced && l->profile.trace->has_loss ? traced->loss : l->profile.loss;
}

/* The arrival time of a packet that has just left the medium. */
static int64_t draw_due(line *l) {
    if (l->profile.hold) {
        return INT64_MAX;
    }
    const rp_trace_point *traced = traced_at(l, l->left_ns);
    double late_ms = traced && l->profile.trace->has_delay ? traced->delay_ms : l->profile.delay_ms;
    if (l->profile.jitter_ms > 0) {
        late_ms += l->profile.jitter_ms * (2.0 * (double)rp_rng_uniform(&l->rng) - 1.0);
    }
    int64_t due = l->left_ns;
    due += late_ms > 0 ? (int64_t)(late_ms * (double)RP_NS_PER_MS) : 0;
    return after_outages(l, due);
}

/* ---- packets --------------------------------------------------------------------------------- */

static rp_packet keep_packet(const rp_packet *packet) {
    rp_packet copy = *packet;
    for (uint32_t i = 0; i < copy.count; i++) {
        copy.frame[i] = rp_buffer_keep(copy.frame[i]);
    }
    return copy;
}

/* Flips one bit in a copy of one frame. */
static void corrupt_packet(line *l, rp_packet *packet) {
    const uint64_t high = rp_rng_u32(&l->rng);
    const uint64_t drawn = high << 32 | rp_rng_u32(&l->rng);
    uint64_t at = drawn % (8 * (uint64_t)rp_packet_bytes(packet));
    uint32_t i = 0;
    for (; at >= 8 * (uint64_t)packet->frame[i]->bytes; i++) {
        at -= 8 * (uint64_t)packet->frame[i]->bytes;
    }
    rp_buffer *copy;
    void *memory;
    if (rp_buffer_new(packet->frame[i]->bytes, &copy, &memory) != RP_OK) {
        rp_packet_drop(packet); /* out of memory: lost, as a damaged packet is too */
        return;
    }
    memcpy(memory, packet->frame[i]->data, packet->frame[i]->bytes);
    ((uint8_t *)memory)[at / 8] ^= (uint8_t)(1u << (at % 8));
    rp_buffer_drop(&packet->frame[i]);
    packet->frame[i] = copy;
}

static parked *parked_at(line *l, uint32_t i) {
    return &l->ring[(l->head + i) % l->capacity];
}

/* Inserts after all packets that are due at the same time or earlier. Takes ownership of the
 * packet's references. */
static void park_packet(line *l, const rp_packet *packet, int64_t due_ns) {
    RP_ASSERT(l->count < l->capacity);
    uint32_t at = l->count++;
    for (; at > 0 && parked_at(l, at - 1)->due_ns > due_ns; at--) {
        *parked_at(l, at) = *parked_at(l, at - 1);
    }
    *parked_at(l, at) = (parked){*packet, due_ns};
}

/* Passes packets that are due to the inner port. */
static void flush_due(line *l) {
    const int64_t now = now_ns(l);
    l->full = false;
    while (l->count && parked_at(l, 0)->due_ns <= now) {
        rp_err err = l->port.inner->kind->post(l->port.inner, &parked_at(l, 0)->packet);
        if (err == RP_ERR_AGAIN) {
            l->full = true;
            return;
        }
        l->gone = err == RP_ERR_PEER ? parked_at(l, 0)->packet.peer : l->gone;
        rp_packet_drop(&parked_at(l, 0)->packet);
        l->head = (l->head + 1) % l->capacity;
        l->count--;
    }
}

static void send_over_line(line *l, const rp_packet *packet, int64_t now) {
    const int64_t busy = occupy_medium(l, rp_packet_bytes(packet), now);
    l->busy_s += (double)busy / (double)RP_NS_PER_S;
    if (draw_event(l, loss_at(l, now)) || l->profile.cut || is_too_large(l, packet)) {
        return;
    }
    int64_t due = draw_due(l);
    if (!l->profile.hold && draw_event(l, l->profile.reorder)) {
        const double most = (double)REORDER_NS + REORDER_TIMES * (double)busy;
        due += (int64_t)(most * (double)rp_rng_uniform(&l->rng));
    } else {
        l->last_due_ns = due > l->last_due_ns ? due : l->last_due_ns;
        due = l->last_due_ns;
    }
    rp_packet copy = keep_packet(packet);
    const bool twice = draw_event(l, l->profile.duplicate);
    if (draw_event(l, l->profile.corrupt) && rp_packet_bytes(packet) > 0) {
        corrupt_packet(l, &copy);
    }
    if (copy.count) {
        park_packet(l, &copy, due);
    }
    if (twice && l->count < l->capacity) {
        copy = keep_packet(packet);
        park_packet(l, &copy, due);
    }
}

static rp_err post_emulate(rp_port *base, const rp_packet *packet) {
    line *l = (line *)base;
    if (l->count == 0 && !rp_link_profile_has_line(&l->profile)) {
        return l->port.inner->kind->post(l->port.inner, packet);
    }
    if (base->bound && (packet->peer == 0 || packet->peer == l->gone)) {
        return RP_ERR_PEER;
    }
    if (l->count == l->capacity || (!base->bound && !rp_port_is_connected(base))) {
        return RP_ERR_AGAIN;
    }
    send_over_line(l, packet, now_ns(l));
    flush_due(l); /* without a delay the packet leaves at once */
    return RP_OK;
}

static rp_err take_emulate(rp_port *base, rp_packet *out) {
    line *l = (line *)base;
    rp_err err = l->port.inner->kind->take(l->port.inner, out);
    if (err == RP_OK && l->profile.shared[0] && l->medium == &l->own) {
        (void)occupy_medium(l, rp_packet_bytes(out), now_ns(l));
    }
    return err;
}

static bool step_emulate(rp_port *base, rp_port_event *out) {
    line *l = (line *)base;
    if (l->port.inner->kind->step(l->port.inner, out)) {
        return true;
    }
    flush_due(l);
    return false;
}

static int64_t deadline_ns(rp_port *base, int64_t now) {
    line *l = (line *)base;
    int64_t at = l->port.inner->kind->deadline_ns(l->port.inner, now);
    if (l->count && !l->full && parked_at(l, 0)->due_ns < at) {
        at = parked_at(l, 0)->due_ns;
    }
    return at;
}

static uint32_t handles_emulate(rp_port *base, rp_handle *out) {
    return base->inner->kind->handles(base->inner, out);
}

/* Packets in the queue stay there and are delivered over the new connection. */
static void reopen_emulate(rp_port *base) {
    base->inner->kind->reopen(base->inner);
}

static void address_emulate(const rp_port *base, const rp_packet *packet,
                            char out[RP_PORT_ADDRESS_BYTES]) {
    base->inner->kind->address(base->inner, packet, out);
}

static bool traffic_emulate(const rp_port *base, rp_port_traffic *out) {
    return base->inner->kind->traffic(base->inner, out);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void close_line(rp_port *base) {
    line *l = (line *)base;
    for (; l->count; l->count--) {
        rp_packet_drop(&parked_at(l, 0)->packet);
        l->head = (l->head + 1) % l->capacity;
    }
    rp_port_close(&base->inner);
    if (base->transport->kind == &rp_transport_emulate) {
        emulate_transport *transport = (emulate_transport *)base->transport;
        for (line **at = &transport->first; *at; at = &(*at)->next) {
            if (*at == l) {
                *at = l->next;
                break;
            }
        }
    }
    rp_port_free(base);
}

/* Packets that were held become due now, in their order. */
static void release_held(line *l) {
    for (uint32_t i = 0; i < l->count; i++) {
        parked *p = parked_at(l, i);
        p->due_ns = p->due_ns == INT64_MAX ? now_ns(l) : p->due_ns;
    }
    l->last_due_ns = l->last_due_ns == INT64_MAX ? now_ns(l) : l->last_due_ns;
}

rp_err rp_emulate_wrap(rp_port **port, const rp_link_profile *profile, rp_rng rng,
                       const rp_media *media) {
    rp_err err;
    rp_arena arena;
    line *l;
    rp_arena_init(&arena, "line", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &l));
    RP_TRY(RP_ARENA_NEW(&arena, (*port)->queue, &l->ring));
    l->port = **port; /* copies name, endpoint and limits */
    l->port.kind = &rp_transport_emulate;
    l->port.arena = arena;
    l->port.refused = 0;
    l->port.inner = *port;
    l->capacity = (*port)->queue;
    l->media = media;
    l->medium = &l->own;
    rp_emulate_set(&l->port, profile, rng);
    *port = &l->port;
    return RP_OK;
fail:
    rp_arena_finish(&arena);
    return err;
}

void rp_emulate_set(rp_port *base, const rp_link_profile *profile, rp_rng rng) {
    line *l = (line *)base;
    RP_ASSERT(base->kind == &rp_transport_emulate);
    if (l->profile.hold && !profile->hold) {
        release_held(l);
    }
    l->profile = *profile;
    l->rng = rng;
    l->began_ns = now_ns(l) - to_ns(profile->since_s);
    rp_medium *medium = rp_media_find(l->media, profile->medium);
    l->medium = medium ? medium : &l->own;
}

void rp_emulate_begin(rp_port *base) {
    RP_ASSERT(base->kind == &rp_transport_emulate);
    line *l = (line *)base;
    l->began_ns = now_ns(l);
}

const rp_link_profile *rp_emulate_profile(const rp_port *base) {
    RP_ASSERT(base->kind == &rp_transport_emulate);
    return &((const line *)base)->profile;
}

double rp_emulate_busy_s(const rp_port *base) {
    RP_ASSERT(base->kind == &rp_transport_emulate);
    return ((const line *)base)->busy_s;
}

/* ---- transport ------------------------------------------------------------------------------- */

static rp_err start_emulate(rp_arena *arena, const rp_transport_options *options,
                            rp_transport **out) {
    emulate_transport *transport;
    RP_ASSERT(options->inner);
    rp_err err = RP_ARENA_NEW(arena, 1, &transport);
    if (err != RP_OK) {
        return err;
    }
    transport->transport = (rp_transport){&rp_transport_emulate, options->inner->clock};
    transport->inner = options->inner;
    transport->seed = options->seed;
    if (options->profile) {
        transport->profile = *options->profile;
    }
    *out = &transport->transport;
    return RP_OK;
}

static void finish_emulate(rp_transport *base) {
    RP_ASSERT(!((emulate_transport *)base)->first);
}

static rp_err open_port(rp_transport *base, const rp_port_options *options, rp_port **out) {
    emulate_transport *transport = (emulate_transport *)base;
    char stream[STREAM_BYTES];
    rp_port *port;
    rp_err err = rp_port_open(transport->inner, options, &port);
    if (err != RP_OK) {
        return err;
    }
    snprintf(stream, sizeof stream, "line/%s/%llu", options->name,
             (unsigned long long)transport->opened++);
    err = rp_emulate_wrap(&port, &transport->profile, rp_rng_named(transport->seed, stream), NULL);
    if (err != RP_OK) {
        rp_port_close(&port);
        return err;
    }
    line *l = (line *)port;
    port->transport = base;
    l->next = transport->first;
    transport->first = l;
    *out = port;
    return RP_OK;
}

rp_port *rp_emulate_next(rp_transport *base, const rp_port *after) {
    RP_ASSERT(base->kind == &rp_transport_emulate);
    line *l = after ? ((const line *)after)->next : ((emulate_transport *)base)->first;
    return l ? &l->port : NULL;
}

const rp_transport_kind rp_transport_emulate = {
    .name = "emulate",
    .start = start_emulate,
    .finish = finish_emulate,
    .open = open_port,
    .close = close_line,
    .post = post_emulate,
    .take = take_emulate,
    .step = step_emulate,
    .deadline_ns = deadline_ns,
    .handles = handles_emulate,
    .reopen = reopen_emulate,
    .address = address_emulate,
    .traffic = traffic_emulate,
};
