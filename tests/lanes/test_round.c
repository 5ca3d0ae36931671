/* Who takes part in a round. */
#include "expect.h"

#include "lanes/round.h"

#define SECOND INT64_C(1000000000)

static rp_round_facts all_wait(void) {
    rp_round_facts facts = {.count = 3, .alpha = 0.3, .waited_ns = SECOND, .bound_ns = 9 * SECOND};
    for (uint32_t k = 0; k < 3; k++) {
        facts.lane[k].condition = RP_LANE_WAITS;
    }
    return facts;
}

static void all_meet(void **state) {
    rp_round_facts facts = all_wait();
    rp_round_decision got;
    (void)state;
    rp_round_decide(&facts, &got);
    assert_true(got.closes);
    assert_int_equal(got.members, 3);
    for (uint32_t k = 0; k < 3; k++) {
        expect_close(got.alpha[k], 0.3, 0, 0);
        assert_int_equal(got.lag[k], 0);
    }
}

static void a_lane_at_work_is_waited_for(void **state) {
    rp_round_facts facts = all_wait();
    rp_round_decision got;
    (void)state;
    facts.lane[1].condition = RP_LANE_AT_WORK;
    rp_round_decide(&facts, &got);
    assert_false(got.closes);
    facts.waited_ns = facts.bound_ns; /* but not for ever */
    rp_round_decide(&facts, &got);
    assert_true(got.closes);
    assert_int_equal(got.members, 2);
    expect_close(got.alpha[1], 0, 0, 0);
}

static void a_lane_that_is_away_is_not(void **state) {
    rp_round_facts facts = all_wait();
    rp_round_decision got;
    (void)state;
    facts.lane[0].condition = RP_LANE_AWAY;
    facts.lane[1].condition = RP_LANE_OVER;
    facts.waited_ns = 0;
    rp_round_decide(&facts, &got);
    assert_true(got.closes);
    assert_int_equal(got.members, 1);
    expect_close(got.alpha[2], 0.3, 0, 0);
}

static void nobody_meets_alone_with_nobody(void **state) {
    rp_round_facts facts = all_wait();
    rp_round_decision got;
    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        facts.lane[k].condition = RP_LANE_AWAY;
    }
    facts.waited_ns = facts.bound_ns;
    rp_round_decide(&facts, &got);
    assert_false(got.closes);
}

static void who_is_late_is_drawn_less(void **state) {
    rp_round_facts facts = all_wait();
    rp_round_decision got;
    (void)state;
    facts.lane[2].missed = 2;
    rp_round_decide(&facts, &got);
    assert_int_equal(got.lag[2], 2);
    expect_close(got.alpha[2], 0.1, 1e-15, 0);
    expect_close(got.alpha[0], 0.3, 0, 0);
}

static void who_may_lag_is_left_behind_so_long(void **state) {
    rp_round_facts facts = all_wait();
    rp_round_decision got;
    (void)state;
    facts.lane[1] = (rp_round_lane){.condition = RP_LANE_AT_WORK, .missed = 1, .may_lag = 2};
    rp_round_decide(&facts, &got);
    assert_true(got.closes);
    facts.lane[1].missed = 2;
    rp_round_decide(&facts, &got);
    assert_false(got.closes);
}

/* The alphas of any decision are at most 1 together, and only lanes that wait are members. */
static void every_decision_is_sound(void **state) {
    static const uint32_t missed[] = {0, 1, 7, UINT32_MAX / 2};
    (void)state;
    for (uint32_t i = 0; i < 4 * 4 * 4 * 4; i++) {
        rp_round_facts facts = all_wait();
        rp_round_decision got;
        double sum = 0;
        uint32_t members = 0;
        facts.alpha = 1.0 / 3;
        for (uint32_t k = 0, rest = i; k < 3; k++, rest /= 4) {
            facts.lane[k] = (rp_round_lane){.condition = (rp_lane_condition)(rest % 4),
                                            .missed = missed[i / 64]};
        }
        rp_round_decide(&facts, &got);
        for (uint32_t k = 0; k < 3; k++) {
            const bool waits = facts.lane[k].condition == RP_LANE_WAITS;
            assert_true(waits == (got.alpha[k] > 0));
            sum += got.alpha[k];
            members += waits;
        }
        assert_int_equal(got.members, members);
        assert_true(sum <= 1 + 1e-12);
        assert_true(!got.closes || members > 0);
    }
}

static void lag_follows_the_delay(void **state) {
    int64_t delay[RP_ROUND_TIMES_MAX];
    const int64_t round[] = {10 * SECOND, 10 * SECOND, 9 * SECOND};
    (void)state;
    for (uint32_t i = 0; i < RP_ROUND_TIMES_MAX; i++) {
        delay[i] = i == 3 ? 500 * SECOND : 25 * SECOND; /* one of 32 is an accident */
    }
    assert_int_equal(rp_round_lag(delay, RP_ROUND_TIMES_MAX, round, 3), 2);
    assert_int_equal(rp_round_lag(delay, RP_ROUND_KNOWN - 1, round, 3), 0);
    assert_int_equal(rp_round_lag(delay, RP_ROUND_TIMES_MAX, round, 0), 0);
    for (uint32_t i = 0; i < RP_ROUND_TIMES_MAX; i++) {
        delay[i] = 9 * SECOND; /* within a round */
    }
    assert_int_equal(rp_round_lag(delay, RP_ROUND_TIMES_MAX, round, 3), 0);
    for (uint32_t i = 0; i < RP_ROUND_TIMES_MAX; i++) {
        delay[i] = INT64_MAX;
    }
    assert_int_equal(rp_round_lag(delay, RP_ROUND_TIMES_MAX, round, 3), RP_ROUND_LAG_MOST);
    assert_int_equal(rp_round_p95(delay, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet),
        cmocka_unit_test(a_lane_at_work_is_waited_for),
        cmocka_unit_test(a_lane_that_is_away_is_not),
        cmocka_unit_test(nobody_meets_alone_with_nobody),
        cmocka_unit_test(who_is_late_is_drawn_less),
        cmocka_unit_test(who_may_lag_is_left_behind_so_long),
        cmocka_unit_test(every_decision_is_sound),
        cmocka_unit_test(lag_follows_the_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
