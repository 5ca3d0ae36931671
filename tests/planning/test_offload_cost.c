/* What stashes cost that are elsewhere while they wait: METHODS 11.1 by hand. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_hidden_is_paid),
        cmocka_unit_test(a_bus_goes_both_ways),
        cmocka_unit_test(copies_of_the_processor_are_never_hidden),
        cmocka_unit_test(what_nobody_measured_is_not_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
