/* ZeroMQ over TCP with CURVE, for real boards.
 *
 * ZeroMQ's own thread reads lent memory after post() has returned. ZeroMQ does not report the loss
 * of packets in flight when a connection ends. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "transport/zmq_own.h"

extern const rp_transport_kind rp_transport_zmq;

enum {
    HANDSHAKES_MAX = 3,      /* handshakes broken off in a row before we report a wrong key */
    COPIED_BYTES_MAX = 1024, /* smaller frames are cheaper to copy than to lend */
    MET_BROKEN_OFF = 4,      /* ... if the server has accepted our key before */
    ROUTE_BYTES = 5          /* routing id that ZeroMQ chose: 0, then a number */
};

/* MET_BROKEN_OFF counts only after this long: a bad line breaks handshakes for less. */
#define MET_BROKEN_OFF_NS (3 * RP_NS_PER_S)
#define RECONNECT_NS (2 * RP_NS_PER_S)
/* First pause after a protocol error, where ZeroMQ does not reconnect; doubles in a row. */
#define RESET_NS (100 * RP_NS_PER_MS)
/* A ROUTER is writable if any of its connections is, not only the one we need, so poll. */
#define FULL_POLL_NS (1 * RP_NS_PER_MS)

/* ---- transport ------------------------------------------------------------------------------- */

static void finish_zmq(rp_transport *base) {
    zmq_transport *transport = (zmq_transport *)base;
    RP_ASSERT(!transport->first);
    if (transport->zap) {
        (void)zmq_close(transport->zap);
    }
    if (transport->context) {
        while (zmq_ctx_term(transport->context) != 0 && zmq_errno() == EINTR) {
        }
    }
    explicit_bzero(transport, sizeof *transport);
}

static rp_err start_zmq(rp_arena *arena, const rp_transport_options *options, rp_transport **out) {
    rp_err err;
    uint8_t key[RP_KEY_BYTES];
    zmq_transport *transport = NULL;
    RP_TRY(rp_key_decode(options->keys->public_text, key));
    RP_TRY(rp_key_decode(options->keys->secret_text, key));
    RP_TRY(RP_ARENA_NEW(arena, 1, &transport));
    transport->transport = (rp_transport){&rp_transport_zmq, options->clock};
    transport->keys = *options->keys;
    transport->context = zmq_ctx_new();
    if (!transport->context || zmq_ctx_set(transport->context, ZMQ_BLOCKY, 0) != 0) {
        err = rp_fail(RP_ERR_MEMORY, "zmq: no context: %s", zmq_strerror(zmq_errno()));
        goto fail;
    }
    RP_TRY(zap_open(transport));
    *out = &transport->transport;
fail:
    explicit_bzero(key, sizeof key);
    if (err != RP_OK && transport) {
        finish_zmq(&transport->transport);
    }
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void close_port(rp_port *base) {
    zmq_port *port = (zmq_port *)base;
    zmq_socket_close(port);
    for (zmq_port **at = &zmq_transport_of(port)->first; *at; at = &(*at)->next) {
        if (*at == port) {
            *at = port->next;
            break;
        }
    }
    rp_port_free(base);
}

static rp_err open_port(rp_transport *base, const rp_port_options *options, rp_port **out) {
    zmq_transport *transport = (zmq_transport *)base;
    rp_port *made;
    if (options->connect && !options->peer_public) {
        return rp_fail(RP_ERR_USAGE, "link %s: connecting needs the server's key", options->name);
    }
    rp_err err = rp_port_new(base, options, sizeof(zmq_port), &made);
    if (err != RP_OK) {
        return err;
    }
    zmq_port *port = (zmq_port *)made;
    bool is_new = false;
    if (options->connect) {
        /* cannot fail: rp_port_new() has decoded it */
        (void)!rp_key_decode(options->peer_public, port->server_key);
    }
    port->id = transport->next_id++;
    port->next = transport->first;
    transport->first = port;
    err = zmq_end_join(port, options, &is_new);
    if (err == RP_OK && is_new) {
        err = zmq_socket_open(port, options);
    }
    if (err != RP_OK) {
        close_port(made);
        return err;
    }
    *out = made;
    return RP_OK;
}

/* ---- posting --------------------------------------------------------------------------------- */

/* ZeroMQ's thread calls it when the last reference to a frame is dropped. */
static void let_go(void *data, void *hint) {
    rp_buffer *buffer = hint;
    (void)data;
    rp_buffer_drop(&buffer);
}

static int make_message(zmq_msg_t *message, rp_buffer *frame) {
    if (frame->bytes <= COPIED_BYTES_MAX) {
        if (zmq_msg_init_size(message, frame->bytes) != 0) {
            return -1;
        }
        if (frame->bytes) {
            memcpy(zmq_msg_data(message), frame->data, frame->bytes);
        }
        return 0;
    }
    /* ZeroMQ only reads the memory, but its signature has no const. */
    union {
        const void *from;
        void *to;
    } data = {.from = frame->data};
    rp_buffer *reference = rp_buffer_keep(frame);
    if (zmq_msg_init_data(message, data.to, frame->bytes, let_go, reference) != 0) {
        rp_buffer_drop(&reference);
        return -1;
    }
    return 0;
}

/* The routing id of connection `peer`, in ZeroMQ's numbering. */
static void write_route(uint64_t peer, uint8_t route[ROUTE_BYTES]) {
    const uint64_t number = peer - 1;
    route[0] = 0;
    for (int i = 1; i < ROUTE_BYTES; i++) {
        route[i] = (uint8_t)(number >> (8 * (ROUTE_BYTES - 1 - i)));
    }
}

/* Returns 0 for a routing id that the peer chose itself, which our programs never do. */
static uint64_t read_route(const zmq_msg_t *frame_of) {
    zmq_msg_t *frame = (zmq_msg_t *)(uintptr_t)frame_of;
    const uint8_t *route = zmq_msg_data(frame);
    uint64_t number = 0;
    if (zmq_msg_size(frame) != ROUTE_BYTES || route[0] != 0) {
        return 0;
    }
    for (int i = 1; i < ROUTE_BYTES; i++) {
        number = number << 8 | route[i];
    }
    return number + 1;
}

static rp_err send_route(zmq_port *port, uint64_t peer) {
    uint8_t route[ROUTE_BYTES];
    write_route(peer, route);
    if (zmq_send(port->end->socket, route, sizeof route, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0) {
        return RP_OK;
    }
    if (zmq_errno() == EHOSTUNREACH) {
        return RP_ERR_PEER;
    }
    port->want_write = true;
    return RP_ERR_AGAIN;
}

static rp_err send_messages(zmq_port *port, zmq_msg_t *message, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const int flags = ZMQ_DONTWAIT | (i + 1 < count ? ZMQ_SNDMORE : 0);
        if (zmq_msg_send(&message[i], port->end->socket, flags) < 0) {
            if (i == 0 && !port->port.bound) {
                port->want_write = true;
                return RP_ERR_AGAIN;
            }
            /* The connection ended between two frames. ZeroMQ expects the rest of the message and
             * drops it; it is lost like everything else on that connection. */
            (void)zmq_msg_close(&message[i]);
        }
    }
    return RP_OK;
}

static void close_messages(zmq_msg_t *message, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        (void)zmq_msg_close(&message[i]);
    }
}

static rp_err post_zmq(rp_port *base, const rp_packet *packet) {
    zmq_port *port = (zmq_port *)base;
    zmq_msg_t message[RP_PACKET_FRAMES_MAX];
    RP_ASSERT(packet->count >= 1 && packet->count <= RP_PACKET_FRAMES_MAX);
    if (base->bound && packet->peer == 0) {
        return RP_ERR_PEER;
    }
    for (uint32_t i = 0; i < packet->count; i++) {
        if (make_message(&message[i], packet->frame[i]) != 0) {
            close_messages(message, i);
            return RP_ERR_AGAIN;
        }
    }
    port->end->signal_taken = true;
    rp_err err = base->bound ? send_route(port, packet->peer) : RP_OK;
    if (err == RP_OK) {
        err = send_messages(port, message, packet->count);
    }
    if (err != RP_OK) {
        close_messages(message, packet->count);
    }
    return err;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* A received ZeroMQ message, passed on without a copy. */
typedef struct {
    rp_buffer buffer;
    zmq_msg_t message;
} received;

static void destroy_received(rp_buffer *buffer) {
    received *r = (received *)buffer;
    (void)zmq_msg_close(&r->message);
    rp_block_free(r);
}

/* Takes ownership of the message, also on failure. ZeroMQ decrypts small frames at any offset of
 * its receive buffer; those are copied, so that data is aligned. */
static rp_err take_message(zmq_msg_t *message, rp_buffer **out) {
    const size_t bytes = zmq_msg_size(message);
    const void *data = zmq_msg_data(message);
    void *memory;
    rp_err err;
    if (bytes <= COPIED_BYTES_MAX || (uintptr_t)data % sizeof(double) != 0) {
        err = rp_buffer_new(bytes, out, &memory);
        if (err == RP_OK && bytes) {
            memcpy(memory, data, bytes);
        }
    } else {
        err = rp_block_new(sizeof(received), &memory);
        if (err == RP_OK) {
            received *r = memory;
            (void)zmq_msg_init(&r->message);
            (void)zmq_msg_move(&r->message, message);
            rp_buffer_borrow(&r->buffer, zmq_msg_data(&r->message), bytes);
            r->buffer.destroy = destroy_received;
            *out = &r->buffer;
        }
    }
    (void)zmq_msg_close(message);
    return err;
}

/* Returns false if there is no message. */
static bool receive_message(zmq_port *port, zmq_msg_t *message) {
    (void)zmq_msg_init(message);
    if (zmq_msg_recv(message, port->end->socket, ZMQ_DONTWAIT) < 0) {
        (void)zmq_msg_close(message);
        return false;
    }
    return true;
}

static bool more_follows(zmq_port *port) {
    int more = 0;
    size_t size = sizeof more;
    return zmq_getsockopt(port->end->socket, ZMQ_RCVMORE, &more, &size) == 0 && more;
}

/* Reads the key that zap.c attached to the connection of a message. */
static void read_key(const zmq_msg_t *message, char key[RP_KEY_TEXT]) {
    const char *text = zmq_msg_gets(message, "User-Id");
    (void)snprintf(key, RP_KEY_TEXT, "%s", text ? text : "");
}

/* Reads one whole packet. Returns false if no packet has arrived. *sound is false if the packet was
 * dropped because it is invalid or memory is short. `key`: on a shared end, the packet's key. */
static bool receive_packet(zmq_port *port, rp_packet *out, bool *sound, char key[RP_KEY_TEXT]) {
    zmq_msg_t message;
    *out = (rp_packet){.count = 0};
    *sound = true;
    if (!receive_message(port, &message)) {
        return false;
    }
    if (port->port.bound) {
        out->peer = read_route(&message);
        *sound = out->peer != 0;
        (void)zmq_msg_close(&message);
        if (!more_follows(port) || !receive_message(port, &message)) {
            *sound = false;
            return true;
        }
        out->origin = zmq_msg_get(&message, ZMQ_SRCFD);
        if (port->end->shared) {
            read_key(&message, key);
        }
    }
    for (;;) {
        if (*sound && out->count < RP_PACKET_FRAMES_MAX) {
            *sound = take_message(&message, &out->frame[out->count]) == RP_OK;
            out->count += *sound ? 1 : 0;
        } else {
            *sound = false;
            (void)zmq_msg_close(&message);
        }
        if (!more_follows(port) || !receive_message(port, &message)) {
            return true;
        }
    }
}

static rp_err take_zmq(rp_port *base, rp_packet *out) {
    zmq_port *port = (zmq_port *)base;
    char key[RP_KEY_TEXT] = "";
    bool sound;
    if (zmq_end_take(port, out)) {
        return RP_OK;
    }
    while (port->end->ready && zmq_end_may_read(port->end)) {
        if (!receive_packet(port, out, &sound, key)) {
            port->end->ready = false;
            port->end->signal_taken = false;
            return RP_ERR_AGAIN;
        }
        if (!sound) {
            rp_packet_drop(out);
            base->refused++;
            return RP_ERR_AGAIN; /* the next round continues */
        }
        if (!port->end->shared || zmq_end_sort(port, key, out)) {
            return RP_OK;
        }
    }
    return RP_ERR_AGAIN;
}

/* ---- connections ----------------------------------------------------------------------------- */

/* ZeroMQ reconnects by itself after most ends of a connection, but never after a refusal or another
 * protocol error. Without this, the peer could trust us later and we would not notice. */
static void connect_again(zmq_port *port, int64_t now) {
    port->reconnect_ns = now + RECONNECT_NS;
    (void)zmq_disconnect(port->end->socket, port->port.endpoint); /* fails when it was given up */
    if (zmq_connect(port->end->socket, port->port.endpoint) != 0) {
        rp_log_error("link %s: cannot connect to %s: %s", port->port.name, port->port.endpoint,
                     zmq_strerror(zmq_errno()));
    }
}

/* Finds a server that has accepted our key before, on any port. It has hardly changed its key
 * since, so if its handshakes break off silently, the line is the likely cause. Returns NULL for
 * other servers. */
static zmq_met *find_met(zmq_transport *transport, const uint8_t key[RP_KEY_BYTES]) {
    for (uint32_t i = 0; i < transport->met_count && i < ZMQ_MET_KEYS_MAX; i++) {
        if (memcmp(transport->met[i].key, key, RP_KEY_BYTES) == 0) {
            return &transport->met[i];
        }
    }
    return NULL;
}

static void note_met(zmq_transport *transport, const uint8_t key[RP_KEY_BYTES]) {
    zmq_met *met = find_met(transport, key);
    if (!met) {
        met = &transport->met[transport->met_count++ % ZMQ_MET_KEYS_MAX];
        memcpy(met->key, key, RP_KEY_BYTES);
    }
    met->broken_off = 0;
}

/* If no handshake succeeds for a while, another machine may have the address: report it. */
static bool is_broken_off(zmq_met *met, int64_t now) {
    met->since_ns = met->broken_off == 0 ? now : met->since_ns;
    met->broken_off += met->broken_off < MET_BROKEN_OFF ? 1 : 0;
    return met->broken_off >= MET_BROKEN_OFF && now - met->since_ns >= MET_BROKEN_OFF_NS;
}

/* Whether the peer closed the connection, as it does when it cannot decrypt our handshake. If our
 * own timer ends the handshake instead, its process is stopped or overloaded. */
static bool breaks_off(uint16_t event, uint32_t value) {
    return event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL && (value == EPIPE || value == ECONNRESET);
}

/* Why the peer refuses us, or NULL. A flipped bit and a reset line also end handshakes and
 * connections, hence HANDSHAKES_MAX. A wrong server key looks like a connection that closes in the
 * handshake: the server cannot explain it, because it cannot decrypt our messages. */
static const char *find_refusal(zmq_port *port, uint16_t event, uint32_t value) {
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
        return "our key is not on its list (`ringpipe keys trust` there)";
    }
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
        return ++port->failed_handshakes >= HANDSHAKES_MAX
                   ? "it does not use CURVE, or has another key than the one given here"
                   : NULL;
    }
    if (breaks_off(event, value)) {
        return ++port->failed_handshakes >= HANDSHAKES_MAX
                   ? "it ends every handshake, as a peer with another key does"
                   : NULL;
    }
    return NULL;
}

static int64_t reconnect_after_ns(const zmq_port *port, uint16_t event) {
    if (event != ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
        return RECONNECT_NS;
    }
    const int64_t after_ns = RESET_NS
                             << (port->failed_handshakes < 8 ? port->failed_handshakes : 8);
    return after_ns < RECONNECT_NS ? after_ns : RECONNECT_NS;
}

static rp_port_event read_event(zmq_port *port, uint16_t event, uint32_t value, int64_t now) {
    zmq_transport *transport = zmq_transport_of(port);
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        port->failed_handshakes = 0;
        port->reconnect_ns = 0;
        note_met(transport, port->server_key);
        return (rp_port_event){.kind = RP_PORT_CONNECTED};
    }
    if (port->reconnect_ns == 0) {
        port->reconnect_ns = now + reconnect_after_ns(port, event);
    }
    const char *why = find_refusal(port, event, value);
    zmq_met *met = find_met(transport, port->server_key);
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH || (why && !met)) {
        return (rp_port_event){.kind = RP_PORT_REFUSED, .why = why};
    }
    const bool counts = met && breaks_off(event, value) && is_broken_off(met, now);
    return (rp_port_event){.kind = counts ? RP_PORT_BROKEN_OFF : RP_PORT_LOST, .why = why};
}

static void reopen_zmq(rp_port *base) {
    zmq_port *port = (zmq_port *)base;
    RP_ASSERT(!base->bound);
    base->connected = false;
    base->taken_ns = 0;
    port->reopened = true;
    connect_again(port, rp_clock_now_ns(base->transport->clock));
}

static void address_zmq(const rp_port *base, const rp_packet *packet,
                        char out[RP_PORT_ADDRESS_BYTES]) {
    (void)base;
    zmq_traffic_from(packet->origin, out);
}

static bool traffic_zmq(const rp_port *base, rp_port_traffic *out) {
    return zmq_traffic_read((const zmq_port *)base, out);
}

static bool receive_event(zmq_port *port, uint16_t *number, uint32_t *value) {
    uint8_t event[6];
    uint8_t address[RP_PORT_ENDPOINT_BYTES];
    if (!port->monitor_ready) {
        return false;
    }
    if (zmq_recv(port->monitor, event, sizeof event, ZMQ_DONTWAIT) != (int)sizeof event) {
        port->monitor_ready = false;
        return false;
    }
    (void)zmq_recv(port->monitor, address, sizeof address, ZMQ_DONTWAIT);
    memcpy(number, event, sizeof *number);
    memcpy(value, event + sizeof *number, sizeof *value);
    return true;
}

/* Checks everything, for a caller that steps without waiting and so gets no signals. */
static void look_at_all(zmq_port *port) {
    port->end->ready = true;
    port->monitor_ready = port->monitor != NULL;
    zmq_transport_of(port)->zap_ready = true;
}

static void look_who_listens(zmq_port *port, int64_t now) {
    if (port->port.connected) {
        zmq_absent_end(port);
    } else if (port->absent.due_ns == 0) {
        zmq_absent_begin(port, now);
    }
}

static bool step_zmq(rp_port *base, rp_port_event *out) {
    zmq_port *port = (zmq_port *)base;
    uint16_t number;
    uint32_t value;
    const int64_t now = rp_clock_now_ns(base->transport->clock);
    port->want_write = false;
    if (!port->waited) {
        look_at_all(port);
    }
    /* Also for a connecting port: connections of a closed binding port end only when its handler's
     * socket is read. */
    zap_serve(zmq_transport_of(port));
    if (base->bound) {
        port->waited = false;
        return false;
    }
    if (port->reopened) {
        port->reopened = false;
        look_who_listens(port, now);
        *out = (rp_port_event){.kind = RP_PORT_LOST, .why = "given up"};
        return true;
    }
    while (receive_event(port, &number, &value)) {
        if (number == ZMQ_EVENT_CONNECTED) {
            zmq_traffic_begin(port, (int)value); /* the handshake follows */
            zmq_absent_note(port, (int)value);
            base->taken_ns = now;
            continue;
        }
        base->taken_ns = 0;
        *out = read_event(port, number, value, now);
        base->connected = out->kind == RP_PORT_CONNECTED;
        look_who_listens(port, now);
        return true;
    }
    if (zmq_absent_look(port, now)) {
        *out = (rp_port_event){.kind = RP_PORT_ABSENT};
        return true;
    }
    if (port->reconnect_ns && now >= port->reconnect_ns) {
        connect_again(port, now);
    }
    port->waited = false;
    return false;
}

/* Whether there is work for which no signal will come. Asking ZeroMQ clears the signal of arrivals
 * in the meantime, so both answers are stored. Asking also makes ZeroMQ read and so notice the end
 * of a connection: post() can then return PEER to a caller that takes nothing. */
static bool has_work(zmq_port *port) {
    const bool may_write = port->want_write && !port->port.bound;
    bool can_write = false;
    if (port->end->signal_taken || may_write) {
        const int events = zmq_socket_events(port->end->socket);
        port->end->ready = port->end->ready || (events & ZMQ_POLLIN);
        port->end->signal_taken = false;
        can_write = may_write && (events & ZMQ_POLLOUT);
    }
    return (port->end->ready && zmq_end_may_read(port->end)) || port->came_count > 0 || can_write;
}

static int64_t deadline_ns(rp_port *base, int64_t now) {
    zmq_port *port = (zmq_port *)base;
    int64_t at = port->reconnect_ns ? port->reconnect_ns : INT64_MAX;
    at = port->absent.due_ns && port->absent.due_ns < at ? port->absent.due_ns : at;
    if (has_work(port)) {
        return now;
    }
    if (base->bound && port->want_write && now + FULL_POLL_NS < at) {
        at = now + FULL_POLL_NS;
    }
    return at;
}

static uint32_t handles_zmq(rp_port *base, rp_handle *out) {
    zmq_port *port = (zmq_port *)base;
    zmq_transport *transport = zmq_transport_of(port);
    uint32_t count = 0;
    port->waited = true;
    out[count++] = (rp_handle){.fd = port->end->fd, .ready = &port->end->ready};
    out[count++] = (rp_handle){.fd = transport->zap_fd, .ready = &transport->zap_ready};
    if (!base->bound) {
        out[count++] = (rp_handle){.fd = port->monitor_fd, .ready = &port->monitor_ready};
    }
    return count;
}

const rp_transport_kind rp_transport_zmq = {
    .name = "zmq",
    .start = start_zmq,
    .finish = finish_zmq,
    .open = open_port,
    .close = close_port,
    .post = post_zmq,
    .take = take_zmq,
    .step = step_zmq,
    .deadline_ns = deadline_ns,
    .handles = handles_zmq,
    .reopen = reopen_zmq,
    .address = address_zmq,
    .traffic = traffic_zmq,
};
