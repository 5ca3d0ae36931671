/* Replicas of the weights, assigned to steps in turn, pulled together by an elastic average after
 * each update (METHODS 9). */
#include "sched/sched.h"

const rp_sched_kind rp_sched_ea_pipe = {
    .name = "ea-pipe",
    .manual = "trains replicas, which an elastic average keeps together",
    .source = "EA-Pipe, Jang, Yoo, Yook, IEEE Access 2024: a reconstruction from the "
              "abstract, with EASGD, Zhang, Choromanska, LeCun, NeurIPS 2015",
    .weights = RP_WEIGHTS_CURRENT,
    .average = RP_AVERAGE_ELASTIC,
    .next = rp_sched_next_unflushed,
};
