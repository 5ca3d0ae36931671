/* This test must fail: CTest expects it to. 1F1B with one forward too many to warm up is not the
 * drawing of 1F1B. */
#include "schedule.h"

extern const rp_sched_kind rp_sched_1f1b;

static bool next_too_warm(rp_sched_state *s, rp_op *op) {
    s->shape.advance = 1;
    return rp_sched_1f1b.next(s, op);
}

static void drawing(void **state) {
    (void)state;
    rp_sched_kind kind = rp_sched_1f1b;
    kind.next = next_too_warm;
    assert_true(draws(&kind, 2, 3,
                      "1f1b, 2 stages, 3 microbatches: 8 columns, bubble 25.0 %\n"
                      "F0 F1 .  B0 F2 B1 .  B2   stage 0  in flight 2  versions 1  gap 0\n"
                      ".  F0 B0 F1 B1 F2 B2 .    stage 1  in flight 1  versions 1  gap 0\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(drawing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
