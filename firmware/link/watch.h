/* Decides whether the peer of a link is still there while the link is needed. An idle peer answers
 * pings, however long it computes or waits; only one that is gone or cannot be reached is silent.
 * Only answers count, because an incoming frame says nothing about the opposite direction.
 *
 * A peer that does not answer may be slow. It gets more time for known delays: measured round
 * trips, recent stalls of the peer, and packets held back by an emulated line. A connection that
 * moves bytes, or has moved a part of an incomplete message, is not silent, however slow it is. If
 * the transport cannot tell, the largest part gets the time that it takes at 1 Mbit/s. */
#ifndef RP_LINK_WATCH_H
#define RP_LINK_WATCH_H

#include "link/link.h"

/* Times without an answer, before the allowances above, after which: */
#define RP_LINK_REOPEN_NS (1 * RP_NS_PER_S) /* a new connection is tried */
#define RP_LINK_SILENT_NS (3 * RP_NS_PER_S) /* the peer is reported as silent */
#define RP_LINK_LOST_NS (10 * RP_NS_PER_S)  /* the link is given up */
#define RP_LINK_MEET_NS (30 * RP_NS_PER_S)  /* the same, for a peer that was never heard */

typedef enum {
    RP_WATCH_WELL,
    RP_WATCH_SILENT, /* no answer */
    RP_WATCH_LOST,   /* for too long */
    RP_WATCH_STUCK   /* it answers, but a message does not get through (health.stuck) */
} rp_watch_state;

/* Silence is counted in unanswered pings, so that neither a clock that jumps nor a process that was
 * stopped for a while makes a peer silent. */
typedef struct {
    int64_t answer_ns, asked_ns; /* times of the last answer and the last ping */
    int64_t silent_ns;           /* time without an answer and without moving bytes */
    int64_t more_ns;             /* extra time granted to this link */
    /* time for a peer that was never heard, if longer than RP_LINK_MEET_NS; set after
     * rp_link_watch_begin() */
    int64_t meet_ns;
    int64_t trip_ns;         /* longest recent round trip; 0: not known */
    bool has_asked;          /* since the last answer: both times are set */
    uint64_t sent, received; /* traffic at the last ping */
    uint64_t packets_at;     /* received packets when a message was last complete */
    uint64_t complete;       /* bytes of complete messages at that time */
    int64_t reopen_ns;       /* silence after which the next connection is tried */
    uint32_t reopened;       /* connections tried since the last answer */
} rp_link_watch;

/* Starts the watch: the link is needed from now on. */
void rp_link_watch_begin(rp_link_watch *watch, const rp_link *link, int64_t now_ns);

/* Call it in every round. Sends pings, and reconnects if this end connects. */
rp_watch_state rp_link_look(rp_link_watch *watch, rp_link *link, int64_t now_ns) RP_MUST_CHECK;

#endif
