/* Private to the zmq kind: transport_zmq.c, zmq_socket.c and zap.c. */
#ifndef RP_TRANSPORT_ZMQ_OWN_H
#define RP_TRANSPORT_ZMQ_OWN_H

#include <zmq.h>

#include "transport/transport.h"

enum { ZMQ_REFUSED_KEYS_MAX = 16, ZMQ_DOMAIN_BYTES = 24 };

typedef struct zmq_port zmq_port;

/* One ZeroMQ context and one ZAP handler. */
typedef struct {
    rp_transport transport;
    void *context;
    void *zap;
    int zap_fd;
    bool zap_ready; /* as zmq_port's `ready` */
    rp_keypair keys;
    zmq_port *first;
    uint32_t next_id;
    uint8_t refused[ZMQ_REFUSED_KEYS_MAX][RP_KEY_BYTES]; /* already logged */
    uint32_t refused_count;
} zmq_transport;

struct zmq_port {
    rp_port port;
    zmq_port *next;
    uint32_t id;
    char domain[ZMQ_DOMAIN_BYTES]; /* of its ZAP requests */
    void *socket;                  /* ROUTER when bound, else DEALER */
    void *monitor;                 /* of our handshakes, when connecting */
    int fd;                        /* of the socket */
    int monitor_fd;
    bool ready;  /* something may have come: look, which costs system calls */
    bool waited; /* handles() was asked since the last round, to be waited on */
    bool monitor_ready;
    bool signal_taken;          /* a send may have taken the signal of what came: look again */
    bool want_write;            /* ZeroMQ had no room */
    uint32_t failed_handshakes; /* in a row */
    int64_t reconnect_ns;       /* connecting: after the end of a connection; 0 = none */
};

static inline zmq_transport *zmq_transport_of(const zmq_port *port) {
    return (zmq_transport *)port->port.transport;
}

/* zap.c: answers the handshakes that wait. */
rp_err zap_open(zmq_transport *transport) RP_MUST_CHECK;
void zap_serve(zmq_transport *transport);

/* zmq_socket.c: makes the socket with its options and keys, and the monitor; binds or connects. */
rp_err zmq_socket_open(zmq_port *port, const rp_port_options *options) RP_MUST_CHECK;
void zmq_socket_close(zmq_port *port);
/* The descriptor that ZeroMQ makes readable when a socket has something to do. ZeroMQ takes the
 * signal back in any call on that socket, whether or not the call was about what came; after a
 * receive that finds nothing, the next signal will come.
 * source  libzmq 4.3.4 doc/zmq_getsockopt, ZMQ_FD */
rp_err zmq_socket_fd(void *socket, int *out) RP_MUST_CHECK;
/* Which of ZMQ_POLLIN and ZMQ_POLLOUT hold now; takes the signal back. */
int zmq_socket_events(void *socket);

#endif
