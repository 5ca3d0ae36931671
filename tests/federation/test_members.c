/* Who takes part in a round, who is there, and when a round closes. */
#include "folder.h"

#include <math.h>

#include "federation/sample.h"
#include "federation/spread.h"
#include "federation/take.h"
#include "federation/trace.h"

static void sizes_follow_the_keys(void **state) {
    const struct {
        double share;
        uint32_t count, sites, want;
    } cases[] = {{0, 0, 7, 7}, {0.5, 0, 7, 4}, {0.1, 0, 7, 1}, {0.01, 0, 7, 1},
                 {1, 0, 7, 7}, {0, 3, 7, 3},   {0, 9, 7, 7}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_federated_keys keys = {.share = cases[i].share, .count = cases[i].count};
        assert_int_equal(rp_sample_size(&keys, cases[i].sites), cases[i].want);
    }
}

static uint32_t draw(uint64_t seed, uint64_t round, uint32_t there, uint32_t size, uint32_t *out) {
    uint32_t list[20];
    uint32_t drawn;
    for (uint32_t i = 0; i < there; i++) {
        list[i] = 2 * i + 1;
    }
    expect_ok(rp_sample_draw(&arena, seed, round, list, there, size, out, &drawn));
    return drawn;
}

static void draws_follow_seed_and_round(void **state) {
    uint32_t first[20];
    uint32_t again[20];
    uint32_t seen[40] = {0};
    uint32_t changes = 0;
    (void)state;
    for (uint64_t round = 1; round <= 200; round++) {
        assert_int_equal(draw(7, round, 20, 5, first), 5);
        for (uint32_t i = 0; i < 5; i++) {
            assert_true(first[i] % 2 == 1 && first[i] < 40);
            assert_true(i == 0 || first[i] > first[i - 1]); /* ascending, so none twice */
            seen[first[i]]++;
        }
        assert_int_equal(draw(7, round, 20, 5, again), 5);
        assert_memory_equal(first, again, 5 * sizeof *first);
        (void)draw(8, round, 20, 5, again);
        changes += memcmp(first, again, 5 * sizeof *first) != 0;
    }
    assert_true(changes > 190);
    for (uint32_t i = 1; i < 40; i += 2) { /* 200 draws of a quarter: 50, deviation 6.1 */
        assert_true(seen[i] > 25 && seen[i] < 75);
    }
    assert_int_equal(draw(7, 1, 3, 5, first), 3); /* fewer are there: all of them */
    assert_int_equal(first[2], 5);
    assert_int_equal(draw(7, 1, 0, 5, first), 0);
}

static rp_err read_trace(const char *text, rp_trace_site **out) {
    static const char *const names[] = {"a", "b"};
    return rp_trace_read(&arena, write_text("trace.json", text), names, 2, out);
}

static void traces_are_half_open_and_repeat(void **state) {
    static const double at[] = {0, 10, 35, 59, 65, 95};
    static const bool want[] = {true, false, true, false, true, true};
    rp_trace_site *site;
    (void)state;
    expect_ok(read_trace("{\"a\": {\"duration\": 3, \"active\": [0, 30], \"inactive\": [10, 40], "
                         "\"finish_time\": 60, \"model\": \"phone\"},"
                         " \"b\": {\"active\": [5.5, 50], \"inactive\": [6], \"finish_time\": 60}}",
                         &site));
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        assert_int_equal(rp_trace_is_there(&site[0], at[i]), want[i]);
    }
    assert_false(rp_trace_is_there(&site[1], 0));
    assert_true(rp_trace_is_there(&site[1], 5.5));
    assert_false(rp_trace_is_there(&site[1], 6));
    assert_true(rp_trace_is_there(&site[1], 59.5)); /* to the end of the trace */
    assert_true(rp_trace_is_there(&site[1], 1e9 * 60 + 50));
    expect_ok(read_trace("{\"a\": {\"active\": [], \"inactive\": [], \"finish_time\": 1}, \"b\": "
                         "{\"active\": [0], \"inactive\": [1], \"finish_time\": 1}}",
                         &site));
    assert_false(rp_trace_is_there(&site[0], 0));
    assert_true(rp_trace_is_there(&site[1], 0.5));
}

static void wrong_traces_are_refused(void **state) {
    static const char *const wrong[] = {
        "[]",
        "{\"a\": {\"active\": [0], \"inactive\": [1], \"finish_time\": 1}}",
        "{\"a\": 1, \"b\": 1}",
        "{\"a\": {\"active\": [0], \"inactive\": [1]}, \"b\": {}}",
        "{\"a\": {\"active\": [0], \"inactive\": [1], \"finish_time\": 0}}",
        "{\"a\": {\"active\": [0], \"inactive\": [2], \"finish_time\": 1}}",
        "{\"a\": {\"active\": [1], \"inactive\": [1], \"finish_time\": 2}}",
        "{\"a\": {\"active\": [0, 1], \"inactive\": [2, 3], \"finish_time\": 4}}",
        "{\"a\": {\"active\": [-1], \"inactive\": [1], \"finish_time\": 4}}",
        "{\"a\": {\"active\": [0, 2], \"inactive\": [], \"finish_time\": 4}}",
        "{\"a\": {\"active\": [0], \"inactive\": [1, 2], \"finish_time\": 4}}",
        "{\"a\": {\"active\": [\"0\"], \"inactive\": [1], \"finish_time\": 4}}",
        "{\"a\": {\"active\": 0, \"inactive\": [1], \"finish_time\": 4}}",
    };
    rp_trace_site *site;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_err(read_trace(wrong[i], &site), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), "trace.json"));
    }
}

static void rounds_close_when_they_should(void **state) {
    const struct {
        uint32_t asked, done, given_up, least;
        int64_t waited, wait;
        rp_take_decision want;
    } cases[] = {
        {3, 3, 0, 0, 1, 0, RP_TAKE_CLOSES},
        {3, 2, 0, 0, 1000, 0, RP_TAKE_WAITS}, /* without a limit all are waited for */
        {3, 2, 1, 0, 1, 0, RP_TAKE_FAILS},    /* all are needed */
        {3, 2, 0, 2, 9, 10, RP_TAKE_WAITS},
        {3, 2, 0, 2, 10, 10, RP_TAKE_CLOSES},
        {3, 1, 0, 2, 11, 10, RP_TAKE_WAITS}, /* least is not met yet */
        {3, 1, 1, 2, 11, 10, RP_TAKE_WAITS},
        {3, 1, 2, 2, 11, 10, RP_TAKE_FAILS},
        {3, 0, 2, 2, 1, 10, RP_TAKE_FAILS}, /* it cannot be met any more */
        {3, 2, 1, 2, 1, 10, RP_TAKE_CLOSES},
        {3, 2, 0, 2, 1000, 0, RP_TAKE_WAITS},
        {3, 2, 0, 0, 11, 10, RP_TAKE_WAITS},
        {2, 2, 0, 5, 1, 0, RP_TAKE_CLOSES}, /* fewer take part than least asks for */
        {1, 0, 1, 1, 1, 0, RP_TAKE_FAILS},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_take_facts facts = {.asked = cases[i].asked,
                                     .done = cases[i].done,
                                     .given_up = cases[i].given_up,
                                     .least = cases[i].least,
                                     .waited_ns = cases[i].waited,
                                     .wait_ns = cases[i].wait};
        if (rp_take_decide(&facts) != cases[i].want) {
            fail_msg("case %zu: %d, not %d", i, rp_take_decide(&facts), cases[i].want);
        }
    }
}

static void spreads_leave_out_what_is_unknown(void **state) {
    double many[25];
    double some[] = {0.5, (double)NAN, 0.9, 0.1, (double)INFINITY};
    double none[] = {(double)NAN};
    double one[] = {0.25};
    (void)state;
    for (uint32_t i = 0; i < 25; i++) {
        many[i] = (double)((7 * i) % 25); /* 0 to 24, in another order */
    }
    rp_spread spread = rp_spread_of(many, 25);
    assert_int_equal(spread.count, 25);
    expect_close(spread.mean, 12, 1e-12, 0);
    expect_close(spread.worst_decile, 1, 1e-12, 0); /* of 0, 1 and 2 */
    expect_close(spread.deviation, sqrt(52), 1e-12, 0);
    spread = rp_spread_of(some, 5);
    assert_int_equal(spread.count, 3);
    expect_close(spread.mean, 0.5, 1e-12, 0);
    expect_close(spread.worst_decile, 0.1, 1e-12, 0);
    expect_close(spread.deviation, sqrt(0.32 / 3), 1e-12, 0);
    spread = rp_spread_of(one, 1);
    expect_close(spread.worst_decile, 0.25, 0, 0);
    expect_close(spread.deviation, 0, 0, 0);
    spread = rp_spread_of(none, 1);
    assert_int_equal(spread.count, 0);
    assert_true(isnan(spread.mean) && isnan(spread.worst_decile) && isnan(spread.deviation));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sizes_follow_the_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(draws_follow_seed_and_round, setup, teardown),
        cmocka_unit_test_setup_teardown(traces_are_half_open_and_repeat, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_traces_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(rounds_close_when_they_should, setup, teardown),
        cmocka_unit_test_setup_teardown(spreads_leave_out_what_is_unknown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
