#include "transport/emulate.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_BYTES = RP_PORT_NAME_BYTES + 32 };

/* A packet that is reordered is held back by up to this, and by up to REORDER_TIMES its own time on
 * the line. */
#define REORDER_NS (10 * RP_NS_PER_MS)
#define REORDER_TIMES 4

typedef struct line line;

extern const rp_transport_kind rp_transport_emulate;

typedef struct {
    rp_transport transport;
    rp_transport *inner;
    rp_link_profile profile;
    uint64_t seed;
    uint64_t opened; /* ports, ever */
    line *first;
} emulate_transport;

typedef struct {
    rp_packet packet;
    int64_t due_ns;
} parked;

struct line {
    rp_port port; /* its `inner` is the port that carries what has left the line */
    line *next;   /* of the transport */
    rp_link_profile profile;
    rp_rng rng;
    rp_medium own, *medium;
    parked *ring; /* ordered by due_ns; the head leaves first */
    uint32_t head, count, capacity;
    int64_t began_ns, last_due_ns;
    bool full;     /* the inner port had no room for the head */
    uint64_t gone; /* bound: the peer whose connection was found ended last */
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

/* A time within the period becomes its end. */
static int64_t after_period(const line *l, const rp_link_period *period, int64_t at) {
    if (!is_within(l, period, at)) {
        return at;
    }
    return at - (at - l->began_ns) % to_ns(period->every_s) + to_ns(period->for_s);
}

static bool is_partitioned(const line *l, int64_t now) {
    const bool ours = !l->profile.partition_one_way || !l->port.bound;
    return l->profile.cut || (ours && is_within(l, &l->profile.partition, now));
}

/* Time on the line; the medium is busy until then. */
static int64_t occupy_medium(line *l, size_t bytes, int64_t now) {
    int64_t busy = 0;
    if (l->profile.rate_mbit > 0) {
        busy = (int64_t)((double)bytes * 8e3 / l->profile.rate_mbit); /* bits / (Mbit/s) in ns */
    }
    const int64_t free_ns = l->medium->free_ns > now ? l->medium->free_ns : now;
    l->medium->free_ns = after_period(l, &l->profile.outage, free_ns) + busy;
    return busy;
}

/* When a packet that has just left the line arrives. */
static int64_t draw_due(line *l) {
    if (l->profile.hold) {
        return INT64_MAX;
    }
    double late_ms = l->profile.delay_ms;
    if (l->profile.jitter_ms > 0) {
        late_ms += l->profile.jitter_ms * (2.0 * (double)rp_rng_uniform(&l->rng) - 1.0);
    }
    int64_t due = l->medium->free_ns;
    due += late_ms > 0 ? (int64_t)(late_ms * (double)RP_NS_PER_MS) : 0;
    due = after_period(l, &l->profile.outage, due);
    return after_period(l, &l->profile.clog, due);
}

/* ---- packets --------------------------------------------------------------------------------- */

static rp_packet keep_packet(const rp_packet *packet) {
    rp_packet copy = *packet;
    for (uint32_t i = 0; i < copy.count; i++) {
        copy.frame[i] = rp_buffer_keep(copy.frame[i]);
    }
    return copy;
}

/* Flips one bit in a copy of its frame. */
static void corrupt_packet(line *l, rp_packet *packet) {
    uint64_t at = ((uint64_t)rp_rng_u32(&l->rng) << 32 | rp_rng_u32(&l->rng)) %
                  (8 * (uint64_t)rp_packet_bytes(packet));
    uint32_t i = 0;
    for (; at >= 8 * (uint64_t)packet->frame[i]->bytes; i++) {
        at -= 8 * (uint64_t)packet->frame[i]->bytes;
    }
    rp_buffer *copy;
    void *memory;
    if (rp_buffer_new(packet->frame[i]->bytes, &copy, &memory) != RP_OK) {
        rp_packet_drop(packet); /* lost, which a damaged one is as well */
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

/* Behind all that are due no later. Takes the packet's references. */
static void park_packet(line *l, const rp_packet *packet, int64_t due_ns) {
    RP_ASSERT(l->count < l->capacity);
    uint32_t at = l->count++;
    for (; at > 0 && parked_at(l, at - 1)->due_ns > due_ns; at--) {
        *parked_at(l, at) = *parked_at(l, at - 1);
    }
    *parked_at(l, at) = (parked){*packet, due_ns};
}

/* Hands what is due to the inner port. */
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
    if (draw_event(l, l->profile.loss) || is_partitioned(l, now)) {
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
    flush_due(l); /* with no delay it leaves at once */
    return RP_OK;
}

static rp_err take_emulate(rp_port *base, rp_packet *out) {
    line *l = (line *)base;
    rp_err err = l->port.inner->kind->take(l->port.inner, out);
    if (err == RP_OK && l->profile.half_duplex && l->medium == &l->own) {
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

/* What was held is due at once, in its order. */
static void release_held(line *l) {
    for (uint32_t i = 0; i < l->count; i++) {
        parked *p = parked_at(l, i);
        p->due_ns = p->due_ns == INT64_MAX ? now_ns(l) : p->due_ns;
    }
    l->last_due_ns = l->last_due_ns == INT64_MAX ? now_ns(l) : l->last_due_ns;
}

rp_err rp_emulate_wrap(rp_port **port, const rp_link_profile *profile, rp_rng rng,
                       rp_medium *medium) {
    rp_err err;
    rp_arena arena;
    line *l;
    rp_arena_init(&arena, "line", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &l));
    RP_TRY(RP_ARENA_NEW(&arena, (*port)->queue, &l->ring));
    l->port = **port; /* its name, endpoint and limits */
    l->port.kind = &rp_transport_emulate;
    l->port.arena = arena;
    l->port.refused = 0;
    l->port.inner = *port;
    l->capacity = (*port)->queue;
    l->medium = medium ? medium : &l->own;
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
};
