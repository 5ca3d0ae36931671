/* Double-buffered weights: step b uses W^(b-1), forward and backward, on every stage (METHODS 2.4).
 * A step begins when the step before the previous one has been applied, so two versions suffice
 * even if a step is short. */
#include "sched/sched.h"

const rp_sched_kind rp_sched_pipedream_2bw = {
    .name = "pipedream-2bw",
    .manual = "uses the weights of the previous step: two versions",
    .source = "PipeDream-2BW, Narayanan et al., ICML 2021",
    .accumulates = true,
    .weights = RP_WEIGHTS_DOUBLE,
    .next = rp_sched_next_unflushed,
};
