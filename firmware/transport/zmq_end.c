/* One socket for all ports of a transport that bind the same address; connections are told apart by
 * their key. Any of these ports may read the socket. Packets for another port wait in its queue,
 * and no more is read while such a queue is full. */
#include <stdio.h>
#include <string.h>

#include "transport/zmq_own.h"

/* ---- joining --------------------------------------------------------------------------------- */

/* A port "*" is different each time. */
static bool may_share(const rp_port_options *options) {
    const size_t length = options->bind ? strlen(options->bind) : 0;
    return options->peer_public && length > 0 && options->bind[length - 1] != '*';
}

static zmq_end *find_end(const zmq_port *port, const rp_port_options *options) {
    const bool may = may_share(options);
    for (const zmq_port *other = port->next; may && other; other = other->next) {
        const bool same = other->end && (strcmp(other->end->wanted, options->bind) == 0 ||
                                         strcmp(other->port.endpoint, options->bind) == 0);
        if (other->port.bound && other->port.has_one_key && same) {
            return other->end;
        }
    }
    return NULL;
}

static rp_err make_queues(const zmq_transport *transport, const zmq_end *end) {
    rp_err err = RP_OK;
    for (zmq_port *port = transport->first; err == RP_OK && port; port = port->next) {
        if (port->end == end && !port->came) {
            err = RP_ARENA_NEW(&port->port.arena, port->port.queue, &port->came);
        }
    }
    return err;
}

static rp_err share_end(zmq_port *port, zmq_end *end) {
    const zmq_port *other = port->next;
    while (other->end != end) {
        other = other->next;
    }
    if (other->port.frame_bytes_max != port->port.frame_bytes_max) {
        return rp_fail(RP_ERR_USAGE,
                       "link %s: frames at %s have at most %zu bytes, %zu were requested",
                       port->port.name, other->port.endpoint, other->port.frame_bytes_max,
                       port->port.frame_bytes_max);
    }
    port->end = end;
    end->ports++;
    end->shared = true;
    memcpy(port->port.endpoint, other->port.endpoint, sizeof port->port.endpoint);
    return make_queues(zmq_transport_of(port), end);
}

rp_err zmq_end_join(zmq_port *port, const rp_port_options *options, bool *is_new) {
    zmq_end *there = find_end(port, options);
    void *memory;
    *is_new = !there;
    if (there) {
        return share_end(port, there);
    }
    const rp_err err = rp_block_new(sizeof(zmq_end), &memory);
    if (err == RP_OK) {
        port->end = memory;
        memset(port->end, 0, sizeof *port->end);
        port->end->ports = 1;
        (void)snprintf(port->end->domain, sizeof port->end->domain, "port-%u", port->id);
        (void)snprintf(port->end->wanted, sizeof port->end->wanted, "%s",
                       options->bind ? options->bind : "");
    }
    return err;
}

void zmq_end_leave(zmq_port *port) {
    zmq_end *end = port->end;
    rp_packet packet;
    port->end = NULL;
    if (end->held_for == port) {
        rp_packet_drop(&end->held);
        end->held_for = NULL;
    }
    while (zmq_end_take(port, &packet)) {
        rp_packet_drop(&packet);
    }
    if (--end->ports > 0) {
        return;
    }
    if (end->socket) {
        (void)zmq_close(end->socket);
    }
    rp_block_free(end);
}

/* ---- telling apart --------------------------------------------------------------------------- */

zmq_port *zmq_end_find(const zmq_transport *transport, const zmq_end *end,
                       const uint8_t key[RP_KEY_BYTES]) {
    for (zmq_port *port = transport->first; port; port = port->next) {
        if (port->end == end && rp_port_is_allowed(&port->port, key)) {
            return port;
        }
    }
    return NULL;
}

static bool queue_packet(zmq_port *port, const rp_packet *packet) {
    if (port->came_count == port->port.queue) {
        return false;
    }
    port->came[(port->came_first + port->came_count++) % port->port.queue] = *packet;
    return true;
}

bool zmq_end_may_read(zmq_end *end) {
    if (end->held_for && queue_packet(end->held_for, &end->held)) {
        end->held_for = NULL;
    }
    return !end->held_for;
}

bool zmq_end_take(zmq_port *port, rp_packet *out) {
    if (port->end) {
        (void)zmq_end_may_read(port->end); /* a held packet is delivered before the next read */
    }
    if (port->came_count == 0) {
        return false;
    }
    *out = port->came[port->came_first];
    port->came_first = (port->came_first + 1) % port->port.queue;
    port->came_count--;
    return true;
}

bool zmq_end_sort(zmq_port *port, const char *text, rp_packet *packet) {
    uint8_t key[RP_KEY_BYTES];
    zmq_port *of = NULL;
    if (strlen(text) == RP_KEY_TEXT - 1 && zmq_z85_decode(key, text)) {
        of = zmq_end_find(zmq_transport_of(port), port->end, key);
    }
    if (of == port) {
        return true;
    }
    if (!of) {
        rp_packet_drop(packet); /* its port is closed */
    } else if (!queue_packet(of, packet)) {
        port->end->held = *packet;
        port->end->held_for = of;
    }
    return false;
}
