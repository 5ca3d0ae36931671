#include "ring/waits.h"

static void add_link(rp_wait_list *list, rp_link *link) {
    if (link && list->link_count < RP_LINKS_WAIT_MAX) {
        list->link[list->link_count++] = link;
    }
}

void rp_waits_add_links(rp_wait_list *list, const rp_ring *ring) {
    for (uint32_t k = 0; k < ring->count; k++) {
        add_link(list, ring->board[k].control);
        add_link(list, ring->board[k].feed);
    }
}

void rp_waits_add_fd(rp_wait_list *list, int fd) {
    if (fd >= 0 && list->fd_count < sizeof list->fd / sizeof *list->fd) {
        list->fd[list->fd_count++] = fd;
    }
}

static int64_t prepare_link(rp_link *link, int64_t now_ns) {
    if (!link) {
        return INT64_MAX;
    }
    rp_link_before_wait(link);
    return rp_link_deadline_ns(link, now_ns);
}

int64_t rp_waits_prepare(const rp_ring *ring, int64_t now_ns) {
    int64_t at_ns = INT64_MAX;
    for (uint32_t k = 0; k < ring->count; k++) {
        const int64_t control_ns = prepare_link(ring->board[k].control, now_ns);
        const int64_t feed_ns = prepare_link(ring->board[k].feed, now_ns);
        const int64_t first_ns = control_ns < feed_ns ? control_ns : feed_ns;
        at_ns = first_ns < at_ns ? first_ns : at_ns;
    }
    return at_ns;
}
