/* Boards that make no progress: which one hangs, and what is said of steps that are late. */
#include "segment.h"

static rp_err say(uint32_t board, rp_waiting_for what, uint32_t peer, int64_t for_ns,
                  int64_t longest_ns) {
    const rp_message message = {
        .frame = {.which_body = RP_KIND_WAITING,
                  .body.waiting = {
                      .what = what, .peer = peer, .for_ns = for_ns, .longest_ns = longest_ns}}};
    return rp_train_on_waiting(train, board, &message);
}

/* Seconds until board 1, which says that its device is at one op, is found; `most`: it is not. The
 * others wait for it, or `others`. */
static uint32_t hang_for(double longest_s, rp_waiting_for others, uint32_t most) {
    const int64_t longest_ns = (int64_t)(longest_s * 1e9);
    for (uint32_t s = 0; s < most; s++) {
        uint32_t board = BOARDS;
        for (uint32_t k = 0; k < BOARDS; k++) {
            const bool hangs = k == 1;
            expect_ok(say(k, hangs ? RP_WAITING_DEVICE : others, 1, (int64_t)s * RP_NS_PER_S,
                          longest_ns));
        }
        const rp_err err = rp_train_find_hang(train, &board);
        if (err != RP_OK) {
            assert_int_equal(err, RP_ERR_FAULT);
            assert_int_equal(board, 1);
            assert_non_null(strstr(rp_err_message(), "board 1: its device hangs"));
            return s;
        }
        assert_int_equal(board, BOARDS);
        pass_s(1);
    }
    return most;
}

/* max(30 s, 200 times its longest op); 300 s where it has ended none. */
static void a_board_that_hangs_is_found(void **state) {
    (void)state;
    static const struct {
        double longest_s;
        rp_waiting_for others;
        uint32_t found_s;
    } cases[] = {{0.01, RP_WAITING_INPUT, 30}, {0.15, RP_WAITING_INPUT, 30},
                 {0.2, RP_WAITING_INPUT, 40},  {1, RP_WAITING_ROOM, 200},
                 {0, RP_WAITING_INPUT, 300},   {0.01, RP_WAITING_DECISION, 30}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_train();
        expect_ok(rp_train_begin(train, EPOCH));
        assert_int_equal(hang_for(cases[i].longest_s, cases[i].others, 400), cases[i].found_s);
        close_train();
    }
}

/* As long as another board can go on it may only be slow; one that has paused does not hang. */
static void a_slow_board_is_not_lost(void **state) {
    (void)state;
    uint32_t board = BOARDS;
    open_train();
    expect_ok(rp_train_begin(train, EPOCH));
    for (uint32_t s = 0; s < 100; s++) {
        expect_ok(say(0, RP_WAITING_DEVICE, 0, RP_NS_PER_S, RP_NS_PER_S)); /* it works */
        expect_ok(say(1, RP_WAITING_DEVICE, 0, (int64_t)s * RP_NS_PER_S, 1000));
        expect_ok(say(2, RP_WAITING_INPUT, 1, (int64_t)s * RP_NS_PER_S, 1000));
        expect_ok(rp_train_find_hang(train, &board));
        pass_s(1);
    }
    ring.board[0].train.finished = ring.board[1].train.finished = true;
    expect_ok(rp_train_find_hang(train, &board));
    ring.board[1].train.finished = false;
    expect_err(rp_train_find_hang(train, &board), RP_ERR_FAULT);
    ring.features &= ~RP_WIRE_FEATURE_WAITING; /* then no board says what it waits for */
    expect_ok(rp_train_find_hang(train, &board));
    close_train();
}

static void a_late_step_is_said(void **state) {
    (void)state;
    open_train();
    expect_ok(rp_train_begin(train, EPOCH));
    assert_int_equal(rp_train_usual_step_ns(train), 0);
    pass_s(1);
    expect_ok(do_step(1));
    assert_int_equal(rp_train_usual_step_ns(train), RP_NS_PER_S);
    pass_s(7);
    expect_ok(rp_train_check_progress(train));
    expect_events(0, .kind = RP_EVENT_STEP_LATE);
    expect_ok(say(0, RP_WAITING_DEVICE, 0, RP_NS_PER_S, RP_NS_PER_S));
    expect_ok(say(1, RP_WAITING_INPUT, 0, RP_NS_PER_S, RP_NS_PER_S));
    expect_ok(say(2, RP_WAITING_INPUT, 1, RP_NS_PER_S, RP_NS_PER_S));
    pass_s(2);
    expect_ok(rp_train_check_progress(train));
    expect_events(1, .kind = RP_EVENT_STEP_LATE, .seconds = 9, .usual_s = 1, .board = "0",
                  .waits = "board 2 waits for what board 1 sends (step 1, samples 0 to 0), board 1 "
                           "waits for what board 0 sends");
    expect_ok(do_step(1));
    expect_events(1, .kind = RP_EVENT_STEP_CAME, .seconds = 9);
    assert_int_equal(rp_train_usual_step_ns(train), RP_NS_PER_S); /* a late one is not usual */
    close_train();
}

static void what_can_not_be_is_refused(void **state) {
    (void)state;
    open_train();
    expect_ok(rp_train_begin(train, EPOCH));
    expect_err(say(0, RP_WAITING_KINDS, 0, 0, 0), RP_ERR_PEER);
    expect_err(say(0, RP_WAITING_INPUT, BOARDS, 0, 0), RP_ERR_PEER);
    expect_err(say(0, RP_WAITING_INPUT, 0, -1, 0), RP_ERR_PEER);
    expect_err(say(0, RP_WAITING_DEVICE, 0, 0, -1), RP_ERR_PEER);
    close_train();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_board_that_hangs_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_board_is_not_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_late_step_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(what_can_not_be_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
