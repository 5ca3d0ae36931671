/* Many seeds in child processes: every result is counted once, also of those that crash or hang. */
#include "expect.h"

#include <stdlib.h>
#include <unistd.h>

#include "sim/seeds.h"

enum { SEEDS = 100, CRASHES = 17, HANGS = 40, STOPS = 5, ERRS = 63 };

static rp_err run_one(void *context, uint64_t seed, rp_sim_result *out) {
    (void)context;
    if (seed == CRASHES) {
        abort();
    }
    while (seed == HANGS) {
        (void)usleep(1000);
    }
    if (seed == ERRS) {
        return rp_fail(RP_ERR_FAULT, "as the test wants it");
    }
    *out = (rp_sim_result){.outcome = seed == STOPS ? RP_SIM_STOPPED_RESUMABLE : RP_SIM_FINISHED,
                           .faults = seed == STOPS ? 2 : 3,
                           .virtual_s = 0.5};
    return RP_OK;
}

static uint32_t seen[SEEDS + 1];

static void on_result(void *context, uint64_t seed, const rp_sim_result *result) {
    (void)context;
    assert_true(seed <= SEEDS);
    seen[seed]++;
    const rp_sim_outcome want = seed == CRASHES || seed == ERRS ? RP_SIM_WRONG
                                : seed == HANGS                 ? RP_SIM_HUNG
                                : seed == STOPS                 ? RP_SIM_STOPPED_RESUMABLE
                                                                : RP_SIM_FINISHED;
    assert_int_equal(result->outcome, want);
}

static void run_seeds(uint32_t jobs) {
    rp_sim_tally tally;
    const rp_seeds_options options = {.first = 1,
                                      .last = SEEDS,
                                      .jobs = jobs,
                                      .limit_s = 4,
                                      .run = run_one,
                                      .on_result = on_result};
    for (uint32_t i = 0; i <= SEEDS; i++) {
        seen[i] = 0;
    }
    expect_ok(rp_seeds_run(&options, &tally));
    for (uint32_t i = 1; i <= SEEDS; i++) {
        assert_int_equal(seen[i], 1);
    }
    assert_int_equal(tally.runs, SEEDS);
    assert_int_equal(tally.wrong, 2);
    assert_int_equal(tally.hung, 1);
    assert_int_equal(tally.stopped_resumable, 1);
    assert_int_equal(tally.finished, SEEDS - 4);
    assert_true(tally.any_bad);
    assert_int_equal(tally.first_bad_seed, CRASHES);
    assert_int_equal(tally.faults, 3 * (SEEDS - 3) - 1);
    assert_int_equal(tally.faults_min, 0); /* of those that crash */
}

static void every_seed_counts_once(void **state) {
    (void)state;
    run_seeds(1);
    run_seeds(3);
    run_seeds(64);
}

static rp_err spin(void *context, uint64_t seed, rp_sim_result *out) {
    const uint64_t *spins = context;
    for (volatile uint64_t i = 0; seed == *spins; i++) {
    }
    *out = (rp_sim_result){.outcome = RP_SIM_FINISHED, .faults = 1};
    return RP_OK;
}

/* By its own processor time: real time says nothing on a machine with other work. */
static void who_computes_for_ever_hangs(void **state) {
    (void)state;
    uint64_t spins = 2;
    rp_sim_tally tally;
    const rp_seeds_options options = {.first = 1,
                                      .last = 4,
                                      .jobs = 2,
                                      .busy_limit_s = 0.3,
                                      .limit_s = 1e6,
                                      .run = spin,
                                      .context = &spins};
    expect_ok(rp_seeds_run(&options, &tally));
    assert_int_equal(tally.runs, 4);
    assert_int_equal(tally.hung, 1);
    assert_int_equal(tally.first_bad_seed, 2);
    assert_int_equal(tally.finished, 3);
}

static void one_seed_is_enough(void **state) {
    (void)state;
    rp_sim_tally tally;
    const rp_seeds_options options = {
        .first = STOPS, .last = STOPS, .jobs = 2, .limit_s = 5, .run = run_one};
    expect_ok(rp_seeds_run(&options, &tally));
    assert_int_equal(tally.runs, 1);
    assert_int_equal(tally.stopped_resumable, 1);
    assert_int_equal(tally.faults_min, 2);
    assert_false(tally.any_bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seed_counts_once),
        cmocka_unit_test(who_computes_for_ever_hangs),
        cmocka_unit_test(one_seed_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
