/* How much a peer may send that brings nothing: what is refused, comes twice, is of no session, or
 * only asks. A packet costs 1 and 1 more for each 64 KiB; 4,096 of that a second are free, 32,768
 * at once (more than two replays of the largest window), and each packet that brings something pays
 * for itself and for four others, so that no line is so bad that a peer who gets on is held up.
 * Pure: `now` is an argument.
 *
 * source  GCRA, the leaky bucket of ITU-T I.371, appendix A: one time stands for the bucket */
#ifndef RP_LINK_FLOOD_H
#define RP_LINK_FLOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t paid_until_ns; /* the bucket is empty then; zeros begin full */
    uint64_t dropped;
    int64_t told_ns; /* when somebody was told of that; 0 = never */
} rp_flood;

/* False: it is beyond that and to be dropped unread; counted. */
bool rp_flood_admits(rp_flood *flood, size_t bytes, int64_t now_ns);
/* A packet that was admitted has brought something. */
void rp_flood_pay(rp_flood *flood, size_t bytes);
/* Something was dropped, and nobody was told for a while: now somebody is. */
bool rp_flood_is_news(rp_flood *flood, int64_t now_ns);

#endif
