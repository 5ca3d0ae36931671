/* Weight stashing: a backward sees the weights of its forward (METHODS 2). Stashes are tagged by
 * microbatch, so a drain does not confuse them (METHODS 16, pitfall 1). */
#include "sched/sched.h"

const rp_sched_kind rp_sched_pipedream = {
    .name = "pipedream",
    .manual = "keeps the weights of every forward for its backward",
    .source = "PipeDream, Narayanan et al., SOSP 2019",
    .weights = RP_WEIGHTS_STASH,
    .next = rp_sched_next_unflushed,
};
