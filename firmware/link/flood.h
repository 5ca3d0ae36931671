/* Limits packets from a peer that bring nothing: refused, repeated or unanswerable frames, frames
 * of no session, and questions. A packet costs 1 unit, and 1 more for each 64 KiB. 4,096 units a
 * second are free, with bursts of 32,768 (more than two replays of the largest window). Each packet
 * that brings something pays for itself and for four others, so that a peer that makes progress is
 * never blocked, however bad its line is. Pure: `now` is an argument.
 *
 * source  GCRA, the leaky bucket of ITU-T I.371, appendix A: a single time represents the bucket */
#ifndef RP_LINK_FLOOD_H
#define RP_LINK_FLOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    /* time at which the bucket is empty; zero-initialised buckets are empty */
    int64_t paid_until_ns;
    uint64_t dropped;
    int64_t told_ns; /* time of the last log line about dropped packets; 0 = never */
} rp_flood;

/* Charges a packet. Returns false, and counts it, if the packet must be dropped unread. */
bool rp_flood_admits(rp_flood *flood, size_t bytes, int64_t now_ns);
/* Credits an admitted packet that has brought something. */
void rp_flood_pay(rp_flood *flood, size_t bytes);
/* Whether packets were dropped and no log line was due for a while; marks this one as logged. */
bool rp_flood_is_news(rp_flood *flood, int64_t now_ns);

#endif
