/* `lanes`: several rings train one model, each a pipeline over its own boards. */
#ifndef RP_RUN_LANES_H
#define RP_RUN_LANES_H

#include "run/roster.h"

enum { RP_LANES_MAX = 8, RP_LANE_NONE = UINT32_MAX };

typedef struct {
    uint32_t count; /* 0: the run has one ring, and all further fields have no meaning */
    uint32_t every; /* steps in a round */
    double alpha;   /* averaging weight of a lane that is not late; > 0, and count * alpha <= 1 */
    bool lag_auto;
    uint32_t lag; /* rounds that a running lane may miss before all lanes wait for it */
    uint32_t own; /* index of the lane that the run file describes; RP_LANE_NONE: the whole run */
} rp_lanes_keys;

/* errors USAGE with file, line and key */
rp_err rp_lanes_read(rp_node *root, rp_lanes_keys *out) RP_MUST_CHECK;

/* For verbs that do not run lanes: refuses a run with lanes, unless this controller runs one of
 * them and has a connection to the process that averages them (`has_end`). errors USAGE naming the
 * run file */
rp_err rp_lanes_check_own(const rp_lanes_keys *lanes, const char *run_path,
                          bool has_end) RP_MUST_CHECK;

/* Reduces a roster, boards and then spares, to the part of lane `own` (of the first lane for the
 * whole run). Lane k of n gets the entries from floor(count k / n) on. `lanes->count` > 0. errors
 * USAGE at `at`: fewer boards than lanes; MEMORY */
rp_err rp_lanes_deal(rp_arena *arena, const rp_lanes_keys *lanes, const rp_node *at,
                     rp_roster_entry **roster, uint32_t *boards, uint32_t *spares) RP_MUST_CHECK;

#endif
