/* The links of an assignment: neighbours learn where they listen, and the host opens its feeds. */
#ifndef RP_RING_CONNECT_H
#define RP_RING_CONNECT_H

#include "ring/ring.h"

/* Seconds since rp_ring_connect_boards() was called first, which is the age of emulated lines;
 * 0: it was not called yet. */
double rp_ring_lines_age_s(const rp_ring *ring);
/* The neighbours that dial a board, in ascending order. Returns how many. Pure. */
uint32_t rp_ring_dialled_by(const rp_plan *plan, uint32_t board,
                            uint32_t out[RP_PLAN_NEIGHBOURS_MAX]);
/* All boards are ready for the plan: sends each one CONNECT with the addresses that it dials, opens
 * the feed links that are not open, and watches the boards. The control links have emulated lines
 * from here on, if the run file asks for them. errors of rp_ring_post() and rp_link_open() */
rp_err rp_ring_connect_boards(rp_ring *ring, const rp_plan *plan) RP_MUST_CHECK;

#endif
