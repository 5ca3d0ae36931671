/* A ring that makes no progress says who waits for whom, on a virtual clock. */
#include "boards.h"

static test_ring ring;

static void say(uint32_t board, const rp_Waiting *waiting) {
    const rp_Frame frame = {.which_body = RP_KIND_WAITING, .body.waiting = *waiting};
    board_send(&ring.board[board], frame, NULL);
}

/* In a segment of 4 steps, 2 of which have taken a second each, and a third is reported; then
 * nothing is done. */
static void open_ring_with(const char *setting) {
    ring_prepare(&ring, "out");
    ring_set(&ring, setting);
    ring_open(&ring);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    while (ring.c->position.step < 2) {
        ring_step(&ring, RP_NS_PER_S);
        assert_int_equal(ring.c->machine.state, RP_CONTROL_TRAIN);
    }
    ring.idle = true;
}

static void open_ring(void) {
    open_ring_with("ring.wait=0");
}

static void pass(uint32_t seconds) {
    for (uint32_t i = 0; i < seconds; i++) {
        ring_step(&ring, RP_NS_PER_S);
        assert_int_equal(ring.c->machine.state, RP_CONTROL_TRAIN);
    }
}

static void who_waits_for_whom_is_said(void **state) {
    (void)state;
    static const struct {
        rp_Waiting said[BOARDS];
        const char *cause, *waits;
    } cases[] = {
        {{{.what = RP_WAITING_DEVICE, .step = 3, .first = 8, .count = 8},
          {.what = RP_WAITING_INPUT, .peer = 0, .step = 3, .first = 0, .count = 8}},
         "0",
         "board 1 waits for what board 0 sends (step 4, samples 0 to 7), board 0 computes (step 4, "
         "samples 8 to 15)"},
        {{{.what = RP_WAITING_ROOM, .peer = 1}, {.what = RP_WAITING_INPUT, .peer = 0, .count = 8}},
         "1",
         "board 0 waits until board 1 takes what it was sent, board 1 waits for what board 0 "
         "sends (step 1, samples 0 to 7)"},
        {{{.what = RP_WAITING_FEED}, {.what = RP_WAITING_NOTHING}},
         "0",
         "board 0 waits for inputs or labels of this host"},
        {{{.what = RP_WAITING_ACKS, .peer = 1}, {.what = RP_WAITING_REPORTS}},
         "1",
         "board 0 waits until board 1 has got all of it, board 1 waits until this host takes its "
         "reports"},
        {{{.what = RP_WAITING_NOTHING}, {.what = RP_WAITING_INPUT, .peer = 0, .count = 1}},
         "0",
         "board 0 does not say what it waits for, heard "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_ring();
        for (uint32_t k = 0; k < BOARDS; k++) {
            say(k, &cases[i].said[k]);
        }
        pass(6);
        expect_events(0, .kind = RP_EVENT_STEP_LATE); /* eight times as long as usual */
        pass(6);
        expect_events(1, .kind = RP_EVENT_STEP_LATE);
        expect_events(1, .kind = RP_EVENT_STEP_LATE, .board = cases[i].cause,
                      .waits = cases[i].waits);
        pass(15); /* again, each time after twice as long */
        expect_events(2, .kind = RP_EVENT_STEP_LATE, .waits = cases[i].waits);
        ring.idle = false;
        expect_ok(ring_end(&ring, 100));
        expect_events(1, .kind = RP_EVENT_STEP_CAME);
        ring_close(&ring);
    }
}

/* Once when it begins and once when it ends, however often a board says it. */
static void a_silent_hop_is_said(void **state) {
    (void)state;
    const rp_Waiting silent = {.what = RP_WAITING_INPUT,
                               .peer = 0,
                               .silent_count = 1,
                               .silent = {{.peer = 0, .silent_ns = 3 * RP_NS_PER_S}}};
    const rp_Waiting heard = {.what = RP_WAITING_NOTHING};
    open_ring();
    for (uint32_t i = 0; i < 3; i++) {
        say(1, &silent);
        pass(1);
    }
    expect_events(1, .kind = RP_EVENT_HOP_SILENT, .board = "1", .peer = "0", .seconds = 3);
    pass(8);
    expect_events(1, .kind = RP_EVENT_STEP_LATE, .waits = "; board 1 gets no answer from board 0");
    say(1, &heard);
    pass(2);
    expect_events(1, .kind = RP_EVENT_HOP_HEARD, .board = "1", .peer = "0");
    expect_events(1, .kind = RP_EVENT_HOP_SILENT);
    ring.idle = false;
    expect_ok(ring_end(&ring, 100));
    ring_close(&ring);
}

/* The way to a board's feed is watched by the controller. */
static void a_silent_feed_is_said(void **state) {
    (void)state;
    open_ring();
    ring.feed_is_cut = true;
    pass(12); /* an answer takes a round of 1 s here */
    expect_events(1, .kind = RP_EVENT_FEED_SILENT, .board = "0");
    ring.feed_is_cut = false;
    pass(2);
    expect_events(1, .kind = RP_EVENT_FEED_HEARD, .board = "0");
    ring.idle = false;
    expect_ok(ring_end(&ring, 100));
    ring_close(&ring);
}

/* A host that was stopped for a minute has missed what boards did meanwhile: none is late, and none
 * is taken for lost. */
static void a_host_that_sleeps_waits_for_nobody(void **state) {
    (void)state;
    open_ring();
    ring_step(&ring, 60 * RP_NS_PER_S);
    pass(4);
    expect_events(0, .kind = RP_EVENT_STEP_LATE);
    pass(8);
    expect_events(1, .kind = RP_EVENT_STEP_LATE);
    ring.idle = false;
    expect_ok(ring_end(&ring, 100));
    expect_events(0, .kind = RP_EVENT_FAULT);
    ring_close(&ring);
}

static void what_can_not_be_is_refused(void **state) {
    (void)state;
    static const rp_Waiting wrong[] = {
        {.what = RP_WAITING_KINDS},
        {.what = RP_WAITING_INPUT, .peer = BOARDS},
        {.what = RP_WAITING_INPUT, .for_ns = -1},
        {.what = RP_WAITING_DEVICE, .longest_ns = -1},
        {.silent_count = 1, .silent = {{.peer = BOARDS}}},
        {.silent_count = 1, .silent = {{.silent_ns = -1}}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        open_ring();
        say(1, &wrong[i]);
        expect_err(ring_end(&ring, 100), RP_ERR_PEER);
        assert_non_null(strstr(ring.fault.text, "board 1 sent an invalid WAITING message"));
        ring_close(&ring);
    }
}

/* ---- a board that hangs ---------------------------------------------------------------------- */

enum { NOBODY_SAYS = -1 };

/* Each second board 0 says that its device is at one op, board 1 what it waits for, until the run
 * leaves `train`; at most so many seconds, which are returned. `what_0`: or it says nothing. */
static uint32_t hang_for(int what_0, double longest_s, rp_waiting_for what_1, uint32_t most) {
    const int64_t longest_ns = (int64_t)(longest_s * 1e9);
    for (uint32_t s = 0; s < most; s++) {
        if (what_0 != NOBODY_SAYS) {
            say(0, &(rp_Waiting){.what = (uint32_t)what_0,
                                 .for_ns = s * RP_NS_PER_S,
                                 .longest_ns = longest_ns});
        }
        say(1, &(rp_Waiting){.what = what_1, .for_ns = RP_NS_PER_S, .longest_ns = longest_ns});
        ring_step(&ring, RP_NS_PER_S);
        if (ring.c->machine.state != RP_CONTROL_TRAIN) {
            return s;
        }
    }
    return most;
}

/* Longer than 30 s, 200 times its longest op, or 300 s where it has ended none; and no other board
 * can go on. */
static void a_board_that_hangs_is_lost(void **state) {
    (void)state;
    static const struct {
        int what_0;
        rp_waiting_for what_1;
        double longest_s;
        uint32_t least, most; /* seconds until it is lost; 0: it is not within 1000 s */
        const char *text;
    } cases[] = {
        {RP_WAITING_DEVICE, RP_WAITING_INPUT, 0.01, 30, 32,
         "board 0: its device hangs: one op has been running for 30 s (step 1, stage 0; the "
         "longest earlier op took 0.01 s)"},
        {RP_WAITING_DEVICE, RP_WAITING_INPUT, 0.5, 100, 102, "for 100 s"},
        {RP_WAITING_DEVICE, RP_WAITING_FEED, 0, 300, 302, "no earlier op has ended"},
        {RP_WAITING_DEVICE, RP_WAITING_DECISION, 0.01, 30, 32, "for 30 s"},
        {RP_WAITING_NOTHING, RP_WAITING_INPUT, 0.01, 29, 34,
         "board 0 answers, but for 30 s it has neither reported anything nor said what it waits"},
        {NOBODY_SAYS, RP_WAITING_ACKS, 0.01, 299, 304, "board 0 answers, but for 300 s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_ring_with("ring.wait=30");
        const uint32_t took = hang_for(cases[i].what_0, cases[i].longest_s, cases[i].what_1, 1000);
        if (took < cases[i].least || took > cases[i].most) {
            fail_msg("case %zu: lost after %u s", i, took);
        }
        assert_int_equal(ring.c->recovery.fault.board, 0);
        assert_true(ring.c->recovery.fault.silent_ns >= (cases[i].least - 2) * RP_NS_PER_S);
        assert_int_equal(ring.c->recovery.fault.fault_class, RP_FAULT_BOARD);
        if (!strstr(ring.c->recovery.fault.text, cases[i].text)) {
            fail_msg("no '%s' in '%s'", cases[i].text, ring.c->recovery.fault.text);
        }
        ring.idle = false;
        expect_ok(ring_end(&ring, 100)); /* from the checkpoint, with a new process */
        assert_int_equal(ring.restarts, 1);
        assert_true(ring.hung[0]);
        assert_false(ring.hung[1]);
        ring_close(&ring);
    }
}

/* A slow board, boards that wait for the host, one of which another board still works. */
static void a_slow_board_is_not_lost(void **state) {
    (void)state;
    static const struct {
        int what_0;
        rp_waiting_for what_1;
        double longest_s;
    } cases[] = {{RP_WAITING_DEVICE, RP_WAITING_INPUT, 5},
                 {RP_WAITING_FEED, RP_WAITING_INPUT, 0.01},
                 {RP_WAITING_INPUT, RP_WAITING_DEVICE, 0.01},
                 {RP_WAITING_DEVICE, RP_WAITING_DEVICE, 0.01}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_ring_with("ring.wait=30");
        assert_int_equal(hang_for(cases[i].what_0, cases[i].longest_s, cases[i].what_1, 600), 600);
        ring.idle = false;
        expect_ok(ring_end(&ring, 100));
        assert_int_equal(ring.restarts, 0);
        ring_close(&ring);
    }
}

/* What passed while this host was stopped is nobody's. */
static void a_host_that_sleeps_finds_no_board_hung(void **state) {
    (void)state;
    open_ring_with("ring.wait=30");
    assert_int_equal(hang_for(RP_WAITING_NOTHING, 0.01, RP_WAITING_INPUT, 20), 20);
    ring_step(&ring, 60 * RP_NS_PER_S);
    assert_int_equal(hang_for(RP_WAITING_NOTHING, 0.01, RP_WAITING_INPUT, 20), 20);
    ring.idle = false;
    expect_ok(ring_end(&ring, 100));
    assert_int_equal(ring.restarts, 0);
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_waits_for_whom_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(a_silent_hop_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(a_silent_feed_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(a_host_that_sleeps_waits_for_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(what_can_not_be_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_hangs_is_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_board_is_not_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_host_that_sleeps_finds_no_board_hung, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
