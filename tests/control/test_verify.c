/* Microbatches that are computed again, with boards that say what the test wants them to say. */
#include "boards.h"

static test_ring ring;

static void open_ring(void) {
    ring_prepare(&ring, "out");
    ring_set(&ring, "ring.verify=1/2"); /* one of a step's two */
    ring_open(&ring);
}

/* Of 8 microbatches, so many stages. */
static bool is_summed_up(uint32_t stages) {
    char text[160];
    (void)snprintf(
        text, sizeof text,
        " \"verify\": {\n  \"microbatches\": 8,\n  \"stages\": %u,\n  \"wrong\": 0\n },\n", stages);
    return strstr(slurp("out/summary.json", NULL), text) != NULL;
}

/* Every step has a check of its own, and a pause for that alone saves nothing. */
static void equal_boards_go_on(void **state) {
    (void)state;
    ring_prepare(&ring, "out");
    ring_open(&ring);
    expect_ok(ring_end(&ring, 400));
    const uint32_t saves = ring.board[0].orders[RP_KIND_SAVE];
    const uint32_t starts = ring.board[0].orders[RP_KIND_START];
    assert_int_equal(ring.board[0].orders[RP_KIND_RECORD], 0);
    ring_close(&ring);
    open_ring();
    expect_ok(ring_end(&ring, 400));
    assert_int_equal(ring.board[0].orders[RP_KIND_SAVE], saves);
    assert_true(ring.board[0].orders[RP_KIND_START] > starts);
    for (uint32_t k = 0; k < BOARDS; k++) {
        assert_int_equal(ring.board[k].orders[RP_KIND_RECORD], 2 * 8);
    }
    assert_true(is_summed_up(16));
    expect_events(8, .kind = RP_EVENT_VERIFY_SAME, .verified = 2, .board_count = 2);
    assert_non_null(strstr(ring.trail, "train verify train verify"));
    ring_close(&ring);
}

/* What is copied has been compared before, and a pause for a comparison alone copies nothing. */
static void copies_come_behind_the_comparison(void **state) {
    (void)state;
    ring_prepare(&ring, "out");
    ring_set(&ring, "ring.verify=1/2");
    ring_set(&ring, "ring.copy_steps=2");
    ring_open(&ring);
    expect_ok(ring_end(&ring, 400));
    assert_int_equal(ring.board[0].orders[RP_KIND_COPY], 2); /* 4 and 8 of 8 steps are saved */
    assert_int_equal(ring.board[0].orders[RP_KIND_RECORD], 2 * 8);
    assert_true(is_summed_up(16));
    assert_non_null(strstr(ring.trail, "train verify train verify copy train"));
    assert_null(strstr(ring.trail, "copy verify"));
    ring_close(&ring);
}

static void a_board_may_have_no_record(void **state) {
    (void)state;
    open_ring();
    ring.board[0].has_no_record = true;
    expect_ok(ring_end(&ring, 400));
    assert_true(is_summed_up(8));
    expect_events(8, .kind = RP_EVENT_VERIFY_SAME, .verified = 1, .board_count = 2);
    ring_close(&ring);
}

/* It gives other bits itself when it is asked again. */
static void a_board_that_was_wrong_once_is_named(void **state) {
    (void)state;
    for (uint32_t k = 0; k < BOARDS; k++) {
        char text[80];
        open_ring();
        ring.board[k].recorded = 7;
        expect_err(ring_end(&ring, 400), RP_ERR_FAULT);
        (void)snprintf(text, sizeof text, "board %u computed the forward of microbatch ", k);
        assert_non_null(strstr(ring.fault.text, text));
        assert_int_equal(ring.fault.fault_class, RP_FAULT_BOARD);
        assert_int_equal(ring.failed, RP_CONTROL_VERIFY);
        assert_int_equal(ring.board[0].orders[RP_KIND_SAVE], 0); /* of what is wrong */
        expect_events(1, .kind = RP_EVENT_VERIFY_DIFFERS, .stage = k);
        ring_close(&ring);
    }
}

static void two_boards_may_not_decide(void **state) {
    (void)state;
    open_ring();
    ring.board[1].recorded = ring.board[1].recomputed = 7;
    expect_err(ring_end(&ring, 400), RP_ERR_FAULT);
    assert_non_null(
        strstr(ring.fault.text, "boards 0 and 1 computed different bits in the forward"));
    assert_non_null(strstr(ring.fault.text, "a second try does not decide it"));
    assert_int_equal(ring.fault.fault_class, RP_FAULT_FATAL);
    ring_close(&ring);
}

/* What no board that keeps to the protocol says. */
static void other_messages_are_refused(void **state) {
    static const char bytes[64] = "record";
    static const struct {
        rp_Record record;
        const char *text;
    } cases[] = {
        {{.stage = 1, .total = 64}, "board 0 sent a record without being asked"},
        {{.first = 64, .total = 128}, "board 0: the pieces of its record do not fit"},
        {{.total = 63}, "board 0: the pieces of its record do not fit"},
        {{.total = UINT64_C(1) << 40},
         "board 0: a record of stage 0 cannot have 1099511627776 bytes"},
    };
    const rp_part part = rp_part_of_bytes(bytes, sizeof bytes);
    (void)state;
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; i++) {
        const bool is_last = i == sizeof cases / sizeof *cases;
        rp_Frame frame = {.which_body = RP_KIND_RECOMPUTED};
        open_ring();
        ring.mute = RP_KIND_RECORD;
        assert_true(ring_reach(&ring, RP_CONTROL_VERIFY));
        if (!is_last) {
            frame = (rp_Frame){.which_body = RP_KIND_RECORD, .body.record = cases[i].record};
        }
        board_send(&ring.board[0], frame, is_last ? NULL : &part);
        expect_err(ring_end(&ring, 100), RP_ERR_PEER);
        assert_non_null(strstr(ring.fault.text, is_last ? "board 0 computed a record that it was "
                                                          "not given"
                                                        : cases[i].text));
        ring_close(&ring);
    }
}

/* A record that begins again and again would take the host's memory. */
static void a_record_begins_once(void **state) {
    static const char bytes[64] = "record";
    const rp_part part = rp_part_of_bytes(bytes, sizeof bytes);
    const rp_Frame frame = {.which_body = RP_KIND_RECORD, .body.record = {.total = 128}};
    (void)state;
    open_ring();
    ring.mute = RP_KIND_RECORD;
    assert_true(ring_reach(&ring, RP_CONTROL_VERIFY));
    board_send(&ring.board[0], frame, &part);
    board_send(&ring.board[0], frame, &part);
    expect_err(ring_end(&ring, 100), RP_ERR_PEER);
    assert_non_null(strstr(ring.fault.text, "board 0: the pieces of its record do not fit"));
    ring_close(&ring);
}

/* They may round in another way. */
static void other_devices_are_refused(void **state) {
    (void)state;
    ring_prepare(&ring, "out");
    ring.board[1].device = 'x';
    ring_open(&ring);
    expect_ok(ring_end(&ring, 400)); /* nothing is compared */
    ring_close(&ring);
    ring_prepare(&ring, "out");
    ring_set(&ring, "ring.verify=1/2");
    ring.board[1].device = 'x';
    ring_open(&ring);
    expect_err(ring_end(&ring, 400), RP_ERR_USAGE);
    assert_non_null(strstr(ring.fault.text,
                           "ring.verify compares the bits of equal devices: board 0 has 'test "
                           "device', board 1 has 'test devicex'"));
    ring_close(&ring);
}

/* Where stages have sizes of their own a sample of the step is drawn, and boards know what that is.
 */
static void sizes_have_a_sample_in_common(void **state) {
    (void)state;
    open_ring();
    expect_ok(ring_end(&ring, 400));
    assert_int_equal(ring.board[0].verified, 3); /* of two microbatches */
    ring_close(&ring);
    ring_prepare(&ring, "out");
    ring_set(&ring, "ring.verify=1/2");
    ring_set(&ring, "schedule={kind: umpipe, forward: [8, 5], backward: [8, 3]}");
    ring_open(&ring);
    expect_ok(ring_end(&ring, 400));
    assert_true(ring.board[0].verified > 3 && ring.board[0].verified < 1 << BATCH);
    assert_int_equal(ring.board[0].verified, ring.board[1].verified);
    assert_true(is_summed_up(16));
    expect_events(8, .kind = RP_EVENT_VERIFY_SAME, .by_sample = 1, .verified = 2);
    ring_close(&ring);
    ring_prepare(&ring, "out");
    ring_set(&ring, "ring.verify=1/2");
    ring_set(&ring, "schedule={kind: umpipe, forward: [8, 5], backward: [8, 3]}");
    ring.board[1].features &= ~RP_WIRE_FEATURE_SIZE_RECORDS;
    ring_open(&ring);
    expect_err(ring_end(&ring, 400), RP_ERR_PEER);
    assert_non_null(strstr(ring.fault.text, "cannot recompute microbatches"));
    ring_close(&ring);
}

static void a_board_that_says_nothing_is_named(void **state) {
    (void)state;
    open_ring();
    ring.mute = RP_KIND_RECORD;
    expect_err(ring_end(&ring, 3000), RP_ERR_TIMEOUT);
    assert_non_null(strstr(ring.fault.text, "board 0 has not sent its record for 1800 s"));
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(other_devices_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(equal_boards_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_come_behind_the_comparison, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_may_have_no_record, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_was_wrong_once_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(two_boards_may_not_decide, setup, teardown),
        cmocka_unit_test_setup_teardown(other_messages_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_record_begins_once, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_have_a_sample_in_common, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_says_nothing_is_named, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
