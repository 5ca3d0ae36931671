/* Boards that the ring has gone on without, and that come back: they join it at a pause, not too
 * often, and no step is lost or done twice. Boards follow a script, time is stepped. */
#include "boards.h"

#include <jansson.h>

enum { WAIT_S = 20, EPOCHS = 80, STEPS = EPOCHS * TRAIN / BATCH };

static test_ring ring; /* large for a stack */

static void open_ring_with(const char *wait) {
    ring_prepare(&ring, "out");
    ring_set_roster(&ring, wait);
    ring_set(&ring, "train.epochs=80");
    ring_set(&ring, "train.eval_epochs=0");
    ring_open(&ring);
}

static void open_ring(void) {
    open_ring_with("wait: 20");
}

static void step_until_boards(uint32_t count) {
    for (uint32_t i = 0; i < 5000 && ring.c->ring.count != count; i++) {
        ring_step(&ring, RP_NS_PER_S);
    }
    assert_int_equal(ring.c->ring.count, count);
}

/* Board 1 is lost for good. */
static void lose_board(void) {
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.board[1].away = true;
    step_until_boards(1);
}

static json_int_t number_of(const json_t *summary, const char *key) {
    return json_integer_value(json_object_get(summary, key));
}

/* Every step once. */
static void expect_finished(uint32_t left, uint32_t joined) {
    expect_ok(ring_end(&ring, 4 * STEPS));
    json_t *summary = json_load_file(in_folder("out/summary.json"), 0, NULL);
    assert_non_null(summary);
    const json_t *ledger = json_object_get(summary, "ledger");
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "finished");
    assert_int_equal(number_of(summary, "steps"), STEPS);
    assert_int_equal(number_of(summary, "boards_left"), left);
    assert_int_equal(number_of(summary, "boards_joined"), joined);
    assert_int_equal(number_of(ledger, "samples"), EPOCHS * TRAIN);
    assert_int_equal(number_of(ledger, "lost") + number_of(ledger, "repeated"), 0);
    json_decref(summary);
    expect_events(left, .kind = RP_EVENT_FEWER, .board_count = BOARDS - 1);
    expect_events(joined, .kind = RP_EVENT_JOINED, .board_count = BOARDS);
    ring_close(&ring);
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Boards are greeted every 1.25 s, and once more at the moment at which their time is over: those
 * that have answered every greeting before are there all the same. */
static void a_greeting_at_the_last_moment_may_be_answered(void **state) {
    (void)state;
    open_ring_with("wait: 5");
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.board[1].away = true;
    uint32_t since = 0; /* steps */
    for (uint32_t i = 0; i < 5000 && ring.c->ring.count == 2; i++) {
        const bool is_near = ring.c->machine.state == RP_CONTROL_HELLO &&
                             ring.c->ring.greeted_ns > 0 &&
                             ring.c->ring.now_ns - ring.c->ring.greeted_ns > 4 * RP_NS_PER_S;
        since += since > 0 || is_near;
        ring.deaf = since > 1 && since < 20; /* an answer is 0.2 s on its way */
        ring_step(&ring, since == 1 ? 1300 * RP_NS_PER_MS : 10 * RP_NS_PER_MS);
    }
    assert_int_equal(ring.c->ring.count, 1);
    assert_string_equal(ring.c->ring.board[0].name, "one");
    expect_finished(1, 0);
}

/* ---- joining --------------------------------------------------------------------------------- */

static void a_board_joins_again(void **state) {
    (void)state;
    open_ring();
    lose_board();
    board_begin(&ring, 1);
    const int64_t left_ns = rp_clock_now_ns(&ring.clock);
    step_until_boards(2);
    assert_true(rp_clock_now_ns(&ring.clock) - left_ns >= WAIT_S * RP_NS_PER_S);
    assert_string_equal(ring.c->ring.board[1].name, "two");
    const uint64_t step = ring.c->position.step;
    assert_int_equal(step % (TRAIN / BATCH), 0); /* a pause: nothing is done again */
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    assert_int_equal(ring.c->position.step, step);
    assert_int_equal(rp_arrangement_plan(ring.c->setup)->node_count, 2);
    expect_finished(1, 1);
}

static void a_board_that_stays_away_costs_nothing(void **state) {
    (void)state;
    open_ring();
    lose_board();
    expect_finished(1, 0);
}

/* ---- how often ------------------------------------------------------------------------------- */

static void one_that_comes_and_goes_is_taken_more_seldom(void **state) {
    (void)state;
    int64_t hold_ns = WAIT_S * RP_NS_PER_S;
    open_ring();
    for (uint32_t i = 0; i < 3; i++) {
        lose_board();
        const int64_t left_ns = rp_clock_now_ns(&ring.clock);
        board_begin(&ring, 1);
        step_until_boards(2);
        assert_in_range(rp_clock_now_ns(&ring.clock) - left_ns, hold_ns,
                        hold_ns + 15 * RP_NS_PER_S);
        hold_ns *= 2;
    }
    expect_finished(3, 3);
}

/* It answered, and is gone when the ring wants it: the ring goes on without it. */
static void one_that_goes_while_it_joins(void **state) {
    (void)state;
    open_ring();
    lose_board();
    board_begin(&ring, 1);
    step_until_boards(2);
    ring.board[1].away = true;
    step_until_boards(1);
    expect_finished(2, 1);
}

/* ---- who is not taken ------------------------------------------------------------------------ */

static void one_at_work_for_somebody_else_stays_there(void **state) {
    (void)state;
    open_ring();
    lose_board();
    board_begin(&ring, 1);
    ring.board[1].busy = 77;
    const uint32_t greeted = ring.board[1].orders[RP_KIND_HELLO];
    for (uint32_t i = 0; i < 60; i++) {
        ring_step(&ring, RP_NS_PER_S);
    }
    assert_in_range(ring.board[1].orders[RP_KIND_HELLO] - greeted, 2, 60 / 5);
    assert_int_equal(ring.c->ring.count, 1);
    ring.board[1].busy = 0; /* it has done with that */
    step_until_boards(2);
    expect_finished(1, 1);
}

static void one_of_another_build_does_not_end_the_run(void **state) {
    (void)state;
    open_ring();
    lose_board();
    board_begin(&ring, 1);
    ring.board[1].features &= ~RP_WIRE_FEATURE_LEDGER;
    expect_finished(1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_greeting_at_the_last_moment_may_be_answered, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_board_joins_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_stays_away_costs_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_comes_and_goes_is_taken_more_seldom, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(one_that_goes_while_it_joins, setup, teardown),
        cmocka_unit_test_setup_teardown(one_at_work_for_somebody_else_stays_there, setup, teardown),
        cmocka_unit_test_setup_teardown(one_of_another_build_does_not_end_the_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
