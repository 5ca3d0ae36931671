/* Limits how far ahead a board is fed: enough parcels to cover the round trip to it, and a few
 * more.
 *
 * A parcel is acked on arrival and released when its board takes it. If the board takes each one at
 * once, it may be waiting, so the limit grows by one. If parcels wait there longer than they
 * travel, the limit shrinks, so that a later STOP is not queued after many of them. Late acks mean
 * that parcels queue before a slow line, so more of them would not help. The shortest trip is
 * forgotten from time to time, because paths change.
 *
 * Pure: no link, no clock; `now` is an argument. No result of a run depends on it. */
#ifndef RP_TRAIN_FEED_PACE_H
#define RP_TRAIN_FEED_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_FEED_PACE_LEAST = 6, RP_FEED_PACE_MOST = 512 };

typedef struct {
    uint32_t least, most; /* bounds of `ahead`: parcels sent and not yet released */
    uint32_t ahead;       /* the current limit */
    uint64_t sent, acked, released;
    int64_t sent_ns[RP_FEED_PACE_MOST]; /* ring buffer by parcel number */
    int64_t trip_ns[RP_FEED_PACE_MOST]; /* time from sending to the ack */
    int64_t shortest_ns;                /* shortest trip; 0: unknown */
    uint32_t since;                     /* parcels released since the shortest trip was forgotten */
    uint32_t too_far; /* parcels that waited too long, since the limit last shrank */
} rp_feed_pace;

/* `most`: parcels that the far end takes. `besides`: how many of these are labels, which wait there
 * for their inputs. */
void rp_feed_pace_start(rp_feed_pace *pace, uint32_t most, uint32_t besides);
bool rp_feed_pace_may_send(const rp_feed_pace *pace);
void rp_feed_pace_sent(rp_feed_pace *pace, int64_t now);
/* `unacked` of the sent parcels are not acked, and `unreleased` not released. */
void rp_feed_pace_heard(rp_feed_pace *pace, uint64_t unacked, uint64_t unreleased, int64_t now);

#endif
