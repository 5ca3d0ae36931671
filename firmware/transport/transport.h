/* The transport port: packets between two ends, unreliable and bounded.
 *
 * A packet is 1 to RP_PACKET_FRAMES_MAX frames that arrive together or not at all. A transport may
 * lose, repeat, reorder and (if its kind says so) damage packets, and may lose a connection. It
 * never holds more than `queue` packets in each direction, and blocks only when it opens a port
 * whose address is still in use, for half a second at most. firmware/link builds a reliable stream
 * on it.
 *
 * A kind is one table of functions, one file transport_<name>.c and one test. Rules for all
 * entries: one thread; no entry calls back into its caller, so each may be called from anywhere
 * except a signal handler; AGAIN and PEER are not faults and are not logged.
 *
 * source  nng's nni_sp_pipe_ops, for stating at each entry who owns the message */
#ifndef RP_TRANSPORT_TRANSPORT_H
#define RP_TRANSPORT_TRANSPORT_H

#include "base/arena.h"
#include "base/clock.h"
#include "transport/buffer.h"
#include "transport/keys.h"
#include "transport/loop.h"
#include "transport/profile.h"
#include "transport/trusted.h"

enum {
    RP_PACKET_FRAMES_MAX = 9,
    RP_PORT_KEYS_MAX = 64,
    RP_PORT_NAME_BYTES = 48,
    RP_PORT_ENDPOINT_BYTES = 256,
    RP_PORT_ADDRESS_BYTES = 64
};

typedef struct {
    rp_buffer *frame[RP_PACKET_FRAMES_MAX];
    uint32_t count;
    int origin; /* binding end: data for the kind's address() */
    /* binding end: number of the connection, never 0 and never reused; connecting end: 0 */
    uint64_t peer;
} rp_packet;

/* Drops all its references. */
void rp_packet_drop(rp_packet *packet);
size_t rp_packet_bytes(const rp_packet *packet);

typedef enum {
    RP_PORT_CONNECTED, /* connected; packets in flight on the previous connection are lost */
    RP_PORT_LOST,      /* disconnected; the port retries by itself */
    RP_PORT_REFUSED,   /* refused because of a key; the port retries more slowly */
    /* connecting to a server that accepted our key before: it repeatedly breaks off the handshake,
     * because it has another key or the line is bad; reported repeatedly */
    RP_PORT_BROKEN_OFF,
    /* connecting, after a connection has ended: the machine answers that nothing listens there;
     * reported repeatedly until something does */
    RP_PORT_ABSENT
} rp_port_event_kind;

/* A binding end need not report connections: a new `peer` number in a packet shows one. */
typedef struct {
    rp_port_event_kind kind;
    uint64_t peer;   /* as in a packet */
    const char *why; /* static text, or NULL */
} rp_port_event;

typedef struct {
    const char *name;    /* for logs; copied */
    const char *bind;    /* tcp://HOST:PORT or tcp://HOST:* ; NULL when connecting */
    const char *connect; /* tcp://HOST:PORT */
    /* connecting: the server's key (Z85). Binding: the only key allowed, or NULL: any key given to
     * rp_port_allow(). Ports of a transport with one key each may bind the same address, if their
     * frame_bytes_max is the same; each connection belongs to the port that has its key */
    const char *peer_public;
    uint32_t queue;         /* packets that may wait in each direction, >= 1 */
    size_t frame_bytes_max; /* larger frames are refused before memory is allocated */
} rp_port_options;

/* Byte counters of a connection, as far as both machines know: they show whether something moves
 * while no packet is complete. */
typedef struct {
    uint64_t sent;     /* confirmed by the peer's machine */
    uint64_t received; /* received by this one */
    uint64_t waiting;  /* to be sent, or not yet confirmed */
} rp_port_traffic;

typedef struct rp_transport rp_transport;
typedef struct rp_port rp_port;
typedef struct rp_hub rp_hub;

/* Options for starting a transport; the kinds that read a field are named. */
typedef struct {
    const rp_clock *clock;
    const rp_keypair *keys; /* zmq: required; inproc: NULL = no key is checked. Copied. */
    rp_hub *hub;            /* inproc: hub with its names; borrowed */
    /* inproc: called when something arrived for a port of this transport, from inside a call to the
     * peer's port, so it may only record that. May be NULL. */
    void (*wake)(void *context);
    void *wake_context;
    rp_transport *inner;            /* emulate: the wrapped transport; borrowed */
    const rp_link_profile *profile; /* emulate: profile of each opened port; NULL = perfect lines */
    uint64_t seed;                  /* emulate: seed of the run; each port has its own stream */
} rp_transport_options;

typedef struct rp_transport_kind {
    const char *name;

    /* Creates a transport in `arena`. errors FORMAT (keys), IO, MEMORY */
    rp_err (*start)(rp_arena *arena, const rp_transport_options *options, rp_transport **out);
    /* All its ports must be closed first. */
    void (*finish)(rp_transport *transport);

    /* A port has its own memory, so that ports may come and go. When it returns, binding is done
     * and port->endpoint has the actual address; connecting continues in the background.
     * errors  FORMAT (key), IO (address), MEMORY */
    rp_err (*open)(rp_transport *transport, const rp_port_options *options, rp_port **out);
    /* Drops posted packets that have not been sent. References to posted frames are released within
     * moments (zmq: by another thread); taken packets stay the caller's. The other end notices when
     * another port of this transport is stepped, or at its finish(). */
    void (*close)(rp_port *port);

    /* Sends a packet to packet->peer. The caller keeps its references; the port takes its own for
     * as long as it reads the frames, so that memory lent to it is free again when
     * rp_buffer_is_lent() says false. OK promises nothing about arrival.
     * errors  AGAIN: no room or no connection, nothing was taken; retry after the next wait. PEER:
     *         that connection has ended, nothing was taken; only a binding end returns it. */
    rp_err (*post)(rp_port *port, const rp_packet *packet);
    /* The next packet that arrived. The caller owns its references and drops them; data is aligned
     * to 8 and stays valid after close().
     * errors  AGAIN: the port knows of no packet. It learns of one by a wait on its handles(), or
     *         by a step() without a wait before it. A wait on handles() and deadline_ns() ends when
     *         a packet arrives */
    rp_err (*take)(rp_port *port, rp_packet *out);

    /* Does the port's own work (handshakes, reconnecting, sending packets that are due) and reports
     * one event. Returns false if no event is left; call it until then, once a round. Neither takes
     * nor posts packets of the caller. */
    bool (*step)(rp_port *port, rp_port_event *out);
    /* When step() or take() has work although no handle is ready: `now` if at once, INT64_MAX if
     * never. Valid until this port or one connected to it is used. */
    int64_t (*deadline_ns)(rp_port *port, int64_t now);
    /* The handles to wait on, at most RP_PORT_HANDLES_MAX; may change with each step(). */
    uint32_t (*handles)(rp_port *port, rp_handle *out);

    /* Connecting: drops the present connection, if any, and makes another; step() reports it.
     * Packets in flight are lost. */
    void (*reopen)(rp_port *port);
    /* Binding: the origin of a packet that was just taken, for messages: "10.0.0.7:40123"; "" if it
     * is not known. */
    void (*address)(const rp_port *port, const rp_packet *packet, char out[RP_PORT_ADDRESS_BYTES]);
    /* Traffic of the present connection. Returns false if it is not known. */
    bool (*traffic)(const rp_port *port, rp_port_traffic *out);
} rp_transport_kind;

extern const rp_transport_kind *const rp_transport_kinds[]; /* all kinds, then NULL */
/* NULL if no kind has this name. */
const rp_transport_kind *rp_transport_find(const char *name);

/* Common part of every transport and port; each kind's struct begins with it. */
struct rp_transport {
    const rp_transport_kind *kind;
    const rp_clock *clock;
};

struct rp_port {
    const rp_transport_kind *kind;
    rp_transport *transport;
    rp_port *inner; /* the wrapped port, if this one wraps a port; else NULL */
    rp_arena arena; /* holds the port; freed by close */
    char name[RP_PORT_NAME_BYTES];
    char endpoint[RP_PORT_ENDPOINT_BYTES]; /* actual address, such as "tcp://127.0.0.1:40123" */
    bool bound;
    bool connected; /* connecting: last state reported by step() */
    /* connecting: time at which the peer's machine accepted a connection whose handshake is not
     * answered yet; 0: no such connection */
    int64_t taken_ns;
    uint32_t queue;
    size_t frame_bytes_max;
    uint64_t refused;   /* packets dropped because their form is invalid */
    uint64_t strangers; /* refused handshakes with a key that no port at this address has */
    char stranger_key[RP_KEY_TEXT]; /* key of the last one */
    char stranger_address[RP_PORT_ADDRESS_BYTES];
    bool has_one_key; /* bound: the key of the options */
    uint8_t allowed[RP_PORT_KEYS_MAX][RP_KEY_BYTES];
    uint32_t allowed_count;
};

/* errors  USAGE (unknown name) and those of the kind */
rp_err rp_transport_start(rp_arena *arena, const char *kind, const rp_transport_options *options,
                          rp_transport **out) RP_MUST_CHECK;
void rp_transport_finish(rp_transport **transport); /* NULL is accepted */

rp_err rp_port_open(rp_transport *transport, const rp_port_options *options,
                    rp_port **out) RP_MUST_CHECK;
void rp_port_close(rp_port **port);
/* Binding end: allows one more client key. errors FORMAT, LIMIT */
rp_err rp_port_allow(rp_port *port, const char *public_text) RP_MUST_CHECK;
/* Binding end: allows exactly these client keys from now on; existing connections stay.
 * errors  FORMAT, LIMIT: the list is then unchanged */
rp_err rp_port_allow_only(rp_port *port, const char *const *public_text,
                          uint32_t count) RP_MUST_CHECK;
bool rp_port_is_allowed(const rp_port *port, const uint8_t key[RP_KEY_BYTES]);
bool rp_port_is_connected(const rp_port *port); /* connecting ends only */
uint64_t rp_port_refused(const rp_port *port);  /* including the wrapped ports */
uint64_t rp_port_strangers(const rp_port *port);
/* Binding: the last handshake that was refused for its key. */
typedef struct {
    uint64_t count;      /* of all refused handshakes */
    const char *key;     /* as from rp_key_parse() */
    const char *address; /* as far as it is known */
} rp_stranger;
rp_stranger rp_port_stranger(const rp_port *port);
/* For kinds: records a refused handshake. */
void rp_port_note_stranger(rp_port *port, const char *key, const char *address,
                           size_t address_bytes);

/* For kinds: allocates a port of `bytes` (a struct that begins with rp_port) and fills in its
 * common part from the options. */
rp_err rp_port_new(rp_transport *transport, const rp_port_options *options, size_t bytes,
                   rp_port **out) RP_MUST_CHECK;
void rp_port_free(rp_port *port);

#endif
