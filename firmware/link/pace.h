/* What a wire carries, as its sender sees it by the acks: how long a message takes until it is
 * acked, and how fast acks say that bytes arrive.
 *
 * The rate is that of the fastest samples, 2 % of all and three at least. Each is over the longer
 * of the times in which what a message found on its way was sent, and was acked: then neither a
 * burst of sends nor one of acks counts as speed. A wire that was seldom full may be faster than
 * this says.
 *
 * source  Y. Cheng et al., "Delivery Rate Estimation",
 * draft-cheng-iccrg-delivery-rate-estimation-02
 *
 * A pure class: `now` is an argument. */
#ifndef RP_LINK_PACE_H
#define RP_LINK_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RP_PACE_BUCKETS = 96 };

typedef struct {
    uint32_t rate[RP_PACE_BUCKETS]; /* how many samples: four buckets for each doubling */
    double rate_sum[RP_PACE_BUCKETS];
    uint64_t rates;
} rp_pace_rates;

typedef struct {
    uint32_t delay[RP_PACE_BUCKETS]; /* how many, the same way */
    uint64_t delays;
    rp_pace_rates all, late; /* late: since rp_pace_begin() */
    uint64_t delivered;      /* bytes, acked */
    int64_t delivered_ns, first_sent_ns;
} rp_pace;

/* Of a message that is on its way. */
typedef struct {
    int64_t sent_ns, first_sent_ns, delivered_ns;
    uint64_t delivered;
} rp_pace_mark;

/* A message is sent for the first time; `idle`: nothing else is on its way. */
void rp_pace_sent(rp_pace *pace, rp_pace_mark *mark, bool idle, int64_t now);
/* It is acked, with so many bytes; `alone`: it was sent once, so that the ack is of that time. */
void rp_pace_acked(rp_pace *pace, const rp_pace_mark *mark, uint64_t bytes, bool alone,
                   int64_t now);

/* From here on samples are late ones, too, and none of before. */
void rp_pace_begin(rp_pace *pace);

/* Bytes a second, of all samples or of the late ones; 0: not known. */
double rp_pace_rate(const rp_pace *pace);
double rp_pace_late_rate(const rp_pace *pace);
/* The time that this share of the messages took at most, to 20 %; 0: there were none. */
int64_t rp_pace_delay_ns(const rp_pace *pace, double share);

#endif
