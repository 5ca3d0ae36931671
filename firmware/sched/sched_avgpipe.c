/* Several pipelines on the same boards, each with its own model, and a reference model that sums
 * their local updates (METHODS 8). */
#include "sched/sched.h"

const rp_sched_kind rp_sched_avgpipe = {
    .name = "avgpipe",
    .manual = "trains replicas, and a reference that sums their updates",
    .source = "AvgPipe, Chen, Xu, Qian, Zhou, PPoPP 2023: a reconstruction from "
              "figures and abstract",
    .accumulates = true,
    .weights = RP_WEIGHTS_CURRENT,
    .average = RP_AVERAGE_REFERENCE,
    .next = rp_sched_next_unflushed,
};
