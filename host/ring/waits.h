/* What can wake a controller: the links of its ring, and descriptors that become readable. */
#ifndef RP_RING_WAITS_H
#define RP_RING_WAITS_H

#include "ring/ring.h"

/* The links and descriptors to wait for. */
typedef struct {
    rp_link *link[RP_LINKS_WAIT_MAX];
    uint32_t link_count;
    int fd[8];
    uint32_t fd_count;
} rp_wait_list;

/* Leaves out links and descriptors that do not exist (NULL, -1) or do not fit. */
void rp_waits_add_links(rp_wait_list *list, const rp_ring *ring);
void rp_waits_add_fd(rp_wait_list *list, int fd);
/* Prepares the links of the ring for a wait. Returns when the first of them has to be stepped;
 * INT64_MAX: never. */
int64_t rp_waits_prepare(const rp_ring *ring, int64_t now_ns);

#endif
