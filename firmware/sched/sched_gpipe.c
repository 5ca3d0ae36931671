#include "sched/sched.h"

/* All forwards of a step, then its backwards from the last microbatch to the first, then one
 * update. */
static bool next_gpipe(rp_sched_state *s, rp_op *op) {
    if (s->step == s->shape.step_end) {
        return false;
    }
    const uint32_t count = rp_sched_micro_count(&s->shape, s->step);
    if (s->f < count) {
        *op = rp_sched_micro_op(s, RP_OP_FORWARD, s->step, s->f++);
    } else if (s->b < count) {
        *op = rp_sched_micro_op(s, RP_OP_BACKWARD, s->step, count - 1 - s->b++);
    } else {
        *op = rp_sched_end_step(s);
    }
    return true;
}

const rp_sched_kind rp_sched_gpipe = {
    .name = "gpipe",
    .manual = "makes all forwards of a step, then all backwards; every step ends with empty pipes",
    .source = "GPipe, Huang et al., NeurIPS 2019; backwards from the last microbatch to the first "
              "as in torchgpipe",
    .flushed = true,
    .next = next_gpipe,
};
