/* Converts the plan to a runner's edges: contents and windows of a node's links. */
#ifndef RP_AGENT_CONNECT_H
#define RP_AGENT_CONNECT_H

#include "agent/runner.h"
#include "plan/plan.h"

/* What the link to a neighbour, or to RP_PLAN_HOST, must carry; 0 edges = there is no link. */
typedef struct {
    uint32_t edges;
    /* both ends share a stage: gradients or values of all its weights */
    bool weights;
    bool ties;                    /* gradients of tensors that layers of both ends share */
    bool stashes;                 /* stashes of forwards, for backwards on the neighbour */
    uint32_t window, send_window; /* of its link: incoming parcels, outgoing parcels */
} rp_runner_use;
rp_runner_use rp_runner_use_of(const rp_plan *plan, uint32_t node, uint32_t far);

/* The link to a neighbour, or to RP_PLAN_HOST. */
typedef struct {
    uint32_t far;
    rp_link *link;
} rp_runner_far;

/* Fills in the plan, the node and its edges; options->held are the plan's holds of the node, in its
 * order. `far`: every neighbour of the node, and the host if they share edges. The plan has passed
 * rp_plan_check_training(). errors USAGE, LIMIT */
rp_err rp_runner_connect(rp_runner_options *options, const rp_plan *plan, uint32_t node,
                         const rp_runner_far *far, uint32_t far_count) RP_MUST_CHECK;

#endif
