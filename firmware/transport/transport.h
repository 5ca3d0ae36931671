/* The transport port: packets between two ends, unreliable and bounded.
 *
 * A packet is 1 to RP_PACKET_FRAMES_MAX frames that arrive together or not at all. A transport may
 * lose, repeat, reorder and (where it says so) damage packets, and may lose a connection; it never
 * holds more than `queue` packets a way, and never blocks but to open a port, whose address may be
 * in use for half a second yet. What makes a reliable stream of this is firmware/link.
 *
 * A kind is one table of functions, one file transport_<name>.c and one test. Rules for all
 * entries: one thread; no entry calls back into its caller, so each may be called from anywhere but
 * a signal handler; AGAIN and PEER are no faults and are not logged.
 *
 * source  nng's nni_sp_pipe_ops, for saying at each entry who owns the message */
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
    int origin;    /* a binding end: for the kind's address() */
    uint64_t peer; /* a binding end: which connection, never 0, never used again after it has
                      ended; a connecting end: 0 */
} rp_packet;

/* Gives up all its references. */
void rp_packet_drop(rp_packet *packet);
size_t rp_packet_bytes(const rp_packet *packet);

typedef enum {
    RP_PORT_CONNECTED,  /* what was on its way on the connection before is lost */
    RP_PORT_LOST,       /* the port tries again by itself */
    RP_PORT_REFUSED,    /* by keys; the port tries again by itself, more slowly */
    RP_PORT_BROKEN_OFF, /* connecting, where our key was taken before: handshakes are broken off one
                           after the other, by another key or by the way; told again and again */
    RP_PORT_ABSENT      /* connecting, after a connection has ended: the machine says that nobody
                           listens there; told again and again until somebody does */
} rp_port_event_kind;

/* A binding end may tell nothing: there a new `peer` number in a packet says that it connected. */
typedef struct {
    rp_port_event_kind kind;
    uint64_t peer;   /* as in a packet */
    const char *why; /* static text, or NULL */
} rp_port_event;

typedef struct {
    const char *name;        /* for logs; copied */
    const char *bind;        /* tcp://HOST:PORT or tcp://HOST:* ; NULL when connecting */
    const char *connect;     /* tcp://HOST:PORT */
    const char *peer_public; /* connecting: the server's key (Z85). Binding: the one key allowed, or
                                NULL: any key given to rp_port_allow(). Ports of a transport with
                                one key each may bind the same address, for frames of the same
                                size: a connection is that of the port which has its key */
    uint32_t queue;          /* packets that may wait a way, >= 1 */
    size_t frame_bytes_max;  /* a larger frame is refused before memory is taken for it */
} rp_port_options;

/* Bytes of a connection, as far as the machines at its ends know: whether something moves while no
 * packet is complete. */
typedef struct {
    uint64_t sent;     /* that the other machine has confirmed */
    uint64_t received; /* by this one */
    uint64_t waiting;  /* to be sent, or not confirmed yet */
} rp_port_traffic;

typedef struct rp_transport rp_transport;
typedef struct rp_port rp_port;
typedef struct rp_hub rp_hub;

/* What a transport needs to begin with; each kind names the fields that it reads. */
typedef struct {
    const rp_clock *clock;
    const rp_keypair *keys; /* zmq: needed; inproc: NULL = no key is checked. Copied. */
    rp_hub *hub;            /* inproc: where the names live; borrowed */
    /* inproc: called when something came for a port of this transport, from inside a call to the
     * port at the other end; it may only note that. NULL = nobody wants to know. */
    void (*wake)(void *context);
    void *wake_context;
    rp_transport *inner;            /* emulate: what it wraps; borrowed */
    const rp_link_profile *profile; /* emulate: of each port that is opened; NULL = perfect lines */
    uint64_t seed;                  /* emulate: of the run; each port has a stream of its own */
} rp_transport_options;

typedef struct rp_transport_kind {
    const char *name;

    /* Makes a transport; its memory lies in `arena`. errors FORMAT (keys), IO, MEMORY */
    rp_err (*start)(rp_arena *arena, const rp_transport_options *options, rp_transport **out);
    /* All its ports are closed before. */
    void (*finish)(rp_transport *transport);

    /* A port has memory of its own, so that ports come and go. Binding is done when it returns and
     * port->endpoint names the real address; connecting goes on behind it.
     * errors  FORMAT (key), IO (address), MEMORY */
    rp_err (*open)(rp_transport *transport, const rp_port_options *options, rp_port **out);
    /* What was posted and has not left is lost. References to posted frames are given up within
     * moments (zmq: by another thread); packets that were taken stay the caller's. The other end
     * learns of it while another port of this transport is stepped, or at its finish(). */
    void (*close)(rp_port *port);

    /* Sends a packet to packet->peer. The caller keeps its references; the port takes its own, for
     * as long as it reads the frames, so that memory lent to it is free again when
     * rp_buffer_is_lent() says false. OK promises nothing about arrival.
     * errors  AGAIN: no room or no connection, nothing was taken; try again after the next wait.
     *         PEER: that connection has ended, nothing was taken; only a binding end says so. */
    rp_err (*post)(rp_port *port, const rp_packet *packet);
    /* The next packet that came. Its references are the caller's, who drops them; data is aligned
     * to 8 and stays valid after close().
     * errors  AGAIN: the port knows of none. It learns of one by a wait on its handles(), or by a
     *         step() without a wait before it. A wait on handles() and deadline_ns() ends when one
     *         comes */
    rp_err (*take)(rp_port *port, rp_packet *out);

    /* Does what the port has to do by itself (handshakes, connecting again, packets that are due)
     * and tells one thing that happened. False: nothing more happened; call it until then, once a
     * round. It takes and posts nothing of the caller's. */
    bool (*step)(rp_port *port, rp_port_event *out);
    /* When step() or take() has something to do though no handle is ready: `now` when at once,
     * INT64_MAX when never. Valid until this or a port connected to it is used. */
    int64_t (*deadline_ns)(rp_port *port, int64_t now);
    /* What a loop waits on, at most RP_PORT_HANDLES_MAX; may change with each step(). */
    uint32_t (*handles)(rp_port *port, rp_handle *out);

    /* Connecting: gives up the connection, if there is one, and makes another; step() tells. What
     * was on its way is lost. */
    void (*reopen)(rp_port *port);
    /* Binding: where a packet came from that has just been taken, for people: "10.0.0.7:40123"; ""
     * where that is not known. */
    void (*address)(const rp_port *port, const rp_packet *packet, char out[RP_PORT_ADDRESS_BYTES]);
    /* Of the connection there is. False: it is not known. */
    bool (*traffic)(const rp_port *port, rp_port_traffic *out);
} rp_transport_kind;

extern const rp_transport_kind *const rp_transport_kinds[]; /* all, then NULL */
/* NULL when there is none of that name. */
const rp_transport_kind *rp_transport_find(const char *name);

/* What every transport and every port has; a kind puts it first into a struct of its own. */
struct rp_transport {
    const rp_transport_kind *kind;
    const rp_clock *clock;
};

struct rp_port {
    const rp_transport_kind *kind;
    rp_transport *transport;
    rp_port *inner; /* of a port that stands in front of another: that one; else NULL */
    rp_arena arena; /* holds the port; freed by close */
    char name[RP_PORT_NAME_BYTES];
    char endpoint[RP_PORT_ENDPOINT_BYTES]; /* real: "tcp://127.0.0.1:40123" */
    bool bound;
    bool connected;   /* connecting: what step() told last */
    int64_t taken_ns; /* connecting: time at which the peer's machine accepted a connection
                         whose handshake is not answered yet; 0: no such connection */
    uint32_t queue;
    size_t frame_bytes_max;
    uint64_t refused;   /* packets dropped because of their form */
    uint64_t strangers; /* handshakes refused, with a key that no port at this address has */
    char stranger_key[RP_KEY_TEXT]; /* of the last one */
    char stranger_address[RP_PORT_ADDRESS_BYTES];
    bool has_one_key; /* bound: that of the options */
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
/* Binding end: one more client key. errors FORMAT, LIMIT */
rp_err rp_port_allow(rp_port *port, const char *public_text) RP_MUST_CHECK;
/* Binding end: these client keys, and no others from now on; connections that are there stay.
 * errors FORMAT, LIMIT: then as before */
rp_err rp_port_allow_only(rp_port *port, const char *const *public_text,
                          uint32_t count) RP_MUST_CHECK;
bool rp_port_is_allowed(const rp_port *port, const uint8_t key[RP_KEY_BYTES]);
bool rp_port_is_connected(const rp_port *port); /* connecting */
uint64_t rp_port_refused(const rp_port *port);  /* with those of the ports behind it */
uint64_t rp_port_strangers(const rp_port *port);
/* Binding: the last handshake that was refused for its key. */
typedef struct {
    uint64_t count;      /* of all */
    const char *key;     /* as rp_key_parse() gives it */
    const char *address; /* as far as it is known */
} rp_stranger;
rp_stranger rp_port_stranger(const rp_port *port);
/* For kinds: one more. */
void rp_port_note_stranger(rp_port *port, const char *key, const char *address,
                           size_t address_bytes);

/* For kinds: memory for a port of `bytes` (a struct that begins with rp_port), its common part
 * filled in from the options. */
rp_err rp_port_new(rp_transport *transport, const rp_port_options *options, size_t bytes,
                   rp_port **out) RP_MUST_CHECK;
void rp_port_free(rp_port *port);

#endif
