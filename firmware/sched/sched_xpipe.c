/* Prediction by step: its first microbatch predicts, all later microbatches use those weights
 * (METHODS 6). */
#include "sched/sched.h"

const rp_sched_kind rp_sched_xpipe = {
    .name = "xpipe",
    .manual = "predicts for a step's first microbatch; its other microbatches use the same weights",
    .source = "XPipe, Guan, Yin, Li, Lu 2019, from reading notes; rounding of halves "
              "to even is our choice",
    .accumulates = true,
    .weights = RP_WEIGHTS_XPIPE,
    .next = rp_sched_next_unflushed,
};
