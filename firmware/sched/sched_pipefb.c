/* The forward of a stage on one node, its backward and update on another (METHODS 12). Both nodes
 * read the same list: 1F1B with as many steps open as the stage is ahead. */
#include "sched/split.h"

static bool next_pipefb(rp_sched_state *s, rp_op *op) {
    if (rp_sched_ahead(&s->shape) == 0) {
        rp_sched_split_default(&s->shape);
    }
    return rp_sched_next_unflushed(s, op);
}

const rp_sched_kind rp_sched_pipefb = {
    .name = "pipefb",
    .manual = "has the forward and the backward of a stage on different boards: two boards for "
              "each stage",
    .source = "PipeFB: a reconstruction from the abstract; exact `ahead` is our choice",
    .splits = true,
    .weights = RP_WEIGHTS_STASH,
    .next = next_pipefb,
};
