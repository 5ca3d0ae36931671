/* A ring that follows its boards: other stages, chosen between two segments. Boards follow a
 * script, time is stepped. */
#include "boards.h"

static test_ring ring; /* large for a stack */

/* What boards say of a segment may come when its evaluation has begun: an op takes a hundred times
 * as long as predicted. Behind the evaluation the ring has new stages, and goes on. */
static void a_drift_is_noticed_behind_an_evaluation(void **state) {
    (void)state;
    ring_prepare(&ring, "out");
    ring_set_roster(&ring, "wait: 20");
    ring_set(&ring, "train.epochs=4");
    ring_set(&ring, "plan.drift=0.05");
    ring_open(&ring);
    assert_true(ring_reach(&ring, RP_CONTROL_EVALUATE));
    const rp_prediction *predicted = rp_drift_prediction(ring.c->measure);
    const rp_plan *plan = rp_arrangement_plan(ring.c->setup);
    assert_non_null(predicted);
    const rp_sink_op slow = {
        .stage = plan->hold[0].node,
        .part = plan->hold[0].stage,
        .kind = RP_OP_FORWARD,
        .samples = {0, plan->stage[plan->hold[0].stage].micro_forward},
        .end_ns = (int64_t)(100 * predicted->op_s[0][RP_OP_FORWARD] * (double)RP_NS_PER_S)};
    for (uint32_t i = 0; i < 1000; i++) {
        rp_drift_note_op(ring.c->measure, plan, &slow);
    }
    for (uint32_t i = 0; i < 2000 && ring.c->machine.state == RP_CONTROL_EVALUATE; i++) {
        ring_step(&ring, RP_NS_PER_MS);
    }
    assert_int_equal(ring.c->machine.state, RP_CONTROL_HELLO);
    rp_summary_prediction told;
    expect_ok(rp_drift_tell(ring.c->measure, NULL, NULL, &told));
    assert_int_equal(told.cuts, 1);
    expect_ok(ring_end(&ring, 2000));
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_drift_is_noticed_behind_an_evaluation, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
