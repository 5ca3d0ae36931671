/* `ring.throttle`: emulation of slower boards, for all of them or by board. */
#ifndef RP_RUN_THROTTLES_H
#define RP_RUN_THROTTLES_H

#include "run/roster.h"
#include "stage/throttle.h"

typedef struct {
    const char *board; /* its name in the roster, or its place in a local ring */
    rp_throttle throttle;
} rp_board_throttle;

/* All zeros: no board is throttled. */
typedef struct {
    rp_throttle all; /* for boards that are not in `own` */
    uint32_t count;
    const rp_board_throttle *own; /* in an arena */
} rp_throttles;

/* Reads `throttle` of the map `ring`. `roster`: [boards] in any order; NULL: boards are named by
 * their places. errors USAGE with file, line and key; MEMORY */
rp_err rp_throttles_read(rp_arena *arena, rp_node *ring, const rp_roster_entry *roster,
                         uint32_t boards, rp_throttles *out) RP_MUST_CHECK;

/* The throttle of the board `name`. */
const rp_throttle *rp_throttles_of(const rp_throttles *throttles, const char *name);
bool rp_throttles_any(const rp_throttles *throttles);

#endif
