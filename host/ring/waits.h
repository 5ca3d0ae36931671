/* What a controller waits for outside: the links of its ring, and files that become readable. */
#ifndef RP_RING_WAITS_H
#define RP_RING_WAITS_H

#include "ring/ring.h"

/* What the controller's owner can wait for. */
typedef struct {
    rp_link *link[RP_LINKS_WAIT_MAX];
    uint32_t link_count;
    int fd[8];
    uint32_t fd_count;
} rp_wait_list;

/* Links and files that do not exist (NULL, -1), or for which there is no room, are left out. */
void rp_waits_add_links(rp_wait_list *list, const rp_ring *ring);
void rp_waits_add_fd(rp_wait_list *list, int fd);
/* Gets the links of the ring ready for a wait. Returns when the first of them has to be stepped
 * again; INT64_MAX: never. */
int64_t rp_waits_prepare(const rp_ring *ring, int64_t now_ns);

#endif
