/* Async, without correction: forward and backward each use the newest weights, and every step ends
 * with an update. Like AMPNet; "vanilla model parallelism" in SpecTrain (METHODS 2). */
#include "sched/sched.h"

const rp_sched_kind rp_sched_async = {
    .name = "async",
    .manual = "does not wait and corrects nothing",
    .source = "AMPNet, Gaunt et al. 2017; the uncorrected baseline of SpecTrain, "
              "Chen et al. 2018",
    .weights = RP_WEIGHTS_CURRENT,
    .next = rp_sched_next_unflushed,
};
