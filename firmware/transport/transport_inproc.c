/* Two queues between two ports of one process, for simulations and tests. */
#include "transport/inproc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

extern const rp_transport_kind rp_transport_inproc;

enum {
    BOUND,
    CONNECTING,
    FIRST_FREE_PORT = 40001,
    REMEMBERED_BYTES_MAX = 64 * 1024,
    FIRST_PACKETS = 4
};

#define DIAL_NS (100 * RP_NS_PER_MS)

typedef struct inproc_port inproc_port;
typedef struct connection connection;

typedef struct {
    rp_packet *ring;
    uint32_t head, count, capacity;
} queue;

/* Exists until both ends have left it; `to` is indexed by the end that takes from it. */
struct connection {
    rp_arena arena;
    connection *next; /* next connection of the binding port */
    uint64_t number;
    inproc_port *end[2]; /* NULL: the end has left */
    queue to[2];
    bool told;           /* the connection was reported to the binding end */
    uint32_t carried[2]; /* number of its first packets carried, by `to` */
};

typedef struct {
    rp_packet packet;
    char endpoint[RP_PORT_ENDPOINT_BYTES];
    int to;
} memory;

struct rp_hub {
    inproc_port *bound;
    uint32_t open;        /* open connections */
    uint64_t connections; /* number of connections ever, which is the next number less 1 */
    uint32_t free_port;
    bool lets_twins;
    memory *remembered;
    uint32_t remembered_max;
    uint64_t remembered_count; /* number ever remembered */
    memory *first;             /* the newest packets that began a connection */
    uint32_t first_max;
    uint64_t first_count; /* number ever remembered in it */
};

typedef struct {
    rp_transport transport;
    rp_hub *hub;
    bool checks_keys;
    rp_keypair keys;
    void (*wake)(void *context);
    void *wake_context;
} inproc_transport;

struct inproc_port {
    rp_port port;
    inproc_port *next; /* next bound port of the hub */
    char server_key[RP_KEY_TEXT];
    connection *first;      /* bound: its connections */
    connection *connection; /* connecting: our connection, or NULL */
    uint64_t taken;         /* bound: number of the connection taken from last */
    int64_t dial_ns;        /* connecting: earliest time of the next attempt */
    bool met;               /* connecting: there has been a connection */
    bool was_refused;
    uint64_t full; /* number of the connection whose queue had no room, 0 = none */
};

static rp_hub *hub_of(const inproc_port *port) {
    return ((const inproc_transport *)port->port.transport)->hub;
}

static int side_of(const inproc_port *port) {
    return port->port.bound ? BOUND : CONNECTING;
}

static void wake_owner(const inproc_port *port) {
    const inproc_transport *transport =
        port ? (const inproc_transport *)port->port.transport : NULL;
    if (transport && transport->wake) {
        transport->wake(transport->wake_context);
    }
}

/* ---- queues ---------------------------------------------------------------------------------- */

static rp_err put_packet(queue *q, const rp_packet *packet, uint64_t peer) {
    if (q->count == q->capacity) {
        return RP_ERR_AGAIN;
    }
    rp_packet copy = {.peer = peer};
    for (uint32_t i = 0; i < packet->count; i++) {
        if (rp_buffer_keep_owned(packet->frame[i], &copy.frame[i]) != RP_OK) {
            rp_packet_drop(&copy);
            return RP_ERR_AGAIN;
        }
        copy.count++;
    }
    q->ring[(q->head + q->count++) % q->capacity] = copy;
    return RP_OK;
}

static rp_err deliver_packet(connection *c, int to, const rp_packet *packet) {
    rp_err err = put_packet(&c->to[to], packet, to == BOUND ? c->number : 0);
    if (err == RP_OK) {
        wake_owner(c->end[to]);
    }
    return err;
}

static bool get_packet(queue *q, rp_packet *out) {
    if (q->count == 0) {
        return false;
    }
    *out = q->ring[q->head];
    q->head = (q->head + 1) % q->capacity;
    q->count--;
    return true;
}

static void empty_queue(queue *q) {
    rp_packet packet;
    while (get_packet(q, &packet)) {
        rp_packet_drop(&packet);
    }
}

/* ---- the hub --------------------------------------------------------------------------------- */

rp_err rp_hub_new(rp_arena *arena, uint32_t remembered, rp_hub **out) {
    rp_hub *hub;
    rp_err err = RP_ARENA_NEW(arena, 1, &hub);
    if (err == RP_OK && remembered) {
        err = RP_ARENA_NEW(arena, remembered, &hub->remembered);
    }
    if (err != RP_OK) {
        return err;
    }
    hub->remembered_max = remembered;
    hub->free_port = FIRST_FREE_PORT;
    *out = hub;
    return RP_OK;
}

void rp_hub_finish(rp_hub **hub_taken) {
    rp_hub *hub = *hub_taken;
    *hub_taken = NULL;
    if (!hub) {
        return;
    }
    RP_ASSERT(!hub->bound && !hub->open);
    for (uint32_t i = 0; i < hub->remembered_max; i++) {
        rp_packet_drop(&hub->remembered[i].packet);
    }
    for (uint32_t i = 0; i < hub->first_max; i++) {
        rp_packet_drop(&hub->first[i].packet);
    }
}

static const char *port_text(const char *endpoint) {
    const char *colon = strrchr(endpoint, ':');
    return colon ? colon + 1 : endpoint;
}

static bool is_every_host(const char *endpoint) {
    return strncmp(endpoint, "tcp://0.0.0.0:", 14) == 0 || strncmp(endpoint, "tcp://*:", 8) == 0;
}

/* The next one after `after`; NULL: the first. */
static inproc_port *find_next_bound(const rp_hub *hub, const char *endpoint,
                                    const inproc_port *after) {
    for (inproc_port *port = after ? after->next : hub->bound; port; port = port->next) {
        const char *name = port->port.endpoint;
        if (strcmp(name, endpoint) == 0 ||
            (is_every_host(name) && strcmp(port_text(name), port_text(endpoint)) == 0)) {
            return port;
        }
    }
    return NULL;
}

static inproc_port *find_bound(const rp_hub *hub, const char *endpoint) {
    return find_next_bound(hub, endpoint, NULL);
}

static void free_connection(rp_hub *hub, connection *c) {
    hub->open--;
    empty_queue(&c->to[BOUND]);
    empty_queue(&c->to[CONNECTING]);
    rp_arena arena = c->arena; /* the connection itself is stored in its arena */
    rp_arena_finish(&arena);
}

static void remove_connection(inproc_port *bound, connection *c) {
    for (connection **at = &bound->first; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            return;
        }
    }
}

/* Packets that the leaving end has posted stay for its peer. */
static void leave_connection(rp_hub *hub, connection *c, int side) {
    if (side == BOUND) {
        remove_connection(c->end[BOUND], c);
    }
    c->end[side] = NULL;
    empty_queue(&c->to[side]);
    wake_owner(c->end[!side]);
    if (!c->end[BOUND] && !c->end[CONNECTING]) {
        free_connection(hub, c);
    }
}

static rp_err make_connection(rp_hub *hub, inproc_port *bound, inproc_port *connecting) {
    rp_err err;
    rp_arena arena;
    connection *c;
    const uint32_t capacity =
        bound->port.queue < connecting->port.queue ? bound->port.queue : connecting->port.queue;
    rp_arena_init(&arena, "connection", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &c));
    for (int side = 0; side < 2; side++) {
        RP_TRY(RP_ARENA_NEW(&arena, capacity, &c->to[side].ring));
        c->to[side].capacity = capacity;
    }
    c->arena = arena;
    c->number = ++hub->connections;
    c->end[BOUND] = bound;
    c->end[CONNECTING] = connecting;
    c->next = bound->first;
    bound->first = c;
    hub->open++;
    connecting->connection = c;
    wake_owner(bound);
    return RP_OK;
fail:
    rp_arena_finish(&arena);
    return err;
}

static void fill_memory(memory *m, const char *endpoint, int to, const rp_packet *packet) {
    rp_packet_drop(&m->packet);
    for (uint32_t i = 0; i < packet->count; i++) {
        m->packet.frame[i] = rp_buffer_keep(packet->frame[i]);
    }
    m->packet.count = packet->count;
    m->to = to;
    memcpy(m->endpoint, endpoint, sizeof m->endpoint);
}

/* Omits large packets, because remembering keeps them in memory. */
static void remember_packet(rp_hub *hub, connection *c, int to, const rp_packet *packet) {
    const char *endpoint = c->end[BOUND]->port.endpoint;
    if (rp_packet_bytes(packet) > REMEMBERED_BYTES_MAX) {
        return;
    }
    if (hub->first_max > 0 && c->carried[to] < FIRST_PACKETS) {
        c->carried[to]++;
        fill_memory(&hub->first[hub->first_count++ % hub->first_max], endpoint, to, packet);
    } else if (hub->remembered_max > 0) {
        memory *m = &hub->remembered[hub->remembered_count++ % hub->remembered_max];
        fill_memory(m, endpoint, to, packet);
    }
}

rp_err rp_hub_inject(rp_hub *hub, const char *endpoint, bool to_bound, const rp_packet *packet) {
    const inproc_port *bound = find_bound(hub, endpoint);
    for (connection *c = bound ? bound->first : NULL; c; c = c->next) {
        if (c->end[CONNECTING]) {
            return deliver_packet(c, to_bound ? BOUND : CONNECTING, packet);
        }
    }
    return RP_ERR_AGAIN;
}

void rp_hub_let_twins(rp_hub *hub) {
    hub->lets_twins = true;
}

void rp_hub_end_connections(rp_hub *hub, const char *endpoint) {
    inproc_port *bound = find_bound(hub, endpoint);
    for (; bound; bound = find_next_bound(hub, endpoint, bound)) {
        while (bound->first) {
            leave_connection(hub, bound->first, BOUND);
        }
    }
}

rp_err rp_hub_remember_beginnings(rp_hub *hub, rp_arena *arena, uint32_t count) {
    RP_ASSERT(!hub->first_max && count > 0);
    rp_err err = RP_ARENA_NEW(arena, count, &hub->first);
    hub->first_max = err == RP_OK ? count : 0;
    return err;
}

static uint32_t smaller_of(uint64_t count, uint32_t most) {
    return count < most ? (uint32_t)count : most;
}

uint32_t rp_hub_remembered(const rp_hub *hub) {
    return smaller_of(hub->first_count, hub->first_max) +
           smaller_of(hub->remembered_count, hub->remembered_max);
}

rp_err rp_hub_replay(rp_hub *hub, uint32_t index) {
    const uint32_t beginnings = smaller_of(hub->first_count, hub->first_max);
    const memory *m = hub->first;
    RP_ASSERT(index < rp_hub_remembered(hub));
    if (index < beginnings) {
        m += (hub->first_count - beginnings + index) % hub->first_max;
    } else {
        const uint32_t there = smaller_of(hub->remembered_count, hub->remembered_max);
        const uint64_t oldest = hub->remembered_count - there;
        m = &hub->remembered[(oldest + index - beginnings) % hub->remembered_max];
    }
    return rp_hub_inject(hub, m->endpoint, m->to == BOUND, &m->packet);
}

/* ---- transport and ports --------------------------------------------------------------------- */

static rp_err start_inproc(rp_arena *arena, const rp_transport_options *options,
                           rp_transport **out) {
    inproc_transport *transport;
    RP_ASSERT(options->hub);
    rp_err err = RP_ARENA_NEW(arena, 1, &transport);
    if (err != RP_OK) {
        return err;
    }
    transport->transport = (rp_transport){&rp_transport_inproc, options->clock};
    transport->hub = options->hub;
    transport->wake = options->wake;
    transport->wake_context = options->wake_context;
    transport->checks_keys = options->keys != NULL;
    if (options->keys) {
        transport->keys = *options->keys;
    }
    *out = &transport->transport;
    return RP_OK;
}

static void finish_inproc(rp_transport *base) {
    inproc_transport *transport = (inproc_transport *)base;
    explicit_bzero(transport, sizeof *transport);
}

static bool are_twins(const inproc_port *a, const inproc_port *b) {
    const inproc_transport *first = (const inproc_transport *)a->port.transport;
    const inproc_transport *second = (const inproc_transport *)b->port.transport;
    return hub_of(a)->lets_twins && first != second &&
           strcmp(first->keys.public_text, second->keys.public_text) == 0;
}

static bool may_share(const inproc_port *there, const inproc_port *port) {
    const bool have_own_keys = there->port.has_one_key && port->port.has_one_key;
    return (have_own_keys && there->port.transport == port->port.transport) ||
           are_twins(there, port);
}

static rp_err bind_name(rp_hub *hub, inproc_port *port) {
    char *endpoint = port->port.endpoint;
    const size_t length = strlen(endpoint);
    if (length >= 2 && strcmp(endpoint + length - 2, ":*") == 0) {
        snprintf(endpoint + length - 1, RP_PORT_ENDPOINT_BYTES - length, "%u", hub->free_port++);
    }
    const inproc_port *there = find_bound(hub, endpoint);
    if (there && !may_share(there, port)) {
        return rp_fail(RP_ERR_IO, "link %s: cannot bind to %s: another port uses it",
                       port->port.name, endpoint);
    }
    port->next = hub->bound;
    hub->bound = port;
    return RP_OK;
}

static rp_err open_port(rp_transport *base, const rp_port_options *options, rp_port **out) {
    rp_port *made;
    rp_err err = rp_port_new(base, options, sizeof(inproc_port), &made);
    if (err != RP_OK) {
        return err;
    }
    inproc_port *port = (inproc_port *)made;
    if (made->bound) {
        err = bind_name(hub_of(port), port);
    } else if (options->peer_public) {
        memcpy(port->server_key, options->peer_public, sizeof port->server_key);
    }
    if (err != RP_OK) {
        rp_port_free(made);
        return err;
    }
    *out = made;
    return RP_OK;
}

static void close_port(rp_port *base) {
    inproc_port *port = (inproc_port *)base;
    rp_hub *hub = hub_of(port);
    for (inproc_port **at = &hub->bound; *at; at = &(*at)->next) {
        if (*at == port) {
            *at = port->next;
            break;
        }
    }
    while (port->first) {
        leave_connection(hub, port->first, BOUND);
    }
    if (port->connection) {
        leave_connection(hub, port->connection, CONNECTING);
    }
    rp_port_free(base);
}

/* ---- packets --------------------------------------------------------------------------------- */

static connection *find_connection(const inproc_port *bound, uint64_t number) {
    for (connection *c = bound->first; c; c = c->next) {
        if (c->number == number) {
            return c->end[CONNECTING] ? c : NULL;
        }
    }
    return NULL;
}

static bool has_large_frame(const rp_packet *packet, size_t bytes_max) {
    for (uint32_t i = 0; i < packet->count; i++) {
        if (packet->frame[i]->bytes > bytes_max) {
            return true;
        }
    }
    return false;
}

static rp_err post_inproc(rp_port *base, const rp_packet *packet) {
    inproc_port *port = (inproc_port *)base;
    const int to = base->bound ? CONNECTING : BOUND;
    connection *c = base->bound ? find_connection(port, packet->peer) : port->connection;
    RP_ASSERT(packet->count >= 1 && packet->count <= RP_PACKET_FRAMES_MAX);
    if (!c || !c->end[to]) {
        return base->bound ? RP_ERR_PEER : RP_ERR_AGAIN;
    }
    if (has_large_frame(packet, c->end[to]->port.frame_bytes_max)) {
        c->end[to]->port.refused++;
        return RP_OK; /* dropped */
    }
    rp_err err = deliver_packet(c, to, packet);
    if (err != RP_OK) {
        port->full = c->number;
    } else {
        const queue *q = &c->to[to];
        const rp_packet *queued = &q->ring[(q->head + q->count - 1) % q->capacity];
        remember_packet(hub_of(port), c, to, queued);
    }
    return err;
}

/* A binding end takes from its connections in turn: next is the lowest number above the one taken
 * from last, or else the lowest. */
static connection *next_filled(const inproc_port *bound) {
    connection *lowest = NULL;
    connection *behind = NULL;
    for (connection *c = bound->first; c; c = c->next) {
        if (c->to[BOUND].count == 0) {
            continue;
        }
        if (!lowest || c->number < lowest->number) {
            lowest = c;
        }
        if (c->number > bound->taken && (!behind || c->number < behind->number)) {
            behind = c;
        }
    }
    return behind ? behind : lowest;
}

static rp_err take_inproc(rp_port *base, rp_packet *out) {
    inproc_port *port = (inproc_port *)base;
    connection *c = base->bound ? next_filled(port) : port->connection;
    if (!c || !get_packet(&c->to[side_of(port)], out)) {
        return RP_ERR_AGAIN;
    }
    port->taken = c->number;
    if (c->end[!side_of(port)] && c->end[!side_of(port)]->full == c->number) {
        wake_owner(c->end[!side_of(port)]); /* the queue has room now */
    }
    return RP_OK;
}

/* ---- connections ----------------------------------------------------------------------------- */

static const char *why_refused(const inproc_port *bound, const inproc_port *connecting) {
    const inproc_transport *theirs = (const inproc_transport *)bound->port.transport;
    const inproc_transport *ours = (const inproc_transport *)connecting->port.transport;
    uint8_t key[RP_KEY_BYTES];
    if (!theirs->checks_keys) {
        return NULL;
    }
    if (!ours->checks_keys || rp_key_decode(ours->keys.public_text, key) != RP_OK ||
        !rp_port_is_allowed(&bound->port, key)) {
        return "our key is not on its list (`ringpipe keys trust` there)";
    }
    return strcmp(connecting->server_key, theirs->keys.public_text) == 0
               ? NULL
               : "it has another key than the one given here";
}

/* The port that accepts our key, among those that share the address, or else the first. */
static inproc_port *find_listener(const inproc_port *port, const char **why) {
    inproc_port *first = find_bound(hub_of(port), port->port.endpoint);
    inproc_port *at = first;
    *why = NULL;
    while (at && (*why = why_refused(at, port)) != NULL) {
        at = find_next_bound(hub_of(port), port->port.endpoint, at);
    }
    return at ? at : first;
}

static bool dial_endpoint(inproc_port *port, int64_t now, rp_port_event *out) {
    rp_hub *hub = hub_of(port);
    const char *why;
    inproc_port *bound = find_listener(port, &why);
    port->dial_ns = now + DIAL_NS;
    if (why) {
        const inproc_transport *ours = (const inproc_transport *)port->port.transport;
        rp_port_note_stranger(&bound->port, ours->keys.public_text, "inproc", strlen("inproc"));
        *out = (rp_port_event){.kind = RP_PORT_REFUSED, .why = why};
        return true;
    }
    if (!bound && port->met) {
        *out = (rp_port_event){.kind = RP_PORT_ABSENT};
        return true;
    }
    if (!bound || make_connection(hub, bound, port) != RP_OK) {
        return false;
    }
    port->port.connected = port->met = true;
    *out = (rp_port_event){.kind = RP_PORT_CONNECTED};
    return true;
}

static bool step_connecting(inproc_port *port, rp_port_event *out) {
    const int64_t now = rp_clock_now_ns(port->port.transport->clock);
    connection *c = port->connection;
    if (c && !c->end[BOUND] && c->to[CONNECTING].count == 0) {
        port->connection = NULL;
        port->port.connected = false;
        port->dial_ns = now; /* another port may listen there already */
        leave_connection(hub_of(port), c, CONNECTING);
        *out = (rp_port_event){.kind = RP_PORT_LOST};
        return true;
    }
    return !port->connection && now >= port->dial_ns && dial_endpoint(port, now, out);
}

/* Reports each connection once when it begins and once when it has ended and is empty. */
static bool step_bound(inproc_port *port, rp_port_event *out) {
    for (connection *c = port->first; c; c = c->next) {
        *out = (rp_port_event){.kind = RP_PORT_CONNECTED, .peer = c->number};
        if (!c->told) {
            c->told = true;
            return true;
        }
        if (!c->end[CONNECTING] && c->to[BOUND].count == 0) {
            out->kind = RP_PORT_LOST;
            leave_connection(hub_of(port), c, BOUND);
            return true;
        }
    }
    return false;
}

static bool step_inproc(rp_port *base, rp_port_event *out) {
    inproc_port *port = (inproc_port *)base;
    port->full = 0;
    return base->bound ? step_bound(port, out) : step_connecting(port, out);
}

static void reopen_inproc(rp_port *base) {
    inproc_port *port = (inproc_port *)base;
    RP_ASSERT(!base->bound);
    if (port->connection) {
        leave_connection(hub_of(port), port->connection, CONNECTING);
    }
    port->connection = NULL;
    base->connected = false;
    port->dial_ns = rp_clock_now_ns(base->transport->clock);
}

static void address_inproc(const rp_port *base, const rp_packet *packet,
                           char out[RP_PORT_ADDRESS_BYTES]) {
    (void)base; /* inproc ports have no handles */
    (void)snprintf(out, RP_PORT_ADDRESS_BYTES, "inproc:%" PRIu64, packet->peer);
}

static bool traffic_inproc(const rp_port *base, rp_port_traffic *out) {
    (void)base; /* packets arrive whole or not at all */
    (void)out;
    return false;
}

static bool has_news(const connection *c, int side) {
    return c->to[side].count > 0 || !c->end[!side] || (side == BOUND && !c->told);
}

static int64_t deadline_ns(rp_port *base, int64_t now) {
    const inproc_port *port = (const inproc_port *)base;
    const int side = side_of(port);
    if (!base->bound && !port->connection) {
        return port->dial_ns > now ? port->dial_ns : now;
    }
    const connection *c = base->bound ? port->first : port->connection;
    for (; c; c = base->bound ? c->next : NULL) {
        const queue *there = &c->to[!side];
        if (has_news(c, side) || (port->full == c->number && there->count < there->capacity)) {
            return now;
        }
    }
    return INT64_MAX;
}

static uint32_t handles_inproc(rp_port *base, rp_handle *out) {
    (void)base;
    (void)out;
    return 0;
}

const rp_transport_kind rp_transport_inproc = {
    .name = "inproc",
    .start = start_inproc,
    .finish = finish_inproc,
    .open = open_port,
    .close = close_port,
    .post = post_inproc,
    .take = take_inproc,
    .step = step_inproc,
    .deadline_ns = deadline_ns,
    .handles = handles_inproc,
    .reopen = reopen_inproc,
    .address = address_inproc,
    .traffic = traffic_inproc,
};
