/* How long a round takes before it starts: lines and steps of a site, and all sites together. */
#include "folder.h"

#include <math.h>

#include "federation/round_time.h"
#include "run_of_sites.h"

static rp_round_time of(double seconds) {
    return (rp_round_time){.steps = 1, .step_s = seconds};
}

static void sites_take_turns(void **state) {
    const rp_round_time time[] = {of(4), of(1), of(2), of(3)};
    const rp_round_time unknown[] = {of(4), of((double)NAN), of(2)};
    (void)state;
    expect_close(rp_round_length_s(time, 4, 1), 10, 0, 1e-12);
    expect_close(rp_round_length_s(time, 4, 2), 6, 0, 1e-12); /* 4 | 1 + 2 + 3 */
    expect_close(rp_round_length_s(time, 4, 4), 4, 0, 1e-12);
    expect_close(rp_round_length_s(time, 4, 64), 4, 0, 1e-12);
    expect_close(rp_round_length_s(time, 0, 1), 0, 0, 1e-12);
    assert_true(isnan(rp_round_length_s(unknown, 3, 2)));
    assert_true(isnan(rp_round_length_s(unknown, 3, 3)));
}

static void longest_are_kept(void **state) {
    rp_round_time time[] = {of(4), of(1), of((double)NAN), of(3), of(2)};
    (void)state;
    rp_round_keep_longest(time, 5, 3);
    expect_close(time[0].step_s, 4, 0, 0);
    assert_true(isnan(time[1].step_s));
    expect_close(time[2].step_s, 3, 0, 0);
    rp_round_keep_longest(time, 3, 3);
    expect_close(time[2].step_s, 3, 0, 0);
    rp_round_keep_longest(time, 3, 1);
    assert_true(isnan(time[0].step_s));
}

static void parts_add_up(void **state) {
    const rp_round_time time = {.steps = 10, .start_s = 1, .step_s = 0.5, .down_s = 2, .up_s = 3};
    rp_round_time unknown = time;
    (void)state;
    expect_close(rp_round_time_s(&time), 11, 0, 1e-12);
    unknown.up_s = (double)NAN;
    assert_true(isnan(rp_round_time_s(&unknown)));
}

static rp_split_list list;
static rp_federation_cost cost = {
    .sites = SITES, .members = SITES, .weights_bytes = 1000000, .update_bytes = 500000};

static void open_sites(rp_runfile *run, const char *keys, const char *const *set, uint32_t count) {
    expect_ok(rp_runfile_read(&arena, write_sites(keys, ""), set, count, run));
    expect_ok(rp_split_file_read(&arena, run->federated.split, &list));
}

static void nothing_is_known(void **state) {
    const rp_round_costs costs = {.profile = NULL};
    rp_round_time *time;
    rp_round_forecast forecast;
    rp_runfile run;
    (void)state;
    open_sites(&run, "rounds: 2, epochs: 3", NULL, 0);
    expect_ok(rp_round_times(&arena, &run, &list, &cost, &costs, &time));
    for (uint32_t i = 0; i < SITES; i++) {
        assert_true(isnan(time[i].step_s) && isnan(time[i].down_s) && isnan(time[i].up_s));
        assert_true(time[i].start_s > 0);
    }
    /* Batches of 16 of 32, 20 and 12 samples, three times. */
    assert_int_equal(time[0].steps, 6);
    assert_int_equal(time[1].steps, 6);
    assert_int_equal(time[2].steps, 3);
    assert_int_equal(time[1].samples, 60);
    expect_ok(rp_round_predict(&arena, &run, &cost, &costs, &forecast));
    assert_true(isnan(forecast.round_s) && !forecast.at_most);
    rp_runfile_close(&run);
}

static void lines_and_steps_are_known(void **state) {
    /* One microbatch a step: both boards have their ops one after the other. */
    static const char link[] = "ring.link={hops: [{from: host, rate_mbit: 8, delay_ms: 5}, "
                               "{to: host, rate_mbit: 1, delay_ms: 7}]}";
    static const char *const set[] = {"ring.throttle={forward_ms: 10, backward_ms: 30}",
                                      "train.microbatch=16", link};
    const rp_round_costs costs = {.profile = NULL};
    rp_round_time *time;
    rp_round_forecast forecast;
    rp_runfile run;
    (void)state;
    open_sites(&run, "rounds: 2, steps: 5", set, 3);
    expect_ok(rp_round_times(&arena, &run, &list, &cost, &costs, &time));
    for (uint32_t i = 0; i < SITES; i++) {
        assert_int_equal(time[i].steps, 5);
        expect_close(time[i].down_s, 1.005, 0, 1e-9);
        expect_close(time[i].up_s, 4.007, 0, 1e-9);
        expect_close(time[i].step_s, 0.08, 0, 0.01);
    }
    cost.members = 2;
    /* 5 steps of 16 of 20 samples: two epochs of 16 + 4, then 16. */
    assert_int_equal(time[1].samples, 56);
    expect_ok(rp_round_predict(&arena, &run, &cost, &costs, &forecast));
    assert_true(forecast.at_most);
    cost.members = SITES;
    expect_close(forecast.round_s, 2 * rp_round_time_s(&time[0]), 0, 1e-9);
    rp_runfile_close(&run);
}

static void a_planned_step_counts(void **state) {
    const rp_round_costs costs = {.planned_step_s = 0.25};
    rp_round_time *time;
    rp_runfile run;
    (void)state;
    open_sites(&run, "rounds: 2, steps: 5", NULL, 0);
    expect_ok(rp_round_times(&arena, &run, &list, &cost, &costs, &time));
    expect_close(time[2].step_s, 0.25, 0, 0);
    rp_runfile_close(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_take_turns),
        cmocka_unit_test(longest_are_kept),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test_setup_teardown(nothing_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(lines_and_steps_are_known, setup, teardown),
        cmocka_unit_test_setup_teardown(a_planned_step_counts, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
