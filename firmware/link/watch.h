/* Whether the peer of a link is still there while the link is needed. A peer that has nothing to
 * send is asked with pings and answers, however long it computes or waits itself; only one that is
 * gone, or can not be reached, is silent. What counts are answers: a frame that comes says nothing
 * of the other direction.
 *
 * Who does not answer may be slow. More time is given for what is known of that: round trips as
 * measured, how long the peer has not looked at its links of late, what an emulated line holds
 * back. And a connection that moves bytes, or has moved some of a message that is not complete, is
 * not silent, however slow it is; where the transport can not tell, the largest part has the time
 * that it takes at 1 Mbit/s. */
#ifndef RP_LINK_WATCH_H
#define RP_LINK_WATCH_H

#include "link/link.h"

/* Without an answer for so long, and what is said above: */
#define RP_LINK_REOPEN_NS (1 * RP_NS_PER_S) /* another connection is tried */
#define RP_LINK_SILENT_NS (3 * RP_NS_PER_S) /* it is said */
#define RP_LINK_LOST_NS (10 * RP_NS_PER_S)  /* the link is given up */
#define RP_LINK_MEET_NS (30 * RP_NS_PER_S)  /* the same, for a peer that was never heard */

typedef enum {
    RP_WATCH_WELL,
    RP_WATCH_SILENT, /* no answer */
    RP_WATCH_LOST,   /* for too long */
    RP_WATCH_STUCK   /* it answers, but a message does not get through, as health.stuck says */
} rp_watch_state;

/* Time counts by pings that were not answered: a clock that jumps ahead, or a process that was
 * stopped for a while, makes no peer silent. */
typedef struct {
    int64_t answer_ns, asked_ns; /* last */
    int64_t silent_ns;           /* without an answer, or bytes that move */
    int64_t more_ns;             /* time beyond the usual that this link is given */
    int64_t meet_ns;             /* time for a peer that was never heard, if longer than
                                    RP_LINK_MEET_NS; set after rp_link_watch_begin() */
    int64_t trip_ns;             /* longest round trip of late; 0: none is known */
    bool has_asked;              /* since the last answer: then there is */
    uint64_t sent, received;     /* of the traffic at the last ping */
    uint64_t packets_at;         /* what had been received when a message was last complete */
    uint64_t complete;           /* bytes of messages that were complete then */
    int64_t reopen_ns;           /* of silence, at which the next connection is tried */
    uint32_t reopened;           /* connections tried since the last answer */
} rp_link_watch;

/* From now on the link is needed. */
void rp_link_watch_begin(rp_link_watch *watch, const rp_link *link, int64_t now_ns);

/* Call it every round: sends the pings, and opens the connection anew where this end connects. */
rp_watch_state rp_link_look(rp_link_watch *watch, rp_link *link, int64_t now_ns) RP_MUST_CHECK;

#endif
