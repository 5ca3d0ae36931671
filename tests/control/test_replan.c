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
    assert_true(ring.c->measure.drift.is_known);
    rp_drift_op *op = ring.c->measure.drift.op[0];
    op[RP_OP_FORWARD].count = 1000;
    op[RP_OP_FORWARD].seconds = 1e5 * ring.c->measure.drift.predicted.op_s[0][RP_OP_FORWARD];
    ring.c->measure.drift.setup_s = 0;
    for (uint32_t i = 0; i < 2000 && ring.c->machine.state == RP_CONTROL_EVALUATE; i++) {
        ring_step(&ring, RP_NS_PER_MS);
    }
    assert_int_equal(ring.c->machine.state, RP_CONTROL_HELLO);
    assert_int_equal(ring.c->measure.drift.cuts, 1);
    expect_ok(ring_end(&ring, 2000));
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_drift_is_noticed_behind_an_evaluation, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
