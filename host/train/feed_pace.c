#include "train/feed_pace.h"

#include "base/err.h"

/* FORGET: parcels after which the shortest trip is forgotten. PATIENCE: parcels that waited too
 * long before the limit shrinks, because they were sent before anything changed. */
enum { FORGET = 1024, PATIENCE = 4 };

void rp_feed_pace_start(rp_feed_pace *pace, uint32_t most, uint32_t besides) {
    const uint32_t least = RP_FEED_PACE_LEAST + besides;
    most = most < RP_FEED_PACE_MOST ? most : RP_FEED_PACE_MOST;
    *pace = (rp_feed_pace){.least = least < most ? least : most, .most = most};
    pace->ahead = pace->least;
}

bool rp_feed_pace_may_send(const rp_feed_pace *pace) {
    RP_ASSERT(pace->released <= pace->acked && pace->acked <= pace->sent);
    RP_ASSERT(pace->least <= pace->ahead && pace->ahead <= pace->most);
    return pace->sent - pace->released < pace->ahead;
}

void rp_feed_pace_sent(rp_feed_pace *pace, int64_t now) {
    RP_ASSERT(pace->sent - pace->released < RP_FEED_PACE_MOST);
    pace->sent_ns[pace->sent++ % RP_FEED_PACE_MOST] = now;
}

static void forget_shortest(rp_feed_pace *pace) {
    pace->since = 0;
    pace->shortest_ns = 0;
    pace->ahead = pace->ahead / 2 > pace->least ? pace->ahead / 2 : pace->least;
}

/* A parcel travelled for `trip` and then waited for `waited`. */
static void adapt_limit(rp_feed_pace *pace, int64_t trip, int64_t waited) {
    const int64_t shortest = pace->shortest_ns > 0 ? pace->shortest_ns : trip;
    const bool hungry = waited < trip / 4 && trip < shortest + shortest / 2;
    const bool too_far = waited > trip || trip > 2 * shortest;
    if (hungry && pace->ahead < pace->most) {
        pace->ahead++;
    } else if (too_far && pace->ahead > pace->least && ++pace->too_far == PATIENCE) {
        pace->ahead--;
        pace->too_far = 0;
    }
    if (++pace->since == FORGET) {
        forget_shortest(pace);
    }
}

void rp_feed_pace_heard(rp_feed_pace *pace, uint64_t unacked, uint64_t unreleased, int64_t now) {
    const uint64_t acked = pace->sent - (unacked < pace->sent ? unacked : pace->sent);
    const uint64_t free = pace->sent - (unreleased < pace->sent ? unreleased : pace->sent);
    for (; pace->acked < acked; pace->acked++) {
        const uint64_t at = pace->acked % RP_FEED_PACE_MOST;
        const int64_t trip = now - pace->sent_ns[at];
        pace->trip_ns[at] = trip;
        pace->shortest_ns =
            pace->shortest_ns && pace->shortest_ns < trip ? pace->shortest_ns : trip;
    }
    for (; pace->released < free && pace->released < pace->acked; pace->released++) {
        const uint64_t at = pace->released % RP_FEED_PACE_MOST;
        const int64_t trip = pace->trip_ns[at];
        adapt_limit(pace, trip, now - pace->sent_ns[at] - trip);
    }
}
