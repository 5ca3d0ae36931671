#include "wire/identity.h"

#include "expect.h"

static void an_older_term_is_refused(void **state) {
    (void)state;
    rp_terms terms = {0};
    assert_int_equal(rp_terms_newest(&terms, 7), 0);
    assert_true(rp_terms_admit(&terms, (rp_run_identity){7, 3}));
    assert_true(rp_terms_admit(&terms, (rp_run_identity){7, 3}));
    assert_false(rp_terms_admit(&terms, (rp_run_identity){7, 2}));
    assert_int_equal(rp_terms_newest(&terms, 7), 3);
    assert_true(rp_terms_admit(&terms, (rp_run_identity){7, 9}));
    assert_false(rp_terms_admit(&terms, (rp_run_identity){7, 8}));
    assert_true(rp_terms_admit(&terms, (rp_run_identity){8, 1})); /* another run */
    assert_false(rp_terms_admit(&terms, (rp_run_identity){7, 8}));
}

static void what_is_of_no_run_is_admitted(void **state) {
    (void)state;
    rp_terms terms = {0};
    assert_true(rp_terms_admit(&terms, (rp_run_identity){0, 5}));
    assert_true(rp_terms_admit(&terms, (rp_run_identity){0, 1}));
    assert_int_equal(rp_terms_newest(&terms, 0), 0);
}

/* Only the last few runs are remembered: the oldest of them goes first. */
static void the_oldest_run_is_forgotten(void **state) {
    (void)state;
    rp_terms terms = {0};
    for (uint64_t id = 1; id <= RP_TERMS_MAX; id++) {
        assert_true(rp_terms_admit(&terms, (rp_run_identity){id, 5}));
    }
    assert_false(rp_terms_admit(&terms, (rp_run_identity){1, 4}));
    assert_true(rp_terms_admit(&terms, (rp_run_identity){100, 5}));
    assert_true(rp_terms_admit(&terms, (rp_run_identity){1, 4})); /* takes the entry of run 2 */
    assert_false(rp_terms_admit(&terms, (rp_run_identity){3, 4}));
    assert_int_equal(rp_terms_newest(&terms, 2), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_term_is_refused),
        cmocka_unit_test(what_is_of_no_run_is_admitted),
        cmocka_unit_test(the_oldest_run_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
