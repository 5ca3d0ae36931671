#include "sched/sched.h"

/* A forward as long as fewer than D - k microbatches are in flight, otherwise a backward. This
 * gives min(D-1-k, M) forwards to warm up, pairs of one forward and one backward, the remaining
 * backwards, then one update. It never asks for a microbatch that the step does not have, however
 * few there are (METHODS 16, pitfall 8). */
static bool next_1f1b(rp_sched_state *s, rp_op *op) {
    if (s->step == s->shape.step_end) {
        return false;
    }
    const uint32_t count = rp_sched_micro_count(&s->shape, s->step);
    const uint32_t in_flight_max = rp_sched_in_flight_max(&s->shape);
    if (s->f < count && s->f - s->b < in_flight_max) {
        *op = rp_sched_micro_op(s, RP_OP_FORWARD, s->step, s->f++);
    } else if (s->b < count) {
        *op = rp_sched_micro_op(s, RP_OP_BACKWARD, s->step, s->b++);
    } else {
        *op = rp_sched_end_step(s);
    }
    return true;
}

const rp_sched_kind rp_sched_1f1b = {
    .name = "1f1b",
    .manual = "alternates forwards and backwards; every step ends with empty pipes",
    .source = "PipeDream-Flush, Narayanan et al., ICML 2021 (DAPPLE, Fan et al., PPoPP 2021)",
    .flushed = true,
    .next = next_1f1b,
};
