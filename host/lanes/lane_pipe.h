/* The lane's side of the connection to its run: reports go out on one descriptor, answers come in
 * on another, one JSON object per line. */
#ifndef RP_LANES_LANE_PIPE_H
#define RP_LANES_LANE_PIPE_H

#include <stddef.h>

#include "control/env.h"

typedef struct {
    int in, out;
    uint64_t answered; /* newest step for which the run has answered */
    char line[256];
    size_t used;
    bool away;
} rp_lane_pipe;

/* Makes `in` non-blocking. errors IO */
rp_err rp_lane_open(rp_lane_pipe *pipe, int in, int out) RP_MUST_CHECK;
rp_lane_end rp_lane_end_of(rp_lane_pipe *pipe);
/* Call it when the controller enters a state: after a fault the run need not wait for this lane. */
void rp_lane_note_state(void *pipe, const char *state);
/* Tells the run how its lane ends, if that concerns all lanes: damaged data. */
void rp_lane_note_end(rp_lane_pipe *pipe, rp_err result);

#endif
