#include "link/watch.h"

static const int64_t ASK_NS = 2 * RP_NS_PER_S;

void rp_link_watch_begin(rp_link_watch *watch, const rp_link *link, int64_t now_ns) {
    *watch = (rp_link_watch){.heard_ns = rp_link_health_of(link).last_heard_ns, .asked_ns = now_ns};
}

bool rp_link_is_silent(rp_link_watch *watch, rp_link *link, int64_t now_ns) {
    const int64_t heard_ns = rp_link_health_of(link).last_heard_ns;
    if (heard_ns != watch->heard_ns) {
        *watch = (rp_link_watch){.heard_ns = heard_ns, .asked_ns = now_ns};
        return false;
    }
    if (now_ns - watch->asked_ns < ASK_NS) {
        return false;
    }
    watch->asked_ns = now_ns;
    watch->silent_ns += ASK_NS;
    (void)!rp_link_ping(link); /* without a connection there is no answer either */
    return watch->silent_ns >= RP_LINK_SILENT_NS + rp_link_slow_ns(link);
}
