/* The receiving half of a link: accepts every number once and in order, and drops everything else
 * with a reason. Messages wait in a bounded pool until the user takes and releases them.
 *
 * Pure: no transport, no clock. The owner decodes frames, passes them in, and sends the acks that
 * are due. */
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
    uint32_t window;      /* most data messages accepted and not released */
    uint32_t control_max; /* most other messages */
} rp_receiver_options;

/* Allocates in `arena`. errors MEMORY */
rp_err rp_receiver_new(rp_arena *arena, const rp_receiver_options *options,
                       rp_receiver **out) RP_MUST_CHECK;
/* Drops the remaining messages; taken messages become invalid. NULL is accepted. */
void rp_receiver_drop_all(rp_receiver *receiver);

/* Adopts another peer: numbers restart at 1. Old messages stay and occupy the window. */
void rp_receiver_meet(rp_receiver *receiver);

typedef enum {
    RP_RECEIPT_NEXT,      /* accepted: the next in order */
    RP_RECEIPT_DUPLICATE, /* accepted before */
    RP_RECEIPT_GAP,       /* an earlier one is missing */
    RP_RECEIPT_DAMAGED,   /* contradicts its hash, or exceeds the granted credit */
    RP_RECEIPT_NO_ROOM    /* the pool is full; the message must be sent again */
} rp_receipt;

/* Offers a numbered frame to this end. If it is NEXT and `keep` is set, the references of the parts
 * are taken and their entries set to NULL; without `keep` it is acked and dropped. An ack is due
 * after each frame. */
rp_receipt rp_receiver_offer(rp_receiver *receiver, const rp_Frame *frame, rp_buffer **parts,
                             uint32_t part_count, bool keep);
/* Makes an ack due although nothing arrived. */
void rp_receiver_owe_ack(rp_receiver *receiver);

/* Whether to send "again" for a missing number. Returns true once for each gap; if the request or
 * the repetition is lost, a probe triggers the next one. */
bool rp_receiver_ask_again(rp_receiver *receiver) RP_MUST_CHECK;
/* Handles a probe: the peer's last number is `seq`. Returns true if some messages are missing and
 * "again" must be sent. */
bool rp_receiver_on_probe(rp_receiver *receiver, uint64_t seq) RP_MUST_CHECK;

/* The next message in order, or AGAIN. */
rp_err rp_receiver_take(rp_receiver *receiver, rp_message **out) RP_MUST_CHECK;
/* Returns the memory; for data this grants the peer new credit. Returns true if messages were
 * dropped for lack of room and "again" must be sent. */
bool rp_receiver_release(rp_receiver *receiver, rp_message **message) RP_MUST_CHECK;

/* The numbers that every frame to the peer carries. */
/* highest number up to which all have arrived */
uint64_t rp_receiver_ack(const rp_receiver *receiver);
/* data messages of the stream that the peer may send */
uint64_t rp_receiver_credit(const rp_receiver *receiver);
/* A frame with both numbers was sent. */
void rp_receiver_acked(rp_receiver *receiver);
bool rp_receiver_owes_ack(const rp_receiver *receiver);
/* At the end of each round: true if an ack was due all the round and no message carried it. */
bool rp_receiver_end_round(rp_receiver *receiver) RP_MUST_CHECK;

/* Whether messages came since the owner's last wait; begin_wait() resets it. */
void rp_receiver_begin_wait(rp_receiver *receiver);
bool rp_receiver_has_news(const rp_receiver *receiver);

#endif
