/* Boards that are away, and who dials this host and is kept out. */
#include "boards.h"

static uint32_t looks; /* rounds with rp_rejoin_step() */

static void board_hello(uint32_t k, uint64_t features, bool busy) {
    rp_Frame frame = {.which_body = RP_KIND_HELLO,
                      .run_id = busy ? 77 : 0,
                      .body.hello = {.wire_min = RP_WIRE_MIN,
                                     .wire_max = RP_WIRE_MAX,
                                     .features = features,
                                     .clock_ns = 1,
                                     .busy = busy}};
    expect_ok(rp_link_send(far[k].control, &frame, NULL, 0, true, NULL, NULL));
}

/* Seconds in which board 2, which is away, answers each greeting so. */
static void look_for(uint32_t seconds, uint64_t features, bool busy) {
    for (uint32_t i = 0; i < seconds; i++) {
        const uint32_t greeted = far[2].orders[RP_KIND_HELLO];
        for (uint32_t ms = 0; ms < 1000; ms += 100) {
            expect_ok(pass(1, 100 * RP_NS_PER_MS));
            rp_rejoin_step(&ring, true, ms == 0);
        }
        looks++;
        if (far[2].control && far[2].orders[RP_KIND_HELLO] > greeted) {
            board_hello(2, features, busy);
        }
    }
}

/* Board 2 has left: it is the first spare. */
static void leave_last(void) {
    rp_ring_leave(&ring, 2);
    run.boards = 2;
    run.spares = 2;
    rp_rejoin_note_left(&ring, 1);
}

/* ---- how often ------------------------------------------------------------------------------- */

static void the_ring_grows_more_and_more_seldom(void **state) {
    (void)state;
    open_connected();
    assert_false(rp_rejoin_is_wanted(&ring)); /* nobody has left */
    leave_last();
    for (int64_t hold_s = WAIT_S; hold_s < 3600; hold_s *= 2) {
        assert_int_equal(ring.rejoin.not_before_ns - ring.now_ns, hold_s * RP_NS_PER_S);
        assert_false(rp_rejoin_is_wanted(&ring));
        rp_rejoin_note_left(&ring, 1);
    }
    rp_rejoin_note_left(&ring, 5);
    assert_int_equal(ring.rejoin.not_before_ns - ring.now_ns, 3600 * RP_NS_PER_S); /* at most */
    expect_ok(pass(1, 3600 * RP_NS_PER_S));
    assert_true(rp_rejoin_is_wanted(&ring));
}

/* ---- who may join ---------------------------------------------------------------------------- */

static void a_board_that_answers_may_join(void **state) {
    (void)state;
    open_connected();
    leave_last();
    look_for(WAIT_S - 2, RP_WIRE_FEATURES, false);
    assert_int_equal(far[2].orders[RP_KIND_HELLO], 0); /* too early */
    look_for(10, RP_WIRE_FEATURES, false);
    assert_true(rp_rejoin_has_answered(&ring, "three"));
    assert_false(rp_rejoin_has_answered(&ring, "four"));
    assert_int_equal(rp_rejoin_count_ready(&ring), 1);
    run.boards = 3;
    run.spares = 1;
    rp_rejoin_close(&ring);
    rp_rejoin_take(&ring, 2);
    assert_int_equal(ring.count, 3);
    assert_string_equal(ring.board[2].name, "three");
    assert_int_equal(ring.rejoin.joined, 1);
    assert_false(rp_rejoin_is_wanted(&ring)); /* it is as large as at first */
}

static void answers_are_forgotten_when_nothing_is_at_work(void **state) {
    (void)state;
    open_connected();
    leave_last();
    look_for(WAIT_S + 8, RP_WIRE_FEATURES, false);
    assert_true(rp_rejoin_has_answered(&ring, "three"));
    rp_rejoin_step(&ring, false, false);
    assert_false(rp_rejoin_has_answered(&ring, "three"));
    assert_int_equal(rp_rejoin_count_ready(&ring), 0);
}

static void a_board_that_goes_again_does_not_join(void **state) {
    (void)state;
    open_connected();
    leave_last();
    look_for(WAIT_S + 8, RP_WIRE_FEATURES, false);
    assert_true(rp_rejoin_has_answered(&ring, "three"));
    rp_link_close(&far[2].control);
    look_for(5, 0, false);
    assert_false(rp_rejoin_has_answered(&ring, "three"));
}

static void busy_or_older_boards_do_not_join(void **state) {
    (void)state;
    open_connected();
    leave_last();
    look_for(WAIT_S + 8, RP_WIRE_FEATURES, true);
    assert_true(far[2].orders[RP_KIND_HELLO] > 0);
    assert_false(rp_rejoin_has_answered(&ring, "three"));
    look_for(12, RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_LEDGER, false);
    assert_false(rp_rejoin_has_answered(&ring, "three"));
    look_for(12, RP_WIRE_FEATURES, false);
    assert_true(rp_rejoin_has_answered(&ring, "three"));
}

/* ---- kept out -------------------------------------------------------------------------------- */

static rp_record *record;

static void open_record(void) {
    const rp_record_run about = {
        .model = "m",
        .schedule = "gpipe",
        .shape = {.stages = 1, .step_end = 1, .epoch_samples = 1, .batch = 1, .micro = 1},
        .folder = folder,
        .clock = &test_clock};
    expect_ok(rp_record_open(&arena, &about, &(rp_record_totals){0}, &record));
}

static void close_record(void) {
    expect_ok(rp_record_close(&record, &(rp_record_end){.status = "finished", .note = ""}));
}

static uint32_t count_lines(const char *with) {
    uint32_t count = 0;
    for (const char *at = slurp("log.jsonl", NULL); (at = strstr(at, with)); at++) {
        count++;
    }
    return count;
}

/* Board `k` dials with the keys of the spare, which no board of the ring has. */
static void a_stranger_is_reported_once_a_minute(void **state) {
    (void)state;
    open_ring(true);
    open_record();
    expect_ok(rp_ring_connect(&ring, host.links, false));
    open_control(3, run.listen);
    for (uint32_t s = 0; s < 130; s++) {
        (void)!pass(1, RP_NS_PER_S);
        expect_ok(rp_strangers_look(&ring, record, 5));
    }
    close_record();
    assert_in_range(count_lines("\"refused\""), 2, 3);
    assert_true(count_lines("awaited: one, two, three") > 0);
}

/* Boards 0 and 3 have one key, and dial. The host serves one of them. */
static void twins_are_reported_once_a_minute(void **state) {
    (void)state;
    open_ring(true);
    open_record();
    close_process(&far[3].own);
    far[3].own.keys = far[0].own.keys;
    open_process(&arena, &test_clock, hub, true, &far[3].own);
    expect_ok(rp_ring_connect(&ring, host.links, true));
    open_control(0, run.listen);
    expect_ok(pass(20, 100 * RP_NS_PER_MS));
    open_control(3, run.listen);
    for (uint32_t s = 0; s < 130; s++) {
        for (uint32_t i = 0; i < 5; i++) {
            (void)!pass(1, 200 * RP_NS_PER_MS);
        }
        expect_ok(rp_twins_look(&ring, record, 5));
    }
    close_record();
    assert_in_range(count_lines("\"twins\""), 1, 3);
    assert_true(count_lines("two boards have the key of board one") > 0);
}

static void nothing_is_looked_at_without_a_record(void **state) {
    (void)state;
    open_connected();
    expect_ok(rp_strangers_look(&ring, NULL, 0));
    expect_ok(rp_twins_look(&ring, NULL, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RING_TEST(the_ring_grows_more_and_more_seldom),
        RING_TEST(a_board_that_answers_may_join),
        RING_TEST(answers_are_forgotten_when_nothing_is_at_work),
        RING_TEST(a_board_that_goes_again_does_not_join),
        RING_TEST(busy_or_older_boards_do_not_join),
        RING_TEST(a_stranger_is_reported_once_a_minute),
        RING_TEST(twins_are_reported_once_a_minute),
        RING_TEST(nothing_is_looked_at_without_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
