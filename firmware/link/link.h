/* A link: a reliable, ordered, bounded message stream between two ends, both ways, over a port of a
 * transport, which is none of these (TCP by ZeroMQ with CURVE, or inproc).
 *
 * A transport loses packets and says nothing, so every numbered message is kept by its sender until
 * the receiver's cumulative ack, duplicates are dropped, gaps are asked for again. Flow control:
 * the receiver grants credit for data parcels; a sender without credit gets AGAIN and nothing is
 * queued. Control kinds need no credit but are bounded by RP_LINK_CONTROL_MAX un-acked. No call
 * here blocks but rp_link_wait(), which has a timeout, rp_link_open() and rp_link_close(), whose
 * bounds stand at each. One thread. */
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
    RP_LINK_CONTROL_PART_MAX = 4 << 20, /* bytes: of the control links of a ring */
    RP_LINKS_WAIT_MAX = 66,
    RP_LINK_WINDOW_MAX = 4096,
    RP_LINK_REPLAYS_MAX = 32
};

/* ---- the links of one transport -------------------------------------------------------------- */

typedef struct rp_links rp_links;

typedef struct {
    const rp_clock *clock;
    uint64_t seed;           /* of the run: of emulated lines */
    const rp_keypair *keys;  /* with transport NULL: of ZeroMQ's CURVE; copied */
    rp_transport *transport; /* borrowed; NULL: a zmq transport of its own */
    rp_loop *loop;           /* what rp_link_wait() waits with, borrowed; NULL: a poll */
    const rp_media *media;   /* of emulated lines that share one, borrowed; NULL: none */
    rp_rng *sessions;        /* session numbers, borrowed: a simulation's stream, in which two lives
                                of a process differ; NULL: from the kernel, no result depends on
                                them */
} rp_links_options;

/* Its memory lies in `arena`. errors FORMAT (keys), IO, MEMORY */
rp_err rp_links_open(rp_arena *arena, const rp_links_options *options,
                     rp_links **out) RP_MUST_CHECK;
void rp_links_close(rp_links **links); /* closes links that are left; never hangs */
/* The run's seed, where it becomes known later: for lines that are emulated from then on. */
void rp_links_set_seed(rp_links *links, uint64_t seed);

typedef struct {
    const char *name;        /* for logs: "hop 1-2"; copied */
    const char *bind;        /* tcp://HOST:PORT or tcp://HOST:* ; NULL when connecting */
    const char *connect;     /* tcp://HOST:PORT */
    const char *peer_public; /* connecting: the server's key (Z85). Binding: the one key allowed,
                                or NULL: any key given to rp_link_allow(). Links of one rp_links
                                with one key each may bind the same address */
    uint32_t window;         /* data parcels the peer may have un-released here, 1 to
                                RP_LINK_WINDOW_MAX */
    uint32_t send_window;    /* data parcels we may have un-acked, >= 1: the replay buffer */
    size_t part_bytes_max;   /* larger frames are refused before they are allocated */
    rp_link_profile emulate; /* zeros = none; applies to what this end sends */
    rp_link_profile far;     /* that the other end emulates; zeros = the same as this one */
    rp_run_identity run;     /* stamped on every frame; others' are dropped, but for a HELLO;
                                zeros = any */
    uint32_t wire;           /* version of the wire in which this end sends; 0 = RP_WIRE_MAX */
} rp_link_options;

typedef struct rp_link rp_link;

/* Its memory is its own and freed by close, so that links may come and go. An address in use is
 * tried for half a second.
 * errors USAGE, FORMAT (key), IO (address), MEMORY */
rp_err rp_link_open(rp_links *links, const rp_link_options *options, rp_link **out) RP_MUST_CHECK;
/* Un-acked messages are given up: done() is called for each; what was not released is invalid.
 * Waits while the transport still reads their memory, 10 s at most. */
void rp_link_close(rp_link **link);
/* Binding end: one more client key. errors FORMAT, LIMIT */
rp_err rp_link_allow(rp_link *link, const char *public_text) RP_MUST_CHECK;
/* Binding end: these client keys, and no others from now on. errors FORMAT, LIMIT: then as before
 */
rp_err rp_link_allow_only(rp_link *link, const char *const *public_text,
                          uint32_t count) RP_MUST_CHECK;
void rp_link_set_run(rp_link *link, rp_run_identity run);
void rp_link_set_wire(rp_link *link, uint32_t version); /* once it is agreed */
/* Emulates another line from now on; zeros: none. What waits for the old one keeps its place. Its
 * chance is the stream "link/NAME/NUMBER" of the seed, begun anew (NUMBER: of its links, from 0).
 * errors MEMORY */
rp_err rp_link_emulate(rp_link *link, const rp_link_profile *profile) RP_MUST_CHECK;
/* The time of an emulated line, in which its outages lie, begins now. */
void rp_link_begin_line(rp_link *link);
/* The real endpoint after bind ("tcp://127.0.0.1:40123"). */
const char *rp_link_endpoint(const rp_link *link);

/* Sends frame 0 + parts. The parts' memory is borrowed until `done(context)` is called from a later
 * rp_link_step/recv/close of this thread: the peer has acked and the transport let go. done may be
 * NULL when part_count is 0 (or parts are copied: `copy`). Data kinds need credit. errors AGAIN
 * (nothing taken), LIMIT, FORMAT */
rp_err rp_link_send(rp_link *link, rp_Frame *frame, const rp_part *parts, uint32_t part_count,
                    bool copy, void (*done)(void *context), void *context) RP_MUST_CHECK;
bool rp_link_can_send(const rp_link *link); /* a data parcel would not get AGAIN */

/* Next message in order, or AGAIN. Checked: decoded, sizes, hash, run. Between two steps it looks
 * at a bounded number of packets, so who takes all that there is comes to an end. */
rp_err rp_link_recv(rp_link *link, rp_message **out) RP_MUST_CHECK;
/* Gives the memory back; for data kinds this is what grants the peer new credit. */
void rp_link_release(rp_link *link, rp_message **message);

/* Moves acks, probes, replays, pings; call it every round of the loop and at least every 100 ms. */
rp_err rp_link_step(rp_link *link) RP_MUST_CHECK;

typedef struct {
    uint64_t bytes_sent, bytes_received, parcels_sent, parcels_received;
    uint64_t resent, duplicates, refused; /* refused: bad frames, wrong run, strangers */
    uint64_t flooded;   /* packets dropped unread: their sender had sent too much in vain */
    uint64_t strangers; /* handshakes refused at the address where this end is bound */
    uint64_t resets;    /* connections to the same peer beyond the first */
    uint64_t unacked;
    uint64_t unreleased;    /* data parcels of ours that the peer still holds, or that travel */
    double rate;            /* bytes a second: of an emulated line, or as pace.h; 0: not known */
    int64_t delay_ns[2];    /* from sending to the ack: half of the messages, and 95 %, at most */
    double busy_s;          /* emulated or measured time with bytes on the wire */
    int64_t last_heard_ns;  /* any frame from the peer; 0 = never */
    int64_t round_trip_ns;  /* of the last ping that was answered, 0 = unknown */
    uint64_t round_trips;   /* pings answered */
    int64_t last_answer_ns; /* when the peer answered a ping, or acked something new; 0 = never */
    uint64_t peer_session;  /* 0 = not heard yet */
    bool peer_restarted;    /* another session number appeared, once or more: what the old peer
                               had not acked is given up (done() is called), numbers and credit
                               begin anew; messages accepted before still come from recv */
    bool auth_failed;       /* connecting: our handshake was refused, by our key or by the
                               server's, and none has ever succeeded. Logged once. */
} rp_link_stats;

#define RP_LINK_UNANSWERED_NS (2 * RP_NS_PER_S)

/* Of the same, what tells whether the peer is there: little enough to be asked every round. */
typedef struct {
    int64_t last_heard_ns;
    bool peer_restarted, auth_failed;
    uint32_t twins;  /* as in rp_link_peers */
    bool connected;  /* connecting: the other end has taken our key, and we its */
    bool absent;     /* connecting: the machine has answered twice in a row, since the connection
                        ended, that nobody listens at the peer's address */
    bool unanswered; /* connecting: the machine accepts the connection, and no process has answered
                        the handshake for RP_LINK_UNANSWERED_NS: it is stopped, or too busy */
    bool broken_off; /* connecting: as RP_PORT_BROKEN_OFF, and none has succeeded since */
    bool stuck;      /* a message was sent RP_LINK_REPLAYS_MAX times and came whole never */
    int64_t last_answer_ns, round_trip_ns;
    int64_t stall_ns; /* the peer has not looked at its links for so long, of late */
    uint64_t bytes_received;
} rp_link_health;
rp_link_health rp_link_health_of(const rp_link *link);
void rp_link_stats_of(const rp_link *link, rp_link_stats *out);
/* Binding: from where those have come who know a key on the list; "": nobody, or it is not known.
 */
typedef struct {
    const char *served; /* the peer */
    const char *before; /* the peer before it, which it has followed */
    const char *twin;   /* the last other one, which was kept out */
    uint32_t twins;     /* that were kept out for so long that the peer lives beside them: where one
                           key is allowed, two have it */
} rp_link_peers;
rp_link_peers rp_link_peers_of(const rp_link *link);
/* Binding: the last handshake that was refused for its key, where the link is bound. */
rp_stranger rp_link_stranger_of(const rp_link *link);
/* What was sent since this life of the peer began here: an agent serves one host after another.
 * Busy: as long as the bytes take at the rate that was measured. */
rp_LinkUse rp_link_use_of(const rp_link *link, uint32_t peer);
/* A segment begins: the use's rate is what is measured from here on, where that is anything. */
void rp_link_begin_use(rp_link *link);
/* How much later than usual a peer that lives may be heard: while what is sent and not acked is on
 * its way at an eighth of the mean rate so far, while the peer's largest part is at the rate of an
 * emulated line, and while such a line holds packets back. A line that is not emulated has 1 Mbit/s
 * for that part, unless `traffic_is_known`: then rp_link_traffic() tells whether it moves. */
int64_t rp_link_slow_ns(const rp_link *link, bool traffic_is_known);
/* Of the connection there is; false: it is not known. */
bool rp_link_traffic(const rp_link *link, rp_port_traffic *out);
/* Connecting: another connection in place of the one there is; nothing is lost. A binding end waits
 * for the other to do that. */
void rp_link_reopen(rp_link *link);

/* Sends an unnumbered PING (the answer updates last_heard and round_trip).
 * errors AGAIN when there is no connection to send it over */
rp_err rp_link_ping(rp_link *link) RP_MUST_CHECK;

/* ---- questions ------------------------------------------------------------------------------- */

/* What is answered to an ASK, of whoever has a key that is let in here: at once, beside the stream,
 * of which nothing changes. False: nothing is. */
typedef bool (*rp_link_answer)(void *context, const rp_Ask *ask, rp_Frame *out);
/* Without one an ASK is refused. */
void rp_link_set_answer(rp_link *link, rp_link_answer answer, void *context);

/* ---- waiting --------------------------------------------------------------------------------- */

/* For a loop of the caller's: before_wait() sends due acks; then wait at most until the deadline
 * for a handle, then step. A message that lay here at the wait before does not make it `now`: who
 * leaves one has something else to wait for first. */
void rp_link_before_wait(rp_link *link);
int64_t rp_link_deadline_ns(const rp_link *link, int64_t now);
uint32_t rp_link_handles(const rp_link *link, rp_handle *out); /* at most RP_PORT_HANDLES_MAX */
rp_loop *rp_link_loop(const rp_link *link);

/* All of that for these links: sleeps until a link may have something or must be stepped, a
 * descriptor is readable, or the timeout. A signal ends it, too. */
rp_err rp_link_wait(rp_link *const *link, uint32_t link_count, const int *fds, uint32_t fd_count,
                    int64_t timeout_ns) RP_MUST_CHECK;

#endif
