/* What the summary is told of boards and wires. */
#include "fakes.h"

/* A board that joined after the plan was made has no row: a run that ends then has no rows. */
static void rows_are_of_the_boards_of_the_plan(void **state) {
    (void)state;
    rp_record_end end = {0};
    open_plain();
    take_plan();
    expect_ok(rp_measure_tell(measure, plan, &arena, &end));
    assert_int_equal(end.stage_count, ring.count);
    ring.count--; /* as many boards less as the plan has more */
    end = (rp_record_end){0};
    expect_ok(rp_measure_tell(measure, plan, &arena, &end));
    ring.count++;
    assert_int_equal(end.stage_count, 0);
    assert_int_equal(end.wire_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_of_the_boards_of_the_plan, setup, close_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
