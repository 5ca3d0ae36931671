/* Creates the ZeroMQ socket of a port: a ROUTER with CURVE's server role on the binding end, a
 * DEALER on the connecting end.
 *
 * Why ROUTER: a peer that lost power leaves a dead connection, and a DEALER would distribute its
 * messages between that and the new one. With a ROUTER the caller names the connection that it
 * answers.
 *
 * source  libzmq 4.3.4 doc/zmq_setsockopt, zmq_socket_monitor */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "transport/listen.h"
#include "transport/zmq_own.h"

enum {
    CURVE_BYTES = 64, /* what MAXMSGSIZE must allow in addition to a frame's bytes */
    HANDSHAKE_MS = 5000,
    RECONNECT_MS = 100,
    RECONNECT_MAX_MS = 1000,
    CONNECT_MS = 1500, /* a longer wait for a SYN into a dead network is useless */
    /* then TCP gives the connection up, which is safe because the link repeats */
    TCP_UNACKED_MS = 5000,
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_EACH_S = 3,
    KEEPALIVE_COUNT = 3,
    BIND_TRIES = 100,
    BIND_NAP_NS = 5000000
};

typedef struct {
    int option;
    int value;
} setting;

static rp_err set_numbers(zmq_port *port, const setting *settings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const setting *s = &settings[i];
        if (zmq_setsockopt(port->end->socket, s->option, &s->value, sizeof s->value) != 0) {
            return rp_fail(RP_ERR_IO, "link %s: ZeroMQ option %d: %s", port->port.name, s->option,
                           zmq_strerror(zmq_errno()));
        }
    }
    return RP_OK;
}

static rp_err set_text(zmq_port *port, int option, const char *text) {
    if (zmq_setsockopt(port->end->socket, option, text, strlen(text)) != 0) {
        return rp_fail(RP_ERR_IO, "link %s: ZeroMQ option %d: %s", port->port.name, option,
                       zmq_strerror(zmq_errno()));
    }
    return RP_OK;
}

static rp_err set_options(zmq_port *port) {
    const int queue = (int)port->port.queue; /* counted in messages, not bytes */
    const setting common[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_SNDHWM, queue},
        {ZMQ_RCVHWM, queue},
        {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
        {ZMQ_RECONNECT_IVL, RECONNECT_MS},
        {ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS},
        {ZMQ_CONNECT_TIMEOUT, CONNECT_MS},
        {ZMQ_TCP_MAXRT, TCP_UNACKED_MS},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S},
        {ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_EACH_S},
        {ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_COUNT},
    };
    const setting binding[] = {{ZMQ_CURVE_SERVER, 1}, {ZMQ_ROUTER_MANDATORY, 1}};
    const setting connecting[] = {{ZMQ_IMMEDIATE, 1}};
    const int64_t bytes_max = (int64_t)port->port.frame_bytes_max + CURVE_BYTES;
    rp_err err = set_numbers(port, common, sizeof common / sizeof common[0]);
    if (err == RP_OK && port->port.bound) {
        err = set_numbers(port, binding, sizeof binding / sizeof binding[0]);
    } else if (err == RP_OK) {
        err = set_numbers(port, connecting, sizeof connecting / sizeof connecting[0]);
    }
    if (err == RP_OK &&
        zmq_setsockopt(port->end->socket, ZMQ_MAXMSGSIZE, &bytes_max, sizeof bytes_max) != 0) {
        err = rp_fail(RP_ERR_IO, "link %s: largest message %lld: %s", port->port.name,
                      (long long)bytes_max, zmq_strerror(zmq_errno()));
    }
    return err;
}

static rp_err set_keys(zmq_port *port, const rp_port_options *options) {
    rp_err err;
    const rp_keypair *keys = &zmq_transport_of(port)->keys;
    RP_TRY(set_text(port, ZMQ_CURVE_PUBLICKEY, keys->public_text));
    RP_TRY(set_text(port, ZMQ_CURVE_SECRETKEY, keys->secret_text));
    if (!port->port.bound) {
        return set_text(port, ZMQ_CURVE_SERVERKEY, options->peer_public);
    }
    RP_TRY(set_text(port, ZMQ_ZAP_DOMAIN, port->end->domain));
#ifdef ZMQ_ZAP_ENFORCE_DOMAIN
    const setting enforce = {ZMQ_ZAP_ENFORCE_DOMAIN, 1};
    RP_TRY(set_numbers(port, &enforce, 1));
#endif
    return RP_OK;
fail:
    return err;
}

rp_err zmq_socket_fd(void *socket, int *out) {
    size_t size = sizeof *out;
    if (zmq_getsockopt(socket, ZMQ_FD, out, &size) != 0) {
        return rp_fail(RP_ERR_IO, "zmq: no descriptor: %s", zmq_strerror(zmq_errno()));
    }
    return RP_OK;
}

int zmq_socket_events(void *socket) {
    int events = 0;
    size_t size = sizeof events;
    return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 ? events : 0;
}

/* Monitors only handshakes of a connecting end, whose number the reconnect interval bounds.
 * ZeroMQ's thread blocks on a monitor that is not read, so unknown clients must not be able to fill
 * one. */
static rp_err open_monitor(zmq_port *port) {
    char address[RP_PORT_ENDPOINT_BYTES];
    snprintf(address, sizeof address, "inproc://monitor-%u", port->id);
    int events = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                 ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED;
    int zero = 0;
    if (zmq_socket_monitor(port->end->socket, address, events) != 0) {
        return rp_fail(RP_ERR_IO, "link %s: no monitor: %s", port->port.name,
                       zmq_strerror(zmq_errno()));
    }
    port->monitor = zmq_socket(zmq_transport_of(port)->context, ZMQ_PAIR);
    if (!port->monitor || zmq_setsockopt(port->monitor, ZMQ_LINGER, &zero, sizeof zero) != 0 ||
        zmq_setsockopt(port->monitor, ZMQ_RCVHWM, &zero, sizeof zero) != 0 ||
        zmq_connect(port->monitor, address) != 0) {
        return rp_fail(RP_ERR_IO, "link %s: no monitor: %s", port->port.name,
                       zmq_strerror(zmq_errno()));
    }
    port->monitor_ready = true;
    return zmq_socket_fd(port->monitor, &port->monitor_fd);
}

/* Retries because ZeroMQ's thread releases the address of a closed socket some moments later. */
static int bind_retrying(zmq_port *port, const char *endpoint) {
    const struct timespec nap = {.tv_nsec = BIND_NAP_NS};
    for (int i = 0; i < BIND_TRIES; i++) {
        if (zmq_bind(port->end->socket, endpoint) == 0) {
            return 0;
        }
        if (zmq_errno() != EADDRINUSE) {
            return -1;
        }
        (void)nanosleep(&nap, NULL);
    }
    errno = EADDRINUSE;
    return -1;
}

rp_err zmq_socket_open(zmq_port *port, const rp_port_options *options) {
    rp_err err;
    const bool bound = port->port.bound;
    const char *wanted = bound ? options->bind : options->connect;
    char numeric[RP_PORT_ENDPOINT_BYTES];
    port->end->socket =
        zmq_socket(zmq_transport_of(port)->context, bound ? ZMQ_ROUTER : ZMQ_DEALER);
    if (!port->end->socket) {
        err = rp_fail(RP_ERR_IO, "link %s: no socket: %s", port->port.name,
                      zmq_strerror(zmq_errno()));
        goto fail;
    }
    port->end->ready = true;
    RP_TRY(zmq_socket_fd(port->end->socket, &port->end->fd));
    RP_TRY(set_options(port));
    RP_TRY(set_keys(port, options));
    if (!bound) {
        RP_TRY(open_monitor(port));
    }
    if (bound) {
        RP_TRY(rp_listen_resolve(options->bind, numeric, sizeof numeric));
    }
    if ((bound ? bind_retrying(port, numeric) : zmq_connect(port->end->socket, wanted)) != 0) {
        const int code = zmq_errno();
        err =
            rp_fail(RP_ERR_IO, "link %s: cannot %s %s: %s%s", port->port.name,
                    bound ? "bind to" : "connect to", wanted, zmq_strerror(code),
                    code == EADDRNOTAVAIL ? ": no interface of this machine has that address" : "");
        goto fail;
    }
    size_t size = sizeof port->port.endpoint;
    if (zmq_getsockopt(port->end->socket, ZMQ_LAST_ENDPOINT, port->port.endpoint, &size) != 0) {
        err = rp_fail(RP_ERR_IO, "link %s: no endpoint: %s", port->port.name,
                      zmq_strerror(zmq_errno()));
        goto fail;
    }
    return RP_OK;
fail:
    return err;
}

void zmq_socket_close(zmq_port *port) {
    zmq_absent_end(port);
    if (port->monitor) {
        (void)zmq_socket_monitor(port->end->socket, NULL, 0);
        (void)zmq_close(port->monitor);
        port->monitor = NULL;
    }
    if (port->end) {
        zmq_end_leave(port);
    }
}
