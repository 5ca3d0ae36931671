/* Inside of a ring; only for ring.c and assign.c. */
#ifndef RP_RUN_RING_OWN_H
#define RP_RUN_RING_OWN_H

#include "run/ring.h"

#define RP_RING_HELLO_NS (30 * RP_NS_PER_S)
#define RP_RING_BUILD_NS (1800 * RP_NS_PER_S) /* kernels are built on slow boards */
#define RP_RING_SILENT_NS (10 * RP_NS_PER_S)

/* Pumps until `done` holds for the first `count` boards.
 * errors  TIMEOUT naming the first board that has no `what`; INTERRUPTED; those of the pump */
rp_err rp_ring_wait(rp_ring *ring, const char *what, uint32_t count,
                    bool (*done)(const rp_board_state *), int64_t timeout_ns) RP_MUST_CHECK;

/* A HELLO ends what is under way on a board, and its answer says that it has ended. */
rp_err rp_ring_greet(rp_ring *ring) RP_MUST_CHECK;

#endif
