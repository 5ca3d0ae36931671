#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

void rp_packet_drop(rp_packet *packet) {
    for (uint32_t i = 0; i < packet->count; i++) {
        rp_buffer_drop(&packet->frame[i]);
    }
    packet->count = 0;
}

size_t rp_packet_bytes(const rp_packet *packet) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < packet->count; i++) {
        bytes += packet->frame[i]->bytes;
    }
    return bytes;
}

const rp_transport_kind *rp_transport_find(const char *name) {
    for (uint32_t i = 0; rp_transport_kinds[i]; i++) {
        if (strcmp(rp_transport_kinds[i]->name, name) == 0) {
            return rp_transport_kinds[i];
        }
    }
    return NULL;
}

rp_err rp_transport_start(rp_arena *arena, const char *kind, const rp_transport_options *options,
                          rp_transport **out) {
    const rp_transport_kind *found = rp_transport_find(kind);
    *out = NULL;
    if (!found) {
        return rp_fail(RP_ERR_USAGE, "there is no transport '%.40s'", kind);
    }
    return found->start(arena, options, out);
}

void rp_transport_finish(rp_transport **transport_taken) {
    rp_transport *transport = *transport_taken;
    *transport_taken = NULL;
    if (transport) {
        transport->kind->finish(transport);
    }
}

rp_err rp_port_open(rp_transport *transport, const rp_port_options *options, rp_port **out) {
    *out = NULL;
    return transport->kind->open(transport, options, out);
}

void rp_port_close(rp_port **port_taken) {
    rp_port *port = *port_taken;
    *port_taken = NULL;
    if (port) {
        port->kind->close(port);
    }
}

rp_err rp_port_allow(rp_port *port, const char *public_text) {
    RP_ASSERT(port->bound);
    for (; port->inner; port = port->inner) {
    }
    uint8_t key[RP_KEY_BYTES];
    rp_err err = rp_key_decode(public_text, key);
    if (err != RP_OK) {
        return err;
    }
    if (port->allowed_count == RP_PORT_KEYS_MAX) {
        return rp_fail(RP_ERR_LIMIT, "link %s: more than %d keys", port->name, RP_PORT_KEYS_MAX);
    }
    memcpy(port->allowed[port->allowed_count++], key, RP_KEY_BYTES);
    return RP_OK;
}

rp_err rp_port_allow_only(rp_port *port, const char *const *public_text, uint32_t count) {
    for (; port->inner; port = port->inner) {
    }
    const uint32_t before = port->allowed_count;
    uint8_t kept[RP_PORT_KEYS_MAX][RP_KEY_BYTES];
    rp_err err = RP_OK;
    memcpy(kept, port->allowed, sizeof kept);
    port->allowed_count = 0;
    for (uint32_t i = 0; i < count && err == RP_OK; i++) {
        err = rp_port_allow(port, public_text[i]);
    }
    if (err != RP_OK) {
        memcpy(port->allowed, kept, sizeof kept);
        port->allowed_count = before;
    }
    return err;
}

bool rp_port_is_allowed(const rp_port *port, const uint8_t key[RP_KEY_BYTES]) {
    for (uint32_t i = 0; i < port->allowed_count; i++) {
        if (memcmp(port->allowed[i], key, RP_KEY_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

bool rp_port_is_connected(const rp_port *port) {
    for (; port->inner; port = port->inner) {
    }
    return port->connected;
}

uint64_t rp_port_refused(const rp_port *port) {
    uint64_t refused = 0;
    for (; port; port = port->inner) {
        refused += port->refused;
    }
    return refused;
}

uint64_t rp_port_strangers(const rp_port *port) {
    for (; port->inner; port = port->inner) {
    }
    return port->strangers;
}

rp_stranger rp_port_stranger(const rp_port *port) {
    for (; port->inner; port = port->inner) {
    }
    return (rp_stranger){port->strangers, port->stranger_key, port->stranger_address};
}

void rp_port_note_stranger(rp_port *port, const char *key, const char *address,
                           size_t address_bytes) {
    const size_t most = sizeof port->stranger_address - 1;
    const size_t bytes = address_bytes < most ? address_bytes : most;
    port->strangers++;
    (void)snprintf(port->stranger_key, sizeof port->stranger_key, "%s", key);
    memcpy(port->stranger_address, address, bytes);
    port->stranger_address[bytes] = '\0';
}

rp_err rp_port_new(rp_transport *transport, const rp_port_options *options, size_t bytes,
                   rp_port **out) {
    rp_arena arena;
    void *memory;
    *out = NULL;
    rp_arena_init(&arena, "port", 0);
    rp_err err = rp_arena_alloc(&arena, 1, bytes, &memory);
    if (err != RP_OK) {
        return err;
    }
    rp_port *port = memory;
    port->kind = transport->kind;
    port->transport = transport;
    port->arena = arena;
    port->bound = options->bind != NULL;
    port->has_one_key = port->bound && options->peer_public;
    port->queue = options->queue;
    port->frame_bytes_max = options->frame_bytes_max;
    snprintf(port->name, sizeof port->name, "%s", options->name);
    snprintf(port->endpoint, sizeof port->endpoint, "%s",
             port->bound ? options->bind : options->connect);
    if (port->bound && options->peer_public) {
        err = rp_port_allow(port, options->peer_public);
    } else if (options->peer_public) {
        uint8_t key[RP_KEY_BYTES];
        err = rp_key_decode(options->peer_public, key);
    }
    if (err != RP_OK) {
        rp_port_free(port);
        return err;
    }
    *out = port;
    return RP_OK;
}

void rp_port_free(rp_port *port) {
    rp_arena arena = port->arena; /* the port itself is stored in its arena */
    rp_arena_finish(&arena);
}
