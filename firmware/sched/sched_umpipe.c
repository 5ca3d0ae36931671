#include "sched/sched.h"

/* GPipe's order, with microbatch sizes by stage and direction: all forwards of a step, then its
 * backwards from the last samples to the first, then one update. */
static bool next_umpipe(rp_sched_state *s, rp_op *op) {
    if (s->step == s->shape.step_end) {
        return false;
    }
    const uint32_t backwards = rp_sched_backward_count(&s->shape, s->step);
    if (s->f < rp_sched_micro_count(&s->shape, s->step)) {
        *op = rp_sched_micro_op(s, RP_OP_FORWARD, s->step, s->f++);
    } else if (s->b < backwards) {
        *op = rp_sched_backward_op(s, s->step, backwards - 1 - s->b++);
    } else {
        *op = rp_sched_end_step(s);
    }
    return true;
}

const rp_sched_kind rp_sched_umpipe = {
    .name = "umpipe",
    .manual = "is gpipe with a size of microbatches for each stage and direction",
    .source = "UMPIPE, Zhou, Tian, Buyya, Wu, TPDS 2025: a reconstruction from the abstract",
    .flushed = true,
    .sizes = true,
    .next = next_umpipe,
};
