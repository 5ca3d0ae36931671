/* Whether the peer of a link is still there while the link is needed. A peer that has nothing to
 * send is asked with pings and answers, however long it computes or waits itself; only one that is
 * gone, or can not be reached, is silent. */
#ifndef RP_LINK_WATCH_H
#define RP_LINK_WATCH_H

#include "link/link.h"

#define RP_LINK_SILENT_NS (30 * RP_NS_PER_S)

/* Time counts by pings that were not answered: a clock that jumps ahead, or a process that was
 * stopped for a while, makes no peer silent. */
typedef struct {
    int64_t heard_ns, asked_ns; /* last */
    int64_t silent_ns;
} rp_link_watch;

/* From now on the link is needed. */
void rp_link_watch_begin(rp_link_watch *watch, const rp_link *link, int64_t now_ns);

/* Call it every round; sends the pings. True: nothing came for RP_LINK_SILENT_NS, and as much more
 * as the largest part takes at 1 Mbit/s, or as an emulated line holds packets back. */
bool rp_link_is_silent(rp_link_watch *watch, rp_link *link, int64_t now_ns) RP_MUST_CHECK;

#endif
