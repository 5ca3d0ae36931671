/* Forward on weights predicted for the backward, by the optimiser's own rule (METHODS 5). */
#include "sched/sched.h"

const rp_sched_kind rp_sched_pipeoptim = {
    .name = "pipeoptim",
    .manual = "predicts the weights of a forward for its backward",
    .source = "PipeOptim, Guan et al., TKDE 2025: equations of the paper, the "
              "released code as an option",
    .weights = RP_WEIGHTS_PIPEOPTIM,
    .next = rp_sched_next_unflushed,
};
