/* From the plan to a runner's edges: what a node's links carry, and how much may wait on them. */
#ifndef RP_AGENT_CONNECT_H
#define RP_AGENT_CONNECT_H

#include "agent/runner.h"
#include "plan/plan.h"

/* Where the other end of an edge is. All edges to one side share a link. */
typedef enum {
    RP_SIDE_HERE,   /* on this node: no link */
    RP_SIDE_BEFORE, /* the node that sends activations to this one, and dials it */
    RP_SIDE_BEHIND, /* the node that this one sends activations to, and dials */
    RP_SIDE_HOST,
    RP_SIDES
} rp_runner_side;

/* What a side's link has to carry: 0 edges = there is no such link. */
typedef struct {
    uint32_t edges;
    uint32_t window, send_window; /* of its link: parcels that come, parcels that go */
} rp_runner_use;
rp_runner_use rp_runner_use_of(const rp_plan *plan, uint32_t node, rp_runner_side side);

/* Can boards train what the plan says of this node? errors USAGE with the reason */
rp_err rp_runner_check_plan(const rp_plan *plan, uint32_t node) RP_MUST_CHECK;

/* Adds the node's edges; options->held are the plan's holds of the node, in its order. `link` by
 * side. errors USAGE, LIMIT */
rp_err rp_runner_connect(rp_runner_options *options, const rp_plan *plan, uint32_t node,
                         rp_link *const link[RP_SIDES]) RP_MUST_CHECK;

#endif
