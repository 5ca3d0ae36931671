/* Private to the zmq kind: transport_zmq.c, zap.c and zmq_*.c. */
#ifndef RP_TRANSPORT_ZMQ_OWN_H
#define RP_TRANSPORT_ZMQ_OWN_H

#include <sys/socket.h>
#include <zmq.h>

#include "transport/callers.h"
#include "transport/transport.h"

enum { ZMQ_REFUSED_KEYS_MAX = 16, ZMQ_MET_KEYS_MAX = 64, ZMQ_DOMAIN_BYTES = 24 };

typedef struct zmq_port zmq_port;

/* A server that has taken our key. */
typedef struct {
    uint8_t key[RP_KEY_BYTES];
    uint32_t broken_off; /* handshakes in a row since, on whatever port */
    int64_t since_ns;    /* the first of them */
} zmq_met;

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
    int64_t refused_told_ns; /* when the last one was */
    zmq_met met[ZMQ_MET_KEYS_MAX];
    uint32_t met_count; /* ever; the oldest are overwritten */
} zmq_transport;

/* A ZeroMQ socket: of one port, or of all that bind one address, each with a key of its own. */
typedef struct {
    void *socket; /* ROUTER when bound, else DEALER */
    int fd;
    char domain[ZMQ_DOMAIN_BYTES];       /* of its ZAP requests */
    char wanted[RP_PORT_ENDPOINT_BYTES]; /* where it was told to bind */
    uint32_t ports;
    rp_callers callers; /* bound: who connects */
    bool shared;        /* since a second port came: what comes is told apart by its key */
    bool ready;         /* something may have come: look, which costs system calls */
    bool signal_taken;  /* a send may have taken the signal of what came: look again */
    rp_packet held;     /* for a port whose queue is full; nothing is read behind it */
    zmq_port *held_for;
} zmq_end;

/* zmq_absent.c: asks whether anybody listens where a connection has ended. */
typedef struct {
    struct sockaddr_storage address; /* of the other end, as of the last connection */
    socklen_t bytes;                 /* of it; 0 = none yet */
    bool asking;
    int fd;           /* while it asks */
    int64_t asked_ns; /* since when */
    int64_t due_ns;   /* next look; 0 = not while there is a connection */
} zmq_absent;

struct zmq_port {
    rp_port port;
    zmq_port *next;
    uint32_t id;
    zmq_end *end;
    rp_packet *came; /* of a shared end, a ring of `queue`: another port has read it; else NULL */
    uint32_t came_first, came_count;
    void *monitor; /* of our handshakes, when connecting */
    int monitor_fd;
    bool waited; /* handles() was asked since the last round, to be waited on */
    bool monitor_ready;
    bool want_write;                  /* ZeroMQ had no room */
    uint8_t server_key[RP_KEY_BYTES]; /* connecting */
    uint32_t failed_handshakes;       /* in a row */
    int64_t reconnect_ns;             /* connecting: after the end of a connection; 0 = none */
    bool reopened;                    /* connecting: and not told yet */
    int connection_fd;                /* connecting: of ZeroMQ's socket, as long as */
    uint64_t connection_cookie;       /* it is the socket with this number; 0 = none */
    zmq_absent absent;                /* connecting */
};

static inline zmq_transport *zmq_transport_of(const zmq_port *port) {
    return (zmq_transport *)port->port.transport;
}

/* zap.c: answers the handshakes that wait. */
rp_err zap_open(zmq_transport *transport) RP_MUST_CHECK;
void zap_serve(zmq_transport *transport);

/* zmq_end.c: the end of a port: one of its own, or that of the ports which bind the same address,
 * *is_new: no socket yet. errors  MEMORY; USAGE: another frame_bytes_max than theirs */
rp_err zmq_end_join(zmq_port *port, const rp_port_options *options, bool *is_new) RP_MUST_CHECK;
/* What had come for the port is dropped; the last one closes the socket. */
void zmq_end_leave(zmq_port *port);
/* The port of an end that lets a key in, or NULL. */
zmq_port *zmq_end_find(const zmq_transport *transport, const zmq_end *end,
                       const uint8_t key[RP_KEY_BYTES]);
/* What another port has read for this one. */
bool zmq_end_take(zmq_port *port, rp_packet *out);
/* A packet that a port of a shared end has read, of whom `text` (Z85) is the key: true when it is
 * this port's own, else it waits for the port that it belongs to. */
bool zmq_end_sort(zmq_port *port, const char *text, rp_packet *packet);
/* Whether packets may be read from the socket: none is held for a port that has no room. */
bool zmq_end_may_read(zmq_end *end);

/* zmq_traffic.c: the socket of a connection that begins, and what it has carried. */
void zmq_traffic_begin(zmq_port *port, int fd);
bool zmq_traffic_read(const zmq_port *port, rp_port_traffic *out);
/* Connections of a bound port's socket, whose handshakes may yet be on their way. */
uint32_t zmq_traffic_connections(const zmq_port *port);
/* The far end of a connection, "HOST:PORT"; "": it has ended. For people: ZeroMQ may have closed
 * the descriptor, and another connection may have got it. */
void zmq_traffic_from(int fd, char out[RP_PORT_ADDRESS_BYTES]);

/* Of a connection's socket, when it begins. */
void zmq_absent_note(zmq_port *port, int fd);
/* From the end of a connection on, until somebody listens, another has begun or the port is closed.
 */
void zmq_absent_begin(zmq_port *port, int64_t now);
void zmq_absent_end(zmq_port *port);
/* Asks when it is due; true: nobody listens. */
bool zmq_absent_look(zmq_port *port, int64_t now);

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
