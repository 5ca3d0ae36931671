/* `ring.throttle`: boards that are slower than they are, emulated; all alike, or some otherwise. */
#ifndef RP_RUN_THROTTLES_H
#define RP_RUN_THROTTLES_H

#include "run/roster.h"
#include "stage/throttle.h"

typedef struct {
    const char *board; /* its name in the roster, or its place in a ring of this machine */
    rp_throttle throttle;
} rp_board_throttle;

/* Zeros: no board is throttled. */
typedef struct {
    rp_throttle all; /* of boards that are not in the list */
    uint32_t count;
    const rp_board_throttle *own; /* in an arena */
} rp_throttles;

/* `throttle:` of `ring`. `roster`: [boards] in any order, or NULL: boards have places only.
 * errors USAGE with file, line and key; MEMORY */
rp_err rp_throttles_read(rp_arena *arena, rp_node *ring, const rp_roster_entry *roster,
                         uint32_t boards, rp_throttles *out) RP_MUST_CHECK;

/* Of the board `name`. */
const rp_throttle *rp_throttles_of(const rp_throttles *throttles, const char *name);
bool rp_throttles_any(const rp_throttles *throttles);

#endif
