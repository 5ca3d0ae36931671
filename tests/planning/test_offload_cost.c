/* What stashes cost that are elsewhere while they wait: METHODS 11.1, 11.2, 11.4 by hand. */
#include "expect.h"

#include <math.h>

#include "planning/offload.h"

static bool is_near(double a, double b) {
    return fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b)) + 1e-15;
}

static const rp_offload_cost plain = {.stash_bytes = 8e6,
                                      .write_rate = 80e6, /* 100 ms */
                                      .read_rate = 160e6, /* 50 ms */
                                      .forward_s = 0.03,
                                      .backward_s = 0.06};

/* Flash does one thing at a time: 150 ms of copies beside 90 ms of ops. */
static void what_is_not_hidden_is_paid(void **state) {
    (void)state;
    rp_offload_cost own = plain;
    assert_true(is_near(rp_offload_cost_s(&own), 0.06));
    own.backward_s = 0.12; /* they take as long as the copies */
    assert_true(is_near(rp_offload_cost_s(&own), 0));
    own.backward_s = 0.5;
    assert_true(is_near(rp_offload_cost_s(&own), 0));
}

/* A bus goes both ways at once: max(100, 50) ms beside 90. */
static void a_bus_goes_both_ways(void **state) {
    (void)state;
    rp_offload_cost own = plain;
    own.both_ways = true;
    assert_true(is_near(rp_offload_cost_s(&own), 0.01));
    own.read_rate = 10e6; /* 800 ms */
    assert_true(is_near(rp_offload_cost_s(&own), 0.71));
}

static void copies_of_the_processor_are_never_hidden(void **state) {
    (void)state;
    rp_offload_cost own = plain;
    own.copy_s = 0.004;
    assert_true(is_near(rp_offload_cost_s(&own), 0.064));
    own.backward_s = 10;
    assert_true(is_near(rp_offload_cost_s(&own), 0.004));
}

static void what_nobody_measured_is_not_chosen(void **state) {
    (void)state;
    rp_offload_cost own = plain;
    own.write_rate = 0;
    assert_true(isinf(rp_offload_cost_s(&own)) && rp_offload_cost_s(&own) > 0);
    own = plain;
    own.read_rate = (double)NAN;
    assert_true(isinf(rp_offload_cost_s(&own)));
}

static const char *const board[][2] = {{"f0", "b0"}, {"f1", "b1"}};

static void a_split_whose_stash_is_slow_is_refused(void **state) {
    (void)state;
    rp_split_cost stage[] = {{0.02, 0.05, 0.049}, {0.03, 0.04, 0.01}};
    assert_true(is_near(rp_split_period_s(stage, 2), 0.05));
    expect_ok(rp_split_check(stage, 2, board));
    stage[0].stash_s = 0.05; /* as long: nobody waits */
    expect_ok(rp_split_check(stage, 2, board));
    stage[1].stash_s = 0.0625;
    expect_err(rp_split_check(stage, 2, board), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "stage 1: a stash takes 62.5 ms on the wire from "
                                             "board f1 to board b1"));
    assert_non_null(strstr(rp_err_message(), "no board computes longer than 50 ms"));
    stage[0].forward_s = 0.07; /* a slower board: now it is not what the ring waits for */
    expect_ok(rp_split_check(stage, 2, board));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_hidden_is_paid),
        cmocka_unit_test(a_bus_goes_both_ways),
        cmocka_unit_test(copies_of_the_processor_are_never_hidden),
        cmocka_unit_test(what_nobody_measured_is_not_chosen),
        cmocka_unit_test(a_split_whose_stash_is_slow_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
