/* What one end receives: every number is accepted once and in order, everything else is dropped
 * with a reason; the messages wait in a bounded pool until their user takes and releases them.
 *
 * A pure class: no transport, no clock. Its owner decodes frames, hands them in, and sends the acks
 * that are due. */
#ifndef RP_LINK_RECEIVER_H
#define RP_LINK_RECEIVER_H

#include "base/arena.h"
#include "transport/buffer.h"
#include "wire/frame.h"

typedef struct {
    rp_Frame frame;
    uint32_t part_count;
    rp_part part[RP_PARTS_MAX]; /* borrowed until release; aligned to 8 */
} rp_message;

typedef struct rp_receiver rp_receiver;

typedef struct {
    uint32_t window;      /* data messages that may be accepted and not released */
    uint32_t control_max; /* other messages */
} rp_receiver_options;

/* Its memory lies in `arena`. errors MEMORY */
rp_err rp_receiver_new(rp_arena *arena, const rp_receiver_options *options,
                       rp_receiver **out) RP_MUST_CHECK;
/* Drops what is left; messages that were taken are invalid from then on. NULL is accepted. */
void rp_receiver_drop_all(rp_receiver *receiver);

/* Another peer: numbers begin at 1. What was accepted from the old one stays, and still occupies
 * the window. */
void rp_receiver_meet(rp_receiver *receiver);

typedef enum {
    RP_RECEIPT_NEXT,      /* the next in order: accepted */
    RP_RECEIPT_DUPLICATE, /* accepted before */
    RP_RECEIPT_GAP,       /* an earlier one is missing */
    RP_RECEIPT_DAMAGED,   /* against its hash, or beyond the credit that was given */
    RP_RECEIPT_NO_ROOM    /* the pool is used up; it has to come again */
} rp_receipt;

/* A numbered frame to this end. When it is NEXT and `keep`, the parts' references are taken and
 * their places set to NULL; without `keep` it is acked and forgotten. An ack is due after each. */
rp_receipt rp_receiver_offer(rp_receiver *receiver, const rp_Frame *frame, rp_buffer **parts,
                             uint32_t part_count, bool keep);
/* An ack is due though nothing came. */
void rp_receiver_owe_ack(rp_receiver *receiver);

/* The next number is missing and that was not said yet: say "again". True once for each gap; if
 * that or the repetition is lost, a probe makes us say it again. */
bool rp_receiver_ask_again(rp_receiver *receiver) RP_MUST_CHECK;
/* The peer's probe: its last number is `seq`. True: some of it is missing here, say "again". */
bool rp_receiver_on_probe(rp_receiver *receiver, uint64_t seq) RP_MUST_CHECK;

/* The next message in order, or AGAIN. */
rp_err rp_receiver_take(rp_receiver *receiver, rp_message **out) RP_MUST_CHECK;
/* Gives the memory back; for data this is what grants the peer new credit. True: messages were
 * dropped for want of room; say "again". */
bool rp_receiver_release(rp_receiver *receiver, rp_message **message) RP_MUST_CHECK;

/* What every frame to the peer carries. */
uint64_t rp_receiver_ack(const rp_receiver *receiver);    /* all up to here have come */
uint64_t rp_receiver_credit(const rp_receiver *receiver); /* data messages of the stream */
/* A frame with both was posted. */
void rp_receiver_acked(rp_receiver *receiver);
bool rp_receiver_owes_ack(const rp_receiver *receiver);
/* At the end of each round: an ack was owed for a whole round, and no message took it along. */
bool rp_receiver_end_round(rp_receiver *receiver) RP_MUST_CHECK;

/* Messages came since the owner waited last; begin_wait() starts anew. */
void rp_receiver_begin_wait(rp_receiver *receiver);
bool rp_receiver_has_news(const rp_receiver *receiver);

#endif
