/* The ledger of a run: what the boards say that contributed to each step, against the plan. */
#include "boards.h"

#include <inttypes.h>
#include <jansson.h>

static test_ring ring; /* large for a stack */

static void open_ring(const char *resume) {
    ring_prepare(&ring, "out");
    if (resume) {
        ring.options.out = NULL;
        ring.options.resume = resume;
    }
    ring_set(&ring, "ring.wait=20");
    ring_open(&ring);
}

static json_t *read_ledger(json_t **summary) {
    *summary = json_load_file(in_folder("out/summary.json"), 0, NULL);
    assert_non_null(*summary);
    return json_object_get(*summary, "ledger");
}

static json_int_t number_of(const json_t *ledger, const char *key) {
    const json_t *value = json_object_get(ledger, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void the_plan_says_what_contributes(void **state) {
    (void)state;
    json_t *summary;
    char digest[24];
    rp_run_ledger due = {0};
    open_ring(NULL);
    const rp_sched_shape shape = rp_runfile_sched_shape(ring.c->run, 0);
    rp_run_ledger_add_steps(&due, &shape, 0, 2 * TRAIN / BATCH);
    expect_ok(ring_end(&ring, 400));
    const json_t *ledger = read_ledger(&summary);
    assert_int_equal(number_of(ledger, "samples"), 2 * TRAIN);
    assert_int_equal(number_of(ledger, "lost") + number_of(ledger, "repeated"), 0);
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, due.digest);
    assert_string_equal(json_string_value(json_object_get(ledger, "digest")), digest);
    json_decref(summary);
    ring_close(&ring);
}

/* One sample that is missing, comes twice, or takes another one's place ends the run at the next
 * pause; and the board and the steps are named. */
static void other_samples_end_the_run(void **state) {
    (void)state;
    static const struct {
        test_skew skew;
        uint64_t step;
        const char *text;
        json_int_t lost, repeated;
    } cases[] = {
        {SKEW_LOST, 0, "steps 1 to 4 is not the plan's: gradients of 63 samples, expected 64", 1,
         0},
        {SKEW_TWICE, 3, "steps 1 to 4 is not the plan's: gradients of 65 samples, expected 64", 0,
         1},
        {SKEW_SWAPPED, 6, "steps 5 to 8 is not the plan's: gradients of 64 samples, expected 64", 0,
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *summary;
        open_ring(NULL);
        ring.skew = cases[i].skew;
        ring.skewed_step = cases[i].step;
        expect_err(ring_end(&ring, 400), RP_ERR_PEER);
        assert_non_null(strstr(ring.fault.text, "board 1: its ledger of "));
        assert_non_null(strstr(ring.fault.text, cases[i].text));
        assert_int_equal(ring.restarts, 0); /* a mistake comes again */
        const json_t *ledger = read_ledger(&summary);
        assert_int_equal(number_of(ledger, "lost"), cases[i].lost);
        assert_int_equal(number_of(ledger, "repeated"), cases[i].repeated);
        assert_int_equal(number_of(ledger, "samples"), cases[i].step < 4 ? 0 : TRAIN);
        json_decref(summary);
        ring_close(&ring);
    }
}

/* A resumed run has the ledger of one that was not interrupted. */
static void a_resumed_run_goes_on_with_it(void **state) {
    (void)state;
    char whole[24];
    char first[512];
    json_t *summary;
    open_ring(NULL);
    expect_ok(ring_end(&ring, 400));
    (void)snprintf(whole, sizeof whole, "%s",
                   json_string_value(json_object_get(read_ledger(&summary), "digest")));
    json_decref(summary);
    ring_close(&ring);
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_EVALUATE));
    rp_controller_interrupt(ring.c);
    expect_err(ring_end(&ring, 400), RP_ERR_INTERRUPTED);
    json_t *ledger = read_ledger(&summary);
    assert_int_equal(number_of(ledger, "samples"), TRAIN);
    assert_string_not_equal(json_string_value(json_object_get(ledger, "digest")), whole);
    json_decref(summary);
    (void)snprintf(first, sizeof first, "%s", ring.out);
    ring.out[0] = '\0'; /* which the next one goes on in */
    ring_close(&ring);
    open_ring(first);
    expect_ok(ring_end(&ring, 400));
    ledger = read_ledger(&summary);
    assert_int_equal(number_of(ledger, "samples"), 2 * TRAIN);
    assert_string_equal(json_string_value(json_object_get(ledger, "digest")), whole);
    json_decref(summary);
    ring_close(&ring);
}

/* Nothing is compared where one board does not say it; then nobody says that it was. */
static void boards_without_a_ledger_train_too(void **state) {
    (void)state;
    json_t *summary;
    open_ring(NULL);
    ring.board[0].features &= ~RP_WIRE_FEATURE_LEDGER;
    ring.skew = SKEW_LOST;
    expect_ok(ring_end(&ring, 400));
    const json_t *ledger = read_ledger(&summary);
    assert_null(json_object_get(ledger, "digest"));
    assert_null(json_object_get(ledger, "samples"));
    json_decref(summary);
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_plan_says_what_contributes, setup, teardown),
        cmocka_unit_test_setup_teardown(other_samples_end_the_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_goes_on_with_it, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_without_a_ledger_train_too, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
