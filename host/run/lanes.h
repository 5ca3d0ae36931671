/* `lanes`: a run that several rings train, each a pipeline of its own over boards of its own. */
#ifndef RP_RUN_LANES_H
#define RP_RUN_LANES_H

#include "run/roster.h"

enum { RP_LANES_MAX = 8, RP_LANE_NONE = UINT32_MAX };

typedef struct {
    uint32_t count; /* 0: the run has one ring, and the rest says nothing */
    uint32_t every; /* steps of a round */
    double alpha;   /* of a lane that is not late */
    bool lag_auto;
    uint32_t lag; /* rounds that the others do without a lane at work before they wait for it */
    uint32_t own; /* the lane that this run file is of; RP_LANE_NONE: it is of the whole run */
} rp_lanes_keys;

/* errors USAGE with file, line and key */
rp_err rp_lanes_read(rp_node *root, rp_lanes_keys *out) RP_MUST_CHECK;

/* A run of lanes has a controller for each of them, which has somebody to report to: `has_end`.
 * errors USAGE naming the run file */
rp_err rp_lanes_check_own(const rp_lanes_keys *lanes, const char *run_path,
                          bool has_end) RP_MUST_CHECK;

/* Of a roster, the boards and the spares behind them: those of lane `own`, or of the first one.
 * Each lane gets its part in the order of the file. errors USAGE: fewer boards than lanes; MEMORY
 */
rp_err rp_lanes_deal(rp_arena *arena, const rp_lanes_keys *lanes, const rp_node *at,
                     rp_roster_entry **roster, uint32_t *boards, uint32_t *spares) RP_MUST_CHECK;

#endif
