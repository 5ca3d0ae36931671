/* Every allocation of a run fails once: an error comes back, the machine ends, nothing is left.
 * Under a sanitizer or valgrind this also shows that nothing leaks. */
#include "boards.h"

static test_ring ring;

/* True: the run was over before its allocation `n`. */
static bool run_with_failure(long n) {
    rp_err err;
    ring_prepare(&ring, "out");
    ring_set(&ring, "train.epochs=1");
    test_torture = true;
    rp_arena_fail_at(n);
    err = ring_try_open(&ring);
    if (err == RP_OK) {
        err = ring_end(&ring, 4000);
    }
    const bool failed = rp_arena_has_failed();
    rp_arena_fail_at(0);
    test_torture = false;
    if (!failed) {
        expect_ok(err);
    }
    ring_close(&ring);
    return !failed;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    long n = 1;
    while (!run_with_failure(n)) {
        n++;
        assert_true(n < 5000);
    }
    assert_true(n > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
