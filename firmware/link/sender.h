/* The sending half of a link: numbers messages, keeps them until the peer acks them, and sends all
 * again from the ack on (go-back-N) when the peer reports a missing one. The peer can only do so
 * after a later message or a probe has arrived, so a slow line never causes a repetition.
 *
 * Pure: no transport, no clock; `now` is an argument. The owner transmits what rp_sender_next()
 * returns and passes in what the peer's frames say.
 *
 * While an ack, credit or the peer is awaited, probes ("my last number is n") are sent
 * PROBE_FIRST_NS after the last progress, at intervals that double up to PROBE_LAST_NS. They are
 * sent at once after rp_sender_reconnected() and after the first replays. */
#ifndef RP_LINK_SENDER_H
#define RP_LINK_SENDER_H

#include "base/arena.h"
#include "link/pace.h"
#include "transport/buffer.h"
#include "wire/frame.h"

/* Matches every generation: the receiver found the gap by a message, not by a probe. */
#define RP_SENDER_ANY_GENERATION UINT64_MAX

typedef struct rp_sender rp_sender;

typedef struct {
    uint32_t window;      /* most un-acked data messages */
    uint32_t control_max; /* most other un-acked messages */
    bool calls;           /* speaks first: probes before a peer is known */
} rp_sender_options;

/* Allocates in `arena`. errors MEMORY */
rp_err rp_sender_new(rp_arena *arena, const rp_sender_options *options, int64_t now,
                     rp_sender **out) RP_MUST_CHECK;

/* ---- messages -------------------------------------------------------------------------------- */

/* Whether the window has room and, for data, the peer has granted credit. */
bool rp_sender_has_room(const rp_sender *sender, bool data);

/* Takes a message; rp_sender_has_room() must be true. `frame` is sealed: its parts and hash are
 * right. Parts are copied if `copy`; otherwise their memory is borrowed until rp_sender_call_done()
 * calls done(context). `done` may be NULL if nothing is borrowed.
 * errors  MEMORY: nothing was taken */
rp_err rp_sender_put(rp_sender *sender, const rp_Frame *frame, const rp_part *parts,
                     uint32_t part_count, bool copy, void (*done)(void *context),
                     void *context) RP_MUST_CHECK;

typedef struct {
    rp_Frame *frame; /* `seq` is set; the owner fills in the link's fields */
    rp_buffer *const *part;
    uint32_t part_count;
} rp_sender_message; /* borrowed until the next call */

/* The next message to transmit. Returns false if no message is waiting or no peer is known. */
bool rp_sender_next(rp_sender *sender, rp_sender_message *out);
/* The message was transmitted. */
void rp_sender_sent(rp_sender *sender, int64_t now);

/* Calls done() for each message that is acked and whose memory is no longer read. */
void rp_sender_call_done(rp_sender *sender);
/* Whether the transport still reads memory of acked messages. */
bool rp_sender_is_lending(const rp_sender *sender);
/* Gives up all messages because the owner closes. Then call rp_sender_call_done() until
 * rp_sender_is_lending() is false. */
void rp_sender_give_up(rp_sender *sender);

/* ---- the peer -------------------------------------------------------------------------------- */

/* Adopts a peer: numbers start at 1. Messages that a previous peer had not acked are given up. */
void rp_sender_meet(rp_sender *sender);
/* A new connection: packets on the old one may be lost, and its other end may be another peer. An
 * end with `calls` sends probes until it hears from a peer. */
void rp_sender_reconnected(rp_sender *sender);
/* Handles an ack of all numbers up to `ack`; false, and no change, if it was never sent. */
bool rp_sender_on_ack(rp_sender *sender, uint64_t ack, int64_t now) RP_MUST_CHECK;
/* The peer accepts this many data messages of the stream in total; a smaller value than before is
 * ignored. Returns true if it grew. */
bool rp_sender_on_credit(rp_sender *sender, uint64_t credit, int64_t now);
/* Handles "again from your ack on" for replay `generation`; an older request is out of date. */
void rp_sender_on_again(rp_sender *sender, uint64_t generation, int64_t now);

typedef struct {
    uint64_t seq; /* the last number that was sent */
    uint64_t generation;
} rp_sender_probe;
/* Whether a probe must be sent now. */
bool rp_sender_probe_due(const rp_sender *sender, int64_t now, rp_sender_probe *out);
/* A probe was tried; `posted`: it was sent, or there is no peer to send it to. */
void rp_sender_probed(rp_sender *sender, bool posted, int64_t now);

/* Whether something could be sent now (a message, or a probe of a new connection). */
bool rp_sender_is_ready(const rp_sender *sender);
/* When the next probe may be due; INT64_MAX: nothing is awaited. */
int64_t rp_sender_deadline_ns(const rp_sender *sender);

typedef struct {
    uint64_t sent, resent;  /* messages, and transmissions after the first */
    uint64_t unacked;       /* taken and not yet acked */
    uint64_t unreleased;    /* data taken here and not yet released by the peer's user */
    uint64_t unacked_bytes; /* bytes of the parts of the un-acked messages */
    uint32_t replays;       /* since the last ack of something new */
    bool on_the_way;        /* sent and not yet acked */
} rp_sender_facts;
rp_sender_facts rp_sender_facts_of(const rp_sender *sender);
const rp_pace *rp_sender_pace_of(const rp_sender *sender);
void rp_sender_begin_pace(rp_sender *sender); /* calls rp_pace_begin() */

#endif
