/* A link: a reliable, ordered, bounded, two-way message stream between two ends. It uses a port of
 * a transport (TCP by ZeroMQ with CURVE, or inproc), which guarantees none of this.
 *
 * A transport loses packets silently. Therefore the sender keeps every numbered message until the
 * receiver's cumulative ack; the receiver drops duplicates and requests missing messages. Flow
 * control: the receiver grants credit for data parcels; a sender without credit gets AGAIN and
 * nothing is queued. Control kinds need no credit, but at most RP_LINK_CONTROL_MAX may be un-acked.
 * The only calls that block are rp_link_wait(), which has a timeout, and rp_link_open() and
 * rp_link_close(), whose bounds are stated below. Single-threaded. */
#ifndef RP_LINK_LINK_H
#define RP_LINK_LINK_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "link/receiver.h"
#include "transport/medium.h"
#include "transport/transport.h"
#include "wire/frame.h"

enum {
    RP_LINK_CONTROL_MAX = 256,
    RP_LINK_CONTROL_PART_MAX = 4 << 20, /* bytes, for the control links of a ring */
    RP_LINKS_WAIT_MAX = 66,
    RP_LINK_WINDOW_MAX = 4096,
    RP_LINK_REPLAYS_MAX = 32
};

/* ---- the links of one transport -------------------------------------------------------------- */

typedef struct rp_links rp_links;

typedef struct {
    const rp_clock *clock;
    uint64_t seed;           /* of the run, for emulated lines */
    const rp_keypair *keys;  /* for ZeroMQ's CURVE if `transport` is NULL; copied */
    rp_transport *transport; /* borrowed; NULL: opens its own zmq transport */
    rp_loop *loop;           /* used by rp_link_wait(), borrowed; NULL: poll() */
    const rp_media *media;   /* media shared by emulated lines, borrowed; NULL: none */
    /* source of session numbers, borrowed; NULL: the kernel, because no result depends on them. A
     * simulation passes a stream that differs between two lives of a process */
    rp_rng *sessions;
} rp_links_options;

/* Allocates in `arena`. errors FORMAT (keys), IO, MEMORY */
rp_err rp_links_open(rp_arena *arena, const rp_links_options *options,
                     rp_links **out) RP_MUST_CHECK;
void rp_links_close(rp_links **links); /* closes remaining links; never hangs */
/* Sets the run's seed, if it becomes known later, for lines that are emulated from then on. */
void rp_links_set_seed(rp_links *links, uint64_t seed);

typedef struct {
    const char *name;    /* for logs: "hop 1-2"; copied */
    const char *bind;    /* tcp://HOST:PORT or tcp://HOST:* ; NULL when connecting */
    const char *connect; /* tcp://HOST:PORT */
    /* connecting: the server's key (Z85). Binding: the only key allowed, or NULL: any key given to
     * rp_link_allow(). Links of one rp_links with one key each may bind the same address */
    const char *peer_public;
    /* data parcels from the peer that may be held here without release, 1 to RP_LINK_WINDOW_MAX */
    uint32_t window;
    /* data parcels of ours that may be un-acked, >= 1: the replay buffer */
    uint32_t send_window;
    size_t part_bytes_max;   /* larger frames are refused before they are allocated */
    rp_link_profile emulate; /* zeros = none; applies to what this end sends */
    rp_link_profile far;     /* what the peer emulates; zeros = the same as this end */
    /* stamped on frames; others' frames are dropped, except HELLO; zeros = accept any run */
    rp_run_identity run;
    uint32_t wire; /* version of the wire used for sending; 0 = RP_WIRE_MAX */
} rp_link_options;

typedef struct rp_link rp_link;

/* Has its own memory, freed by rp_link_close(), so that links may come and go. If the address is in
 * use, it retries for half a second. errors USAGE, FORMAT (key), IO (address), MEMORY */
rp_err rp_link_open(rp_links *links, const rp_link_options *options, rp_link **out) RP_MUST_CHECK;
/* Gives up un-acked messages and calls done() for each; messages that were not released become
 * invalid. Waits up to 10 s while the transport still reads their memory. */
void rp_link_close(rp_link **link);
/* Binding end: allows one more client key. errors FORMAT, LIMIT */
rp_err rp_link_allow(rp_link *link, const char *public_text) RP_MUST_CHECK;
/* Binding end: allows exactly these client keys from now on.
 * errors  FORMAT, LIMIT: the list is then unchanged */
rp_err rp_link_allow_only(rp_link *link, const char *const *public_text,
                          uint32_t count) RP_MUST_CHECK;
void rp_link_set_run(rp_link *link, rp_run_identity run);
void rp_link_set_wire(rp_link *link, uint32_t version); /* after it is agreed */
/* Emulates another line from now on; zeros: none. Packets waiting for the old line keep their
 * times. Its random stream is "link/NAME/NUMBER" of the seed, restarted (NUMBER: index among its
 * links, from 0). errors MEMORY */
rp_err rp_link_emulate(rp_link *link, const rp_link_profile *profile) RP_MUST_CHECK;
/* Restarts the time of an emulated line, to which its outages refer. */
void rp_link_begin_line(rp_link *link);
/* The actual endpoint after bind ("tcp://127.0.0.1:40123"). */
const char *rp_link_endpoint(const rp_link *link);

/* Sends frame 0 and parts. The parts' memory is borrowed until a later rp_link_step/recv/close of
 * this thread calls done(context): the peer has then acked and the transport no longer reads it.
 * `done` may be NULL if part_count is 0 or `copy` is set, which copies the parts. Data kinds need
 * credit. errors AGAIN (nothing was taken), LIMIT, FORMAT */
rp_err rp_link_send(rp_link *link, rp_Frame *frame, const rp_part *parts, uint32_t part_count,
                    bool copy, void (*done)(void *context), void *context) RP_MUST_CHECK;
bool rp_link_can_send(const rp_link *link); /* a data parcel would not get AGAIN */

/* The next message in order, or AGAIN. It is checked: decoded, sizes, hash, run. Between two steps
 * it reads a bounded number of packets, so a loop that takes every message terminates. */
rp_err rp_link_recv(rp_link *link, rp_message **out) RP_MUST_CHECK;
/* Returns the memory; for data kinds this grants the peer new credit. */
void rp_link_release(rp_link *link, rp_message **message);

/* Sends due acks, probes, replays, pings. Call it every round and at least every 100 ms. */
rp_err rp_link_step(rp_link *link) RP_MUST_CHECK;

typedef struct {
    uint64_t bytes_sent, bytes_received, parcels_sent, parcels_received;
    /* refused: bad frames, frames of another run, unknown keys */
    uint64_t resent, duplicates, refused;
    /* packets dropped unread because their sender had exceeded flood.h's limit */
    uint64_t flooded;
    uint64_t strangers; /* handshakes refused at the address that this end binds */
    uint64_t resets;    /* connections to the same peer after the first */
    uint64_t unacked;
    uint64_t unreleased;   /* data parcels of ours that are on their way or held by the peer */
    double rate;           /* bytes a second, emulated or measured (pace.h); 0: not known */
    int64_t delay_ns[2];   /* median and 95th percentile from sending to the ack */
    double busy_s;         /* seconds with bytes on the wire, emulated or measured */
    int64_t last_heard_ns; /* any frame from the peer; 0 = never */
    int64_t round_trip_ns; /* of the last answered ping; 0 = unknown */
    uint64_t round_trips;  /* pings answered */
    /* last time the peer answered a ping or acked something new; 0 = never */
    int64_t last_answer_ns;
    uint64_t peer_session; /* 0 = not heard yet */
    /* another session number appeared, at least once: messages that the old peer had not acked were
     * given up (done() was called); numbers and credit were reset; messages accepted before still
     * come from recv */
    bool peer_restarted;
    /* connecting: our handshake was refused, by our key or by the server's, and none has ever
     * succeeded. Logged once. */
    bool auth_failed;
} rp_link_stats;

#define RP_LINK_UNANSWERED_NS (2 * RP_NS_PER_S)

/* The subset of the facts that says whether the peer is there; cheap enough for every round. */
typedef struct {
    int64_t last_heard_ns;
    bool peer_restarted, auth_failed;
    uint32_t twins; /* as in rp_link_peers */
    bool connected; /* connecting: both ends have accepted the keys */
    /* connecting: since the connection ended, the machine has answered twice in a row that nothing
     * listens at the peer's address */
    bool absent;
    /* connecting: the machine accepts the connection, but no process has answered the handshake for
     * RP_LINK_UNANSWERED_NS: it is stopped, or too busy */
    bool unanswered;
    bool broken_off; /* connecting: RP_PORT_BROKEN_OFF, and no handshake has succeeded since */
    bool stuck;      /* a message was sent RP_LINK_REPLAYS_MAX times and never arrived intact */
    int64_t last_answer_ns, round_trip_ns;
    int64_t stall_ns; /* longest recent time for which the peer did not process its links */
    uint64_t bytes_received;
} rp_link_health;
rp_link_health rp_link_health_of(const rp_link *link);
void rp_link_stats_of(const rp_link *link, rp_link_stats *out);
/* Binding end: addresses from which peers with an allowed key connected; "": none, or not known. */
typedef struct {
    const char *served; /* the peer that is served */
    const char *before; /* the previous peer, which it replaced */
    const char *twin;   /* the last other peer, which was refused */
    /* peers that were refused long enough to prove that they live at the same time as the served
     * peer: if one key is allowed, two machines have it */
    uint32_t twins;
} rp_link_peers;
rp_link_peers rp_link_peers_of(const rp_link *link);
/* Binding end: the last handshake that was refused for its key at the link's address. */
rp_stranger rp_link_stranger_of(const rp_link *link);
/* What was sent since the present peer's session began; an agent serves one host after another.
 * Busy is the time that the bytes take at the measured rate. */
rp_LinkUse rp_link_use_of(const rp_link *link, uint32_t peer);
/* Starts a segment: from now on the use's rate counts only new samples, if there are any. */
void rp_link_begin_use(rp_link *link);
/* How much longer than usual a live peer may be silent: while un-acked data are on their way at an
 * eighth of the mean rate, while the peer's largest part passes an emulated line at its rate, and
 * while such a line holds packets back. On a line that is not emulated, 1 Mbit/s is assumed for
 * that part, unless `traffic_is_known`: then rp_link_traffic() shows whether it moves. */
int64_t rp_link_slow_ns(const rp_link *link, bool traffic_is_known);
/* Traffic of the present connection. Returns false if it is not known. */
bool rp_link_traffic(const rp_link *link, rp_port_traffic *out);
/* Connecting end: replaces the present connection with a new one; nothing is lost. A binding end
 * waits until its peer does so. */
void rp_link_reopen(rp_link *link);

/* Sends an unnumbered PING; the answer updates last_heard and round_trip.
 * errors  AGAIN when there is no connection */
rp_err rp_link_ping(rp_link *link) RP_MUST_CHECK;

/* ---- questions ------------------------------------------------------------------------------- */

/* Answers an ASK from any peer with an allowed key, at once and outside the stream, which does not
 * change. Returns false if there is no answer. */
typedef bool (*rp_link_answer)(void *context, const rp_Ask *ask, rp_Frame *out);
/* Without an answer function ASK is refused. */
void rp_link_set_answer(rp_link *link, rp_link_answer answer, void *context);

/* ---- waiting --------------------------------------------------------------------------------- */

/* For a loop of the caller's: call before_wait(), which sends due acks, then wait for a handle
 * until the deadline at most, then step. A message that was already left untaken at the previous
 * wait does not make the deadline `now`: its reader first waits for something else. */
void rp_link_before_wait(rp_link *link);
int64_t rp_link_deadline_ns(const rp_link *link, int64_t now);
uint32_t rp_link_handles(const rp_link *link, rp_handle *out); /* at most RP_PORT_HANDLES_MAX */
rp_loop *rp_link_loop(const rp_link *link);

/* Does all of that for these links: sleeps until a link may have something or must be stepped, a
 * descriptor is readable, or the timeout expires. A signal also ends the wait. */
rp_err rp_link_wait(rp_link *const *link, uint32_t link_count, const int *fds, uint32_t fd_count,
                    int64_t timeout_ns) RP_MUST_CHECK;

#endif
