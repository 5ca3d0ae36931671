#include "sched/sched.h"

/* 1F1B's forwards and input gradients. Stage k defers up to k weight gradients and runs the oldest
 * as soon as there are more: k + (D - k) stashes are never more than stage 0 of 1F1B holds. Weight
 * gradients run from the first microbatch to the last, like 1F1B's backwards, so that sums are
 * taken in the same order and the results are bit-identical. */
static bool next_zb_h1(rp_sched_state *s, rp_op *op) {
    if (s->step == s->shape.step_end) {
        return false;
    }
    const uint32_t count = rp_sched_micro_count(&s->shape, s->step);
    const uint32_t in_flight_max = rp_sched_in_flight_max(&s->shape);
    if (s->b - s->w > s->shape.stage) {
        *op = rp_sched_micro_op(s, RP_OP_BACKWARD_WEIGHT, s->step, s->w++);
    } else if (s->f < count && s->f - s->b < in_flight_max) {
        *op = rp_sched_micro_op(s, RP_OP_FORWARD, s->step, s->f++);
    } else if (s->b < count) {
        *op = rp_sched_micro_op(s, RP_OP_BACKWARD_INPUT, s->step, s->b++);
    } else if (s->w < count) {
        *op = rp_sched_micro_op(s, RP_OP_BACKWARD_WEIGHT, s->step, s->w++);
    } else {
        *op = rp_sched_end_step(s);
    }
    return true;
}

const rp_sched_kind rp_sched_zb_h1 = {
    .name = "zb-h1",
    .manual = "is 1f1b with backwards in two halves: weight gradients are computed when a stage "
              "would wait",
    .source = "Zero Bubble, Qi et al., ICLR 2024: the handcrafted schedule ZB-H1",
    .flushed = true,
    .split_backward = true,
    .next = next_zb_h1,
};
