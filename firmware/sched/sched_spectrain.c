/* Forward and backward on weights predicted for the end of the round trip (METHODS 4). */
#include "sched/sched.h"

const rp_sched_kind rp_sched_spectrain = {
    .name = "spectrain",
    .manual = "predicts the weights of both passes for the end of the round trip",
    .source = "SpecTrain, Chen, Yang, Cheng 2018: equations of the paper; prediction "
              "distance measured by replay",
    .weights = RP_WEIGHTS_SPECTRAIN,
    .next = rp_sched_next_unflushed,
};
