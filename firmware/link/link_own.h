/* Private to link.c and links.c: what the links of one process part share. */
#ifndef RP_LINK_LINK_OWN_H
#define RP_LINK_LINK_OWN_H

#include "link/link.h"

struct rp_links {
    const rp_clock *clock;
    rp_loop own_loop;
    rp_loop *loop;
    rp_transport *transport;
    rp_transport *own_transport; /* to be finished with the links, or NULL */
    uint64_t seed;
    rp_rng *sessions; /* NULL: from the kernel */
    rp_link *first;
    uint32_t opened; /* links, ever */
};

#endif
