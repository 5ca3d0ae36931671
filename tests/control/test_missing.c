/* Boards that do not come, and why: what is known early ends the wait, or stands in its end. */
#include "boards.h"

static test_ring ring;  /* large for a stack */
static rp_cause cause;  /* of board two */
static uint32_t looked; /* for causes */
static bool is_own_run;

static const rp_cause *find(void *self, const rp_roster_entry *board, const rp_keypair *keys) {
    assert_ptr_equal(self, &ring);
    assert_string_equal(keys->public_text, ring.process.keys.public_text);
    looked++;
    cause.run = is_own_run ? ring.c->ring.identity.id : 7;
    return strcmp(board->name, "two") == 0 ? &cause : NULL;
}

static void open_ring(rp_err err, bool hopeless) {
    cause = (rp_cause){.err = err, .hopeless = hopeless, .text = "is held by others"};
    looked = 0;
    is_own_run = false;
    ring_prepare(&ring, "out");
    ring_set_roster(&ring, "wait: 20");
    ring.find_cause = find;
    ring_open(&ring);
}

/* Board two never comes; in seconds. */
static int64_t wait_for_end(rp_err err) {
    const int64_t begin_ns = rp_clock_now_ns(&ring.clock);
    ring.board[1].away = true;
    for (uint32_t i = 0; i < 600 && ring.c->machine.state < RP_CONTROL_CLOSE; i++) {
        ring_step(&ring, RP_NS_PER_S / 10);
    }
    const int64_t waited_ns = rp_clock_now_ns(&ring.clock) - begin_ns;
    expect_err(ring_end(&ring, 100), err);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    return waited_ns / RP_NS_PER_S;
}

static void what_is_hopeless_ends_the_wait(void **state) {
    (void)state;
    open_ring(RP_ERR_FAULT, true);
    assert_in_range(wait_for_end(RP_ERR_TIMEOUT), 1, 2);
    assert_string_equal(ring.fault.text, "board two: is held by others");
    ring_close(&ring);
    open_ring(RP_ERR_REFUSED, true);
    assert_in_range(wait_for_end(RP_ERR_REFUSED), 1, 2);
    ring_close(&ring);
}

static void what_may_pass_is_waited_for(void **state) {
    (void)state;
    open_ring(RP_ERR_FAULT, false);
    assert_true(wait_for_end(RP_ERR_TIMEOUT) >= 20);
    assert_non_null(strstr(ring.fault.text, "board two: is held by others; no hello within "));
    ring_close(&ring);
}

/* A controller that was killed has left its run on the board, which it soon gives up. */
static void the_own_run_is_no_other(void **state) {
    (void)state;
    open_ring(RP_ERR_FAULT, true);
    is_own_run = true;
    assert_true(wait_for_end(RP_ERR_TIMEOUT) >= 20);
    ring_close(&ring);
}

static void a_board_that_answers_is_only_late(void **state) {
    (void)state;
    open_ring(RP_OK, false);
    assert_true(wait_for_end(RP_ERR_TIMEOUT) >= 20);
    assert_non_null(strstr(ring.fault.text, "no hello within"));
    assert_null(strstr(ring.fault.text, "held"));
    ring_close(&ring);
}

static void a_run_under_way_waits_whatever_it_is(void **state) {
    (void)state;
    open_ring(RP_ERR_FAULT, true);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.board[1].away = true;
    for (uint32_t i = 0; i < 300 && ring.c->ring.count == 2; i++) {
        ring_step(&ring, RP_NS_PER_S / 10);
    }
    assert_int_equal(looked, 0);
    expect_ok(ring_end(&ring, 4000)); /* on the other board */
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_hopeless_ends_the_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(what_may_pass_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(the_own_run_is_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_answers_is_only_late, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_under_way_waits_whatever_it_is, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
