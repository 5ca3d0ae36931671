/* Estimates a wire's rate and delay from acks: how long messages take until they are acked, and how
 * fast acked bytes arrive.
 *
 * The rate is that of the fastest samples, 2 % of all and at least three. Each sample is taken over
 * the longer of two times, in which the bytes in flight before a message were sent and in which
 * they were acked, so that neither a burst of sends nor a burst of acks counts as speed. The true
 * rate of a wire that was seldom full may be higher.
 *
 * source  Y. Cheng et al., "Delivery Rate Estimation",
 *         draft-cheng-iccrg-delivery-rate-estimation-02
 *
 * Pure: `now` is an argument. */
#ifndef RP_LINK_PACE_H
#define RP_LINK_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RP_PACE_BUCKETS = 96 };

typedef struct {
    uint32_t rate[RP_PACE_BUCKETS]; /* samples per bucket; each doubling has four buckets */
    double rate_sum[RP_PACE_BUCKETS];
    uint64_t rates;
} rp_pace_rates;

typedef struct {
    uint32_t delay[RP_PACE_BUCKETS]; /* messages per bucket, the same way */
    uint64_t delays;
    rp_pace_rates all, late; /* late: samples since rp_pace_begin() */
    uint64_t delivered;      /* bytes acked */
    int64_t delivered_ns, first_sent_ns;
} rp_pace;

/* State of a message in flight, set when it is sent. */
typedef struct {
    int64_t sent_ns, first_sent_ns, delivered_ns;
    uint64_t delivered;
} rp_pace_mark;

/* Records the first transmission of a message; `idle`: nothing else is in flight. */
void rp_pace_sent(rp_pace *pace, rp_pace_mark *mark, bool idle, int64_t now);
/* Records the ack of a message of `bytes`; `alone`: it was sent only once, so that the ack belongs
 * to that transmission. */
void rp_pace_acked(rp_pace *pace, const rp_pace_mark *mark, uint64_t bytes, bool alone,
                   int64_t now);

/* Starts a new set of late samples. */
void rp_pace_begin(rp_pace *pace);

/* Bytes a second, from all samples or from the late ones; 0: not known. */
double rp_pace_rate(const rp_pace *pace);
double rp_pace_late_rate(const rp_pace *pace);
/* The delay that this share of the messages did not exceed, to 20 %; 0: no samples. */
int64_t rp_pace_delay_ns(const rp_pace *pace, double share);

#endif
