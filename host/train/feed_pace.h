/* How far ahead a board is fed: as many parcels as cover the way to it and back, and a few more.
 *
 * A parcel is acked when it has come and released when its board has taken it. A board that takes
 * each one as it comes may be waiting: it is fed one parcel further ahead. One where parcels wait
 * longer than they travel is fed less far ahead, so that a stop does not come behind many of them.
 * Where acks are late because parcels queue in front of a slow line, more of them would only queue.
 * What was shortest is forgotten from time to time, since paths change.
 *
 * Pure: no link, no clock; `now` is an argument. No number of a run depends on it. */
#ifndef RP_TRAIN_FEED_PACE_H
#define RP_TRAIN_FEED_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { RP_FEED_PACE_LEAST = 6, RP_FEED_PACE_MOST = 512 };

typedef struct {
    uint32_t least, most; /* parcels sent and not yet released */
    uint32_t ahead;       /* of them, now */
    uint64_t sent, acked, released;
    int64_t sent_ns[RP_FEED_PACE_MOST]; /* by number */
    int64_t trip_ns[RP_FEED_PACE_MOST]; /* from sending to the ack */
    int64_t shortest_ns;                /* trip; 0: not known */
    uint32_t since;                     /* parcels released since it was forgotten */
    uint32_t too_far;                   /* that waited, since one less is sent */
} rp_feed_pace;

/* `most`: parcels that the far end takes; `besides`: how many of these are labels, which wait there
 * for their inputs. */
void rp_feed_pace_start(rp_feed_pace *pace, uint32_t most, uint32_t besides);
bool rp_feed_pace_may_send(const rp_feed_pace *pace);
void rp_feed_pace_sent(rp_feed_pace *pace, int64_t now);
/* So many of what was sent are not acked, and not released. */
void rp_feed_pace_heard(rp_feed_pace *pace, uint64_t unacked, uint64_t unreleased, int64_t now);

#endif
