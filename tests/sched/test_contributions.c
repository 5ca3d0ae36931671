#include "expect.h"

#include "sched/contributions.h"

static const rp_sched_shape shape = {
    .stages = 2, .epoch_samples = 20, .batch = 8, .micro = 3, .step_end = 6};

/* Neither order nor cut counts; every sample and its step do. */
static void a_sum_is_of_its_samples(void **state) {
    (void)state;
    const rp_contributions whole = rp_contributions_of(7, (rp_range){0, 8});
    rp_contributions parts = {0};
    rp_contributions_add(&parts, 7, (rp_range){6, 2});
    rp_contributions_add(&parts, 7, (rp_range){0, 3});
    assert_false(rp_contributions_equal(parts, whole));
    rp_contributions_add(&parts, 7, (rp_range){5, 0});
    rp_contributions_add(&parts, 7, (rp_range){3, 3});
    assert_true(rp_contributions_equal(parts, whole));
    assert_int_equal(whole.count, 8);
    assert_false(rp_contributions_equal(whole, rp_contributions_of(8, (rp_range){0, 8})));
    assert_false(rp_contributions_equal(whole, rp_contributions_of(7, (rp_range){1, 8})));
    rp_contributions swapped = rp_contributions_of(7, (rp_range){0, 7});
    rp_contributions_add(&swapped, 7, (rp_range){2, 1});
    assert_int_equal(swapped.count, whole.count);
    assert_false(rp_contributions_equal(swapped, whole));
}

/* Short steps at the ends of epochs; going on from where it stood gives what one walk gives. */
static void a_ledger_goes_on(void **state) {
    (void)state;
    rp_run_ledger whole = {0};
    rp_run_ledger parts = {0};
    rp_run_ledger other = {0};
    rp_run_ledger_add_steps(&whole, &shape, 0, 6);
    assert_int_equal(whole.samples, 2 * 20);
    rp_run_ledger_add_steps(&parts, &shape, 4, 6);
    rp_run_ledger_add_steps(&parts, &shape, 0, 4);
    assert_int_equal(parts.digest, whole.digest);
    assert_int_equal(parts.samples, whole.samples);
    rp_run_ledger_add_steps(&other, &shape, 0, 5);
    assert_true(other.digest != whole.digest);
    /* a sample that moves to another step */
    rp_run_ledger moved = {0};
    rp_contributions step = rp_contributions_of(0, (rp_range){0, 7});
    rp_run_ledger_add(&moved, 0, step);
    step = rp_contributions_of(1, (rp_range){0, 8});
    rp_contributions_add(&step, 0, (rp_range){7, 1});
    rp_run_ledger_add(&moved, 1, step);
    rp_run_ledger_add_steps(&moved, &shape, 2, 6);
    assert_int_equal(moved.samples, whole.samples);
    assert_true(moved.digest != whole.digest);
}

/* They are in checkpoints and on the wire: the same on every board, and in every version. */
static void digests_stay(void **state) {
    (void)state;
    rp_run_ledger whole = {0};
    rp_run_ledger_add_steps(&whole, &shape, 0, 6);
    assert_int_equal(rp_contributions_of(0, (rp_range){0, 1}).sum,
                     UINT64_C(0xd0a66a65c7528968));
    assert_int_equal(whole.digest, UINT64_C(0xaa7f32ea5725b77a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_is_of_its_samples),
        cmocka_unit_test(a_ledger_goes_on),
        cmocka_unit_test(digests_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
