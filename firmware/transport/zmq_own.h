/* Private to the zmq kind: transport_zmq.c, zap.c and zmq_*.c. */
#ifndef RP_TRANSPORT_ZMQ_OWN_H
#define RP_TRANSPORT_ZMQ_OWN_H

#include <sys/socket.h>
#include <zmq.h>

#include "transport/callers.h"
#include "transport/transport.h"

enum { ZMQ_REFUSED_KEYS_MAX = 16, ZMQ_MET_KEYS_MAX = 64, ZMQ_DOMAIN_BYTES = 24 };

typedef struct zmq_port zmq_port;

/* A server that has accepted our key. */
typedef struct {
    uint8_t key[RP_KEY_BYTES];
    uint32_t broken_off; /* handshakes broken off in a row since then, on any port */
    int64_t since_ns;    /* time of the first of them */
} zmq_met;

/* The transport: one ZeroMQ context and one ZAP handler. */
typedef struct {
    rp_transport transport;
    void *context;
    void *zap;
    int zap_fd;
    bool zap_ready; /* like zmq_end's `ready` */
    rp_keypair keys;
    zmq_port *first;
    uint32_t next_id;
    uint8_t refused[ZMQ_REFUSED_KEYS_MAX][RP_KEY_BYTES]; /* keys already logged */
    uint32_t refused_count;
    int64_t refused_told_ns; /* time of the last refusal's log line */
    zmq_met met[ZMQ_MET_KEYS_MAX];
    uint32_t met_count; /* servers ever met; the oldest are overwritten */
} zmq_transport;

/* A ZeroMQ socket: of one port, or of all ports that bind one address with a key each. */
typedef struct {
    void *socket; /* ROUTER if bound, else DEALER */
    int fd;
    char domain[ZMQ_DOMAIN_BYTES];       /* of its ZAP requests */
    char wanted[RP_PORT_ENDPOINT_BYTES]; /* the address it was asked to bind */
    uint32_t ports;
    rp_callers callers; /* bound: connecting keys */
    bool shared;        /* a second port has joined: packets are sorted by their key */
    bool ready;         /* something may have arrived: check, at the cost of system calls */
    bool signal_taken;  /* a send may have cleared the signal of an arrival: check again */
    /* a packet for a port whose queue is full; nothing is read until it is delivered */
    rp_packet held;
    zmq_port *held_for;
} zmq_end;

/* zmq_absent.c: probes whether anything listens where a connection has ended. */
typedef struct {
    struct sockaddr_storage address; /* of the last connection's peer */
    socklen_t bytes;                 /* of the address; 0 = not known */
    bool asking;
    int fd;           /* of a probe in progress */
    int64_t asked_ns; /* time of its start */
    int64_t due_ns;   /* time of the next probe; 0 = not due, because there is a connection */
} zmq_absent;

struct zmq_port {
    rp_port port;
    zmq_port *next;
    uint32_t id;
    zmq_end *end;
    /* ring of `queue` packets that another port of a shared end has read; else NULL */
    rp_packet *came;
    uint32_t came_first, came_count;
    void *monitor; /* monitor of our handshakes, when connecting */
    int monitor_fd;
    bool waited; /* handles() was called since the last round, in order to wait */
    bool monitor_ready;
    bool want_write;                  /* ZeroMQ had no room */
    uint8_t server_key[RP_KEY_BYTES]; /* connecting ends only */
    uint32_t failed_handshakes;       /* failed in a row */
    /* connecting: when to reconnect after the end of a connection; 0 = not due */
    int64_t reconnect_ns;
    bool reopened; /* connecting: reopened and not yet reported */
    /* connecting: ZeroMQ's TCP socket, valid only while it has this cookie; cookie 0 = none */
    int connection_fd;
    uint64_t connection_cookie;
    zmq_absent absent; /* connecting ends only */
};

static inline zmq_transport *zmq_transport_of(const zmq_port *port) {
    return (zmq_transport *)port->port.transport;
}

/* zap.c: answers the waiting handshakes. */
rp_err zap_open(zmq_transport *transport) RP_MUST_CHECK;
void zap_serve(zmq_transport *transport);

/* zmq_end.c: gives the port an end: its own, or the one of the ports that bind the same address.
 * *is_new: it has no socket yet. errors MEMORY; USAGE: existing ports have another frame_bytes_max
 */
rp_err zmq_end_join(zmq_port *port, const rp_port_options *options, bool *is_new) RP_MUST_CHECK;
/* Drops packets that arrived for the port; the last port closes the socket. */
void zmq_end_leave(zmq_port *port);
/* The port of an end that admits a key, or NULL. */
zmq_port *zmq_end_find(const zmq_transport *transport, const zmq_end *end,
                       const uint8_t key[RP_KEY_BYTES]);
/* Takes a packet that another port has read for this one. */
bool zmq_end_take(zmq_port *port, rp_packet *out);
/* Sorts a packet read by a port of a shared end; `text` (Z85) is its key. Returns true if it is for
 * this port, else it is queued at the port that it belongs to. */
bool zmq_end_sort(zmq_port *port, const char *text, rp_packet *packet);
/* Whether to read packets from the socket: not while one is held for a port without room. */
bool zmq_end_may_read(zmq_end *end);

/* zmq_traffic.c: notes the TCP socket of a new connection, and the bytes it has carried. */
void zmq_traffic_begin(zmq_port *port, int fd);
bool zmq_traffic_read(const zmq_port *port, rp_port_traffic *out);
/* Number of connections of a bound port's socket, including handshakes in progress. */
uint32_t zmq_traffic_connections(const zmq_port *port);
/* The far end of a connection, "HOST:PORT"; "" if it has ended. Only for messages, because ZeroMQ
 * may have closed the descriptor and another connection may have got it. */
void zmq_traffic_from(int fd, char out[RP_PORT_ADDRESS_BYTES]);

/* Notes the peer's address when a connection begins. */
void zmq_absent_note(zmq_port *port, int fd);
/* Starts probing at the end of a connection. It stops when something listens, another connection
 * begins or the port is closed. */
void zmq_absent_begin(zmq_port *port, int64_t now);
void zmq_absent_end(zmq_port *port);
/* Probes when due. Returns true if nothing listens. */
bool zmq_absent_look(zmq_port *port, int64_t now);

/* zmq_socket.c: creates the socket with options, keys and monitor; binds or connects. */
rp_err zmq_socket_open(zmq_port *port, const rp_port_options *options) RP_MUST_CHECK;
void zmq_socket_close(zmq_port *port);
/* The descriptor that ZeroMQ makes readable when a socket has something to do. Any call on that
 * socket may clear the signal, whether or not the call concerned the event. After a receive that
 * finds nothing, the next event will signal again.
 * source  libzmq 4.3.4 doc/zmq_getsockopt, ZMQ_FD */
rp_err zmq_socket_fd(void *socket, int *out) RP_MUST_CHECK;
/* Which of ZMQ_POLLIN and ZMQ_POLLOUT hold now; clears the signal. */
int zmq_socket_events(void *socket);

#endif
