#include "link/link.h"

enum { WAIT_FDS_MAX = 64 };

rp_err rp_link_wait(rp_link *const *link, uint32_t link_count, const int *fds, uint32_t fd_count,
                    int64_t timeout_ns) {
    RP_ASSERT(link_count <= RP_LINKS_WAIT_MAX && fd_count <= WAIT_FDS_MAX);
    rp_handle handle[RP_LINKS_WAIT_MAX * RP_PORT_HANDLES_MAX + WAIT_FDS_MAX];
    uint32_t count = 0;
    const rp_clock clock = rp_clock_real();
    rp_loop alone = rp_loop_poll(&clock);
    rp_loop *loop = link_count ? rp_link_loop(link[0]) : &alone;
    const int64_t now = rp_loop_now_ns(loop);
    int64_t until = timeout_ns > 0 ? timeout_ns : 0;
    until = until < INT64_MAX - now ? now + until : INT64_MAX;
    for (uint32_t i = 0; i < link_count; i++) {
        rp_link_before_wait(link[i]);
        const int64_t at = rp_link_deadline_ns(link[i], now);
        until = at < until ? at : until;
        count += rp_link_handles(link[i], handle + count);
    }
    for (uint32_t i = 0; i < fd_count; i++) {
        handle[count++] = (rp_handle){.fd = fds[i]};
    }
    return loop->wait(loop, until, handle, count);
}
