#include <math.h>

#include "expect.h"

#include "planning/gain_estimator.h"

/* A tensor that moves by b where a was predicted, in two dimensions: a = gain * (1, 0). */
static rp_gain_sample probe_of(double gain, double bx, double by) {
    const double ax = gain;
    return (rp_gain_sample){
        .error = (ax - bx) * (ax - bx) + by * by, .stale = bx * bx + by * by, .predicted = ax * ax};
}

static rp_gain_estimator open_estimator(rp_arena *arena, uint32_t params) {
    rp_gain_estimator estimator;
    rp_arena_init(arena, "test", 0);
    expect_ok(rp_gain_estimator_open(arena, params, &estimator));
    return estimator;
}

/* A prediction of the right direction and length has gain 1, one that is too long less, and
 * one that is too short not more than 1. */
static void gain_is_the_best_share(void **state) {
    (void)state;
    const double moves[] = {1.0, 0.4, 2.0};
    const double want[] = {1.0, 0.4, 1.0};
    for (int i = 0; i < 3; i++) {
        rp_arena arena;
        rp_gain_estimator estimator = open_estimator(&arena, 1);
        double gain = 1;
        for (uint64_t n = 0; n < 10; n++) { /* each probe was made with the gain before the last */
            double used = 1;
            for (uint32_t h = 0; h < estimator.history_count; h++) {
                used = estimator.history[h].step <= 10 * n ? estimator.history[h].gain[0] : used;
            }
            const rp_gain_sample probe = probe_of(used, moves[i], 0.7);
            gain = rp_gain_estimator_add(&estimator, 10 * n, 10 * n + 20, 0, &probe);
        }
        expect_close(gain, want[i], 1e-9, 0);
        rp_arena_finish(&arena);
    }
}

/* The wrong way: back to the current weights for a while, then half of it is tried again. */
static void falls_back_and_tries_again(void **state) {
    (void)state;
    rp_arena arena;
    rp_gain_estimator estimator = open_estimator(&arena, 1);
    const rp_gain_sample wrong = probe_of(1, -0.5, 0);
    const rp_gain_sample nothing = probe_of(0, -0.5, 0);
    expect_close(rp_gain_estimator_add(&estimator, 0, 20, 0, &wrong), 0, 0, 0);
    uint32_t rests = 0;
    double gain;
    while ((gain = rp_gain_estimator_add(&estimator, 10 * (rests + 1), 10 * (rests + 3), 0,
                                         &nothing)) == 0) {
        assert_true(++rests < 100);
    }
    expect_close(gain, 0.5, 0, 0);
    assert_true(rests >= 4);
    rp_arena_finish(&arena);
}

/* A stage ahead of the others writes its own share of an entry only. */
static void stages_may_overtake(void **state) {
    (void)state;
    rp_arena a_arena;
    rp_arena b_arena;
    rp_gain_estimator a = open_estimator(&a_arena, 2);
    rp_gain_estimator b = open_estimator(&b_arena, 2);
    const rp_gain_sample first = probe_of(1, 0.5, 0);
    const rp_gain_sample second = probe_of(1, 0.25, 0);
    (void)rp_gain_estimator_add(&a, 0, 20, 0, &first);
    (void)rp_gain_estimator_add(&a, 0, 20, 1, &second);
    (void)rp_gain_estimator_add(&a, 10, 30, 0, &first);
    (void)rp_gain_estimator_add(&a, 10, 30, 1, &second);
    (void)rp_gain_estimator_add(&b, 0, 20, 1, &second);
    (void)rp_gain_estimator_add(&b, 10, 30, 1, &second);
    (void)rp_gain_estimator_add(&b, 0, 20, 0, &first);
    (void)rp_gain_estimator_add(&b, 10, 30, 0, &first);
    assert_int_equal(a.history_count, b.history_count);
    for (uint32_t h = 0; h < a.history_count; h++) {
        assert_int_equal(a.history[h].step, b.history[h].step);
        expect_close(a.history[h].gain[0], b.history[h].gain[0], 0, 0);
        expect_close(a.history[h].gain[1], b.history[h].gain[1], 0, 0);
    }
    rp_arena_finish(&a_arena);
    rp_arena_finish(&b_arena);
}

/* Resumed with more probes than before: they take effect ahead of what was to come. */
static void more_probes_than_before(void **state) {
    (void)state;
    rp_arena arena;
    rp_gain_estimator estimator = open_estimator(&arena, 1);
    const rp_gain_sample probe = probe_of(1, 0.5, 0.1);
    (void)rp_gain_estimator_add(&estimator, 0, 20, 0, &probe);
    (void)rp_gain_estimator_add(&estimator, 10, 30, 0, &probe);
    (void)rp_gain_estimator_add(&estimator, 18, 22, 0, &probe);
    assert_int_equal(estimator.history_count, 2);
    assert_int_equal(estimator.history[0].step, 20);
    assert_int_equal(estimator.history[1].step, 22);
    rp_arena_finish(&arena);
}

static void packs_and_unpacks(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena other;
    rp_gain_estimator estimator = open_estimator(&arena, 3);
    rp_gain_estimator back = open_estimator(&other, 3);
    double packed[100];
    double again[100];
    assert_true(rp_gain_estimator_size(&estimator) <= 100);
    for (uint64_t n = 0; n < 9; n++) {
        for (uint32_t p = 0; p < 3; p++) {
            const rp_gain_sample probe = probe_of(1, 0.3 * p, 0.1);
            (void)rp_gain_estimator_add(&estimator, 10 * n, 10 * n + 20, p, &probe);
        }
    }
    rp_gain_estimator_pack(&estimator, packed);
    expect_ok(rp_gain_estimator_unpack(&back, "test", packed));
    rp_gain_estimator_pack(&back, again);
    assert_memory_equal(packed, again, rp_gain_estimator_size(&estimator) * sizeof(double));
    packed[0] = 1e9;
    assert_int_equal(rp_gain_estimator_unpack(&back, "test", packed), RP_ERR_FORMAT);
    packed[0] = (double)NAN;
    assert_int_equal(rp_gain_estimator_unpack(&back, "test", packed), RP_ERR_FORMAT);
    rp_arena_finish(&arena);
    rp_arena_finish(&other);
}

/* Not a number, or nothing predicted: nothing is learnt, and gain stays what it was. */
static void learns_nothing_from_nothing(void **state) {
    (void)state;
    rp_arena arena;
    rp_gain_estimator estimator = open_estimator(&arena, 1);
    const rp_gain_sample bad = {(double)NAN, 1, 1};
    const rp_gain_sample still = {0, 0, 0};
    expect_close(rp_gain_estimator_add(&estimator, 0, 20, 0, &bad), 1, 0, 0);
    expect_close(rp_gain_estimator_add(&estimator, 10, 30, 0, &still), 1, 0, 0);
    rp_arena_finish(&arena);
}

/* What no checkpoint could hold, or what is over, is refused before it is taken. */
static void effects_lie_ahead(void **state) {
    (void)state;
    assert_true(rp_gain_estimator_may_take_effect(10, 30));
    assert_true(rp_gain_estimator_may_take_effect(10, 11));
    assert_false(rp_gain_estimator_may_take_effect(10, 10));
    assert_false(rp_gain_estimator_may_take_effect(10, 0));
    assert_false(rp_gain_estimator_may_take_effect(10, UINT64_MAX));
    assert_false(rp_gain_estimator_may_take_effect(UINT64_MAX, UINT64_MAX));
}

/* Sums that run out of doubles (a share of almost nothing was trusted) are no share: fall-back. */
static void endless_sums_fall_back(void **state) {
    (void)state;
    rp_arena arena;
    rp_gain_estimator estimator = open_estimator(&arena, 1);
    const rp_gain_sample probe = probe_of(1, 0.5, 0);
    double packed[1 + RP_GAIN_HISTORY + 4 + RP_GAIN_HISTORY];
    expect_close(rp_gain_estimator_add(&estimator, 0, 20, 0, &probe), 0.5, 1e-12, 0);
    estimator.history[0].gain[0] = 1e-310;
    expect_close(rp_gain_estimator_add(&estimator, 20, 40, 0, &probe), 0, 0, 0);
    rp_gain_estimator_pack(&estimator, packed);
    expect_ok(rp_gain_estimator_unpack(&estimator, "packed", packed));
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gain_is_the_best_share),      cmocka_unit_test(falls_back_and_tries_again),
        cmocka_unit_test(stages_may_overtake),         cmocka_unit_test(packs_and_unpacks),
        cmocka_unit_test(learns_nothing_from_nothing), cmocka_unit_test(more_probes_than_before),
        cmocka_unit_test(endless_sums_fall_back),      cmocka_unit_test(effects_lie_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
