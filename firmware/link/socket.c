/* The one ZeroMQ socket of a link: ROUTER with the CURVE server's role on the binding end, DEALER
 * on the connecting end.
 *
 * Why ROUTER: a peer that lost its power leaves a dead connection behind, and a DEALER would share
 * its messages out between that and the new one. We answer where the peer was last heard.
 * source  libzmq 4.3.4 doc/zmq_setsockopt, zmq_socket_monitor */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "link/inside.h"

enum {
    CURVE_BYTES = 64,   /* what MAXMSGSIZE must allow beyond a frame's bytes */
    HANDSHAKES_MAX = 3, /* broken off in a row, before we say that the key is wrong */
    HANDSHAKE_MS = 5000,
    RECONNECT_MS = 100,
    RECONNECT_MAX_MS = 1000,
    CONNECT_MS = 1500,     /* a SYN into a dead network is not worth a longer wait */
    TCP_UNACKED_MS = 5000, /* then the connection is given up: safe, we replay */
    KEEPALIVE_IDLE_S = 10,
    KEEPALIVE_EACH_S = 3,
    KEEPALIVE_COUNT = 3,
    BIND_TRIES = 100,
    BIND_NAP_NS = 5000000
};

#define RECONNECT_NS (2 * RP_NS_PER_S)

typedef struct {
    int option;
    int value;
} setting;

static rp_err set_all(rp_link *link, const setting *settings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const setting *s = &settings[i];
        if (zmq_setsockopt(link->socket, s->option, &s->value, sizeof s->value) != 0) {
            return rp_fail(RP_ERR_IO, "link %s: ZeroMQ option %d: %s", link->name, s->option,
                           zmq_strerror(zmq_errno()));
        }
    }
    return RP_OK;
}

static rp_err set_text(rp_link *link, int option, const char *text) {
    if (zmq_setsockopt(link->socket, option, text, strlen(text)) != 0) {
        return rp_fail(RP_ERR_IO, "link %s: ZeroMQ option %d: %s", link->name, option,
                       zmq_strerror(zmq_errno()));
    }
    return RP_OK;
}

static rp_err set_options(rp_link *link) {
    /* messages, not bytes: the windows bound the data, the rest is small */
    int queue =
        (int)((link->window > link->send_window ? link->window : link->send_window) + QUEUE_SLACK);
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
    int64_t bytes_max = (int64_t)link->part_bytes_max;
    bytes_max = (bytes_max < RP_FRAME_BYTES_MAX ? RP_FRAME_BYTES_MAX : bytes_max) + CURVE_BYTES;
    rp_err err = set_all(link, common, sizeof common / sizeof common[0]);
    if (err == RP_OK && link->bound) {
        err = set_all(link, binding, sizeof binding / sizeof binding[0]);
    } else if (err == RP_OK) {
        err = set_all(link, connecting, sizeof connecting / sizeof connecting[0]);
    }
    if (err == RP_OK &&
        zmq_setsockopt(link->socket, ZMQ_MAXMSGSIZE, &bytes_max, sizeof bytes_max) != 0) {
        err = rp_fail(RP_ERR_IO, "link %s: largest message %lld: %s", link->name,
                      (long long)bytes_max, zmq_strerror(zmq_errno()));
    }
    return err;
}

static rp_err set_keys(rp_link *link, const rp_link_options *options) {
    rp_err err;
    RP_TRY(set_text(link, ZMQ_CURVE_PUBLICKEY, link->links->public_text));
    RP_TRY(set_text(link, ZMQ_CURVE_SECRETKEY, link->links->secret_text));
    if (!link->bound) {
        return set_text(link, ZMQ_CURVE_SERVERKEY, options->peer_public);
    }
    RP_TRY(set_text(link, ZMQ_ZAP_DOMAIN, link->domain));
#ifdef ZMQ_ZAP_ENFORCE_DOMAIN
    const setting enforce = {ZMQ_ZAP_ENFORCE_DOMAIN, 1};
    RP_TRY(set_all(link, &enforce, 1));
#endif
    return RP_OK;
fail:
    return err;
}

/* Only the connecting end's handshakes are watched: their number is bounded by the reconnect
 * interval. ZeroMQ's thread blocks on a monitor that nobody reads, so that strangers must not be
 * able to fill one. */
static rp_err open_monitor(rp_link *link) {
    char address[ENDPOINT_BYTES];
    snprintf(address, sizeof address, "inproc://monitor-%u", link->id);
    int events = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                 ZMQ_EVENT_DISCONNECTED;
    int zero = 0;
    if (zmq_socket_monitor(link->socket, address, events) != 0) {
        return rp_fail(RP_ERR_IO, "link %s: no monitor: %s", link->name, zmq_strerror(zmq_errno()));
    }
    link->monitor = zmq_socket(link->links->context, ZMQ_PAIR);
    if (!link->monitor || zmq_setsockopt(link->monitor, ZMQ_LINGER, &zero, sizeof zero) != 0 ||
        zmq_setsockopt(link->monitor, ZMQ_RCVHWM, &zero, sizeof zero) != 0 ||
        zmq_connect(link->monitor, address) != 0) {
        return rp_fail(RP_ERR_IO, "link %s: no monitor: %s", link->name, zmq_strerror(zmq_errno()));
    }
    return RP_OK;
}

/* ZeroMQ's thread frees the port of a closed link some moments after the close. */
static int bind_retrying(rp_link *link, const char *endpoint) {
    const struct timespec nap = {.tv_nsec = BIND_NAP_NS};
    for (int i = 0; i < BIND_TRIES; i++) {
        if (zmq_bind(link->socket, endpoint) == 0) {
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

rp_err socket_open(rp_link *link, const rp_link_options *options) {
    rp_err err;
    const char *wanted = link->bound ? options->bind : options->connect;
    link->socket = zmq_socket(link->links->context, link->bound ? ZMQ_ROUTER : ZMQ_DEALER);
    if (!link->socket) {
        err = rp_fail(RP_ERR_IO, "link %s: no socket: %s", link->name, zmq_strerror(zmq_errno()));
        goto fail;
    }
    RP_TRY(set_options(link));
    RP_TRY(set_keys(link, options));
    if (!link->bound) {
        RP_TRY(open_monitor(link));
    }
    if ((link->bound ? bind_retrying(link, wanted) : zmq_connect(link->socket, wanted)) != 0) {
        err = rp_fail(RP_ERR_IO, "link %s: can not %s %s: %s", link->name,
                      link->bound ? "bind to" : "connect to", wanted, zmq_strerror(zmq_errno()));
        goto fail;
    }
    size_t size = sizeof link->endpoint;
    if (zmq_getsockopt(link->socket, ZMQ_LAST_ENDPOINT, link->endpoint, &size) != 0) {
        err = rp_fail(RP_ERR_IO, "link %s: no endpoint: %s", link->name, zmq_strerror(zmq_errno()));
        goto fail;
    }
    return RP_OK;
fail:
    return err;
}

void socket_close(rp_link *link) {
    if (link->monitor) {
        (void)zmq_socket_monitor(link->socket, NULL, 0);
        (void)zmq_close(link->monitor);
        link->monitor = NULL;
    }
    if (link->socket) {
        (void)zmq_close(link->socket);
        link->socket = NULL;
    }
}

static void refused_by_peer(rp_link *link, const char *why) {
    if (!link->stats.auth_failed) {
        rp_log_error("link %s: %s refuses us: %s", link->name, link->endpoint, why);
    }
    link->stats.auth_failed = true;
}

/* ZeroMQ tries again by itself after most ends of a connection, but never after a refusal or
 * another error of the protocol: then the peer could trust us later in vain. */
static void reconnect(rp_link *link) {
    link->reconnect_ns = link_now_ns(link) + RECONNECT_NS;
    (void)zmq_disconnect(link->socket, link->endpoint); /* fails when ZeroMQ has given it up */
    if (zmq_connect(link->socket, link->endpoint) != 0) {
        rp_log_error("link %s: can not connect to %s: %s", link->name, link->endpoint,
                     zmq_strerror(zmq_errno()));
    }
}

/* A wrong server key looks like a connection that closes in the handshake: the server can not tell
 * us more, because it can not read us. A reset line looks the same, hence HANDSHAKES_MAX. */
static void take_event(rp_link *link, uint16_t event, uint32_t value) {
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        link->failed_handshakes = 0;
        link->reconnect_ns = 0;
        link->stats.auth_failed = false;
        link->probe_now = true;
        return;
    }
    if (link->reconnect_ns == 0) {
        link->reconnect_ns = link_now_ns(link) + RECONNECT_NS;
    }
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
        refused_by_peer(link, "our key is not on its list (`ringpipe keys trust` there)");
    } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
        refused_by_peer(link, "it does not speak CURVE, or has another key than we were told");
    } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL && value != ETIMEDOUT &&
               ++link->failed_handshakes == HANDSHAKES_MAX) {
        refused_by_peer(link, "it breaks off every handshake, as one with another key does");
    }
}

void socket_monitor(rp_link *link) {
    uint8_t event[6];
    uint8_t address[ENDPOINT_BYTES];
    while (link->monitor &&
           zmq_recv(link->monitor, event, sizeof event, ZMQ_DONTWAIT) == (int)sizeof event) {
        (void)zmq_recv(link->monitor, address, sizeof address, ZMQ_DONTWAIT);
        uint16_t number;
        uint32_t value;
        memcpy(&number, event, sizeof number);
        memcpy(&value, event + sizeof number, sizeof value);
        take_event(link, number, value);
    }
    if (link->reconnect_ns && link_now_ns(link) >= link->reconnect_ns) {
        reconnect(link);
    }
}

void close_frames(zmq_msg_t *frames, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        (void)zmq_msg_close(&frames[i]);
    }
}

sent socket_send(rp_link *link, zmq_msg_t *frames, uint32_t count) {
    if (link->bound) {
        if (link->route_bytes == 0) {
            return GONE;
        }
        if (zmq_send(link->socket, link->route, link->route_bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) <
            0) {
            if (zmq_errno() == EHOSTUNREACH) {
                link->route_bytes = 0;
                return GONE;
            }
            link->want_write = true;
            return FULL;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        int flags = ZMQ_DONTWAIT | (i + 1 < count ? ZMQ_SNDMORE : 0);
        if (zmq_msg_send(&frames[i], link->socket, flags) < 0) {
            if (i == 0 && !link->bound) {
                link->want_write = true;
                return FULL;
            }
            /* The connection ended between two frames. ZeroMQ wants to see the message's end and
             * drops it; the replay repairs it. */
            (void)zmq_msg_close(&frames[i]);
        }
    }
    return SENT;
}

static bool more_follows(rp_link *link) {
    int more = 0;
    size_t size = sizeof more;
    return zmq_getsockopt(link->socket, ZMQ_RCVMORE, &more, &size) == 0 && more;
}

/* False when there is none. */
static bool receive_frame(rp_link *link, zmq_msg_t *frame) {
    (void)zmq_msg_init(frame);
    if (zmq_msg_recv(frame, link->socket, ZMQ_DONTWAIT) < 0) {
        (void)zmq_msg_close(frame);
        return false;
    }
    return true;
}

uint32_t socket_recv(rp_link *link, zmq_msg_t *frames, uint8_t *route, size_t *route_bytes) {
    zmq_msg_t frame;
    bool too_long = false;
    uint32_t count = 0;
    *route_bytes = 0;
    if (link->bound) {
        if (!receive_frame(link, &frame)) {
            return 0;
        }
        if (zmq_msg_size(&frame) <= ROUTE_BYTES_MAX) {
            *route_bytes = zmq_msg_size(&frame);
            memcpy(route, zmq_msg_data(&frame), *route_bytes);
        }
        (void)zmq_msg_close(&frame);
    }
    do {
        if (!receive_frame(link, &frame)) {
            break;
        }
        if (count == FRAMES_MAX) {
            too_long = true;
            (void)zmq_msg_close(&frame);
            continue;
        }
        (void)zmq_msg_init(&frames[count]);
        (void)zmq_msg_move(&frames[count], &frame);
        (void)zmq_msg_close(&frame);
        count++;
    } while (more_follows(link));
    if (too_long) {
        close_frames(frames, count);
        link->stats.refused++;
        rp_log_warn("link %s: a message of more than %d frames", link->name, FRAMES_MAX);
        return 0;
    }
    return count;
}
