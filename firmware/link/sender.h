/* What one end sends: messages are numbered, kept until the peer acks them, and sent again from the
 * ack on (go-back-N) when the peer says that one is missing. It can only say so after a later
 * message or a probe has arrived, so that a slow line never causes a repetition.
 *
 * A pure class: no transport, no clock; `now` is an argument. Its owner transmits what
 * rp_sender_next() gives and hands in what the peer's frames say.
 *
 * Probes ("my last number is n") go out PROBE_FIRST_NS after the last progress while an ack, credit
 * or the peer is awaited, at intervals that double to PROBE_LAST_NS; at once after
 * rp_sender_reconnected() and after the first replays. */
#ifndef RP_LINK_SENDER_H
#define RP_LINK_SENDER_H

#include "base/arena.h"
#include "link/pace.h"
#include "transport/buffer.h"
#include "wire/frame.h"

/* Fits every generation: a receiver that found the gap by a message, not by a probe. */
#define RP_SENDER_ANY_GENERATION UINT64_MAX

typedef struct rp_sender rp_sender;

typedef struct {
    uint32_t window;      /* data messages un-acked at most */
    uint32_t control_max; /* other messages un-acked at most */
    bool calls;           /* speaks first: probes before it has heard of a peer */
} rp_sender_options;

/* Its memory lies in `arena`. errors MEMORY */
rp_err rp_sender_new(rp_arena *arena, const rp_sender_options *options, int64_t now,
                     rp_sender **out) RP_MUST_CHECK;

/* ---- messages -------------------------------------------------------------------------------- */

/* Room in the window and, for data, credit of the peer. */
bool rp_sender_has_room(const rp_sender *sender, bool data);

/* Takes a message; has_room() holds for it. `frame` is sealed: its parts and hash are right. Parts
 * are copied when `copy`; otherwise their memory is borrowed until done(context) is called from
 * rp_sender_call_done(). done may be NULL when nothing is borrowed.
 * errors  MEMORY: nothing was taken */
rp_err rp_sender_put(rp_sender *sender, const rp_Frame *frame, const rp_part *parts,
                     uint32_t part_count, bool copy, void (*done)(void *context),
                     void *context) RP_MUST_CHECK;

typedef struct {
    rp_Frame *frame; /* `seq` is set; the owner writes the fields of the link */
    rp_buffer *const *part;
    uint32_t part_count;
} rp_sender_message; /* borrowed until the next call */

/* The next message to transmit. False: none, or no peer is known. */
bool rp_sender_next(rp_sender *sender, rp_sender_message *out);
/* It was posted. */
void rp_sender_sent(rp_sender *sender, int64_t now);

/* done() of each message that is acked and whose memory nobody reads any more. */
void rp_sender_call_done(rp_sender *sender);
/* Acked messages whose memory the transport still reads. */
bool rp_sender_is_lending(const rp_sender *sender);
/* The owner closes: all messages are given up; then rp_sender_call_done() until nothing is lent. */
void rp_sender_give_up(rp_sender *sender);

/* ---- the peer -------------------------------------------------------------------------------- */

/* A peer is known; numbers begin at 1. A peer before it: what that one had not acked is given up.
 */
void rp_sender_meet(rp_sender *sender);
/* A new connection: what was on the old one may be lost, and another peer may be at its other end.
 * An end that calls probes until it hears of one. */
void rp_sender_reconnected(rp_sender *sender);
/* All numbers up to `ack` have arrived. False: it acks what was never sent; nothing changes. */
bool rp_sender_on_ack(rp_sender *sender, uint64_t ack, int64_t now) RP_MUST_CHECK;
/* The peer takes this many data messages of the stream; less than before says nothing.
 * True: more than before. */
bool rp_sender_on_credit(rp_sender *sender, uint64_t credit, int64_t now);
/* "Again from your ack on", of replay `generation`: an older request is out of date. */
void rp_sender_on_again(rp_sender *sender, uint64_t generation, int64_t now);

typedef struct {
    uint64_t seq; /* the last number that was sent */
    uint64_t generation;
} rp_sender_probe;
/* A probe has to be sent now. */
bool rp_sender_probe_due(const rp_sender *sender, int64_t now, rp_sender_probe *out);
/* An attempt was made; `posted`: or there is nobody to send it to. */
void rp_sender_probed(rp_sender *sender, bool posted, int64_t now);

/* Something could be posted now (a message, or a probe of a new connection). */
bool rp_sender_is_ready(const rp_sender *sender);
/* When the next probe may be due; INT64_MAX: nothing is awaited. */
int64_t rp_sender_deadline_ns(const rp_sender *sender);

typedef struct {
    uint64_t sent, resent;  /* messages, transmissions beyond the first */
    uint64_t unacked;       /* taken, not acked */
    uint64_t unreleased;    /* data: taken here, memory not given back by the peer's user */
    uint64_t unacked_bytes; /* of the parts of these */
    uint32_t replays;       /* since the last ack of something new */
    bool on_the_way;        /* sent, not acked */
} rp_sender_facts;
rp_sender_facts rp_sender_facts_of(const rp_sender *sender);
const rp_pace *rp_sender_pace_of(const rp_sender *sender);
void rp_sender_begin_pace(rp_sender *sender); /* rp_pace_begin() */

#endif
