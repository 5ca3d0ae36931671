/* The links of an assignment: neighbours learn each other's addresses, and the host opens its
 * feeds. */
#ifndef RP_RING_CONNECT_H
#define RP_RING_CONNECT_H

#include "ring/ring.h"

/* Age of emulated lines: seconds since the first rp_ring_connect_boards(); 0: not called yet. */
double rp_ring_lines_age_s(const rp_ring *ring);
/* The neighbours that dial a board, in ascending order. Returns how many. Pure. */
uint32_t rp_ring_dialled_by(const rp_plan *plan, uint32_t board,
                            uint32_t out[RP_PLAN_NEIGHBOURS_MAX]);
/* All boards are ready for the plan: sends CONNECT to each with the addresses that it dials, opens
 * missing feed links, and starts watching the boards. From here on the control links have emulated
 * lines, if the run file asks for them. errors of rp_ring_post() and rp_link_open() */
rp_err rp_ring_connect_boards(rp_ring *ring, const rp_plan *plan) RP_MUST_CHECK;

#endif
