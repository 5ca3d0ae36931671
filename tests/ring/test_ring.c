/* Boards that join, leave and change places; queues; silence. */
#include "boards.h"

static void expect_order(const char *expected) {
    char got[64] = "";
    for (uint32_t k = 0; k < ring.count; k++) {
        const size_t used = strlen(got);
        (void)snprintf(got + used, sizeof got - used, "%s%s", used ? " " : "", ring.board[k].name);
    }
    assert_string_equal(got, expected);
}

static rp_Hello hello_of(const char *device) {
    rp_Hello hello = {.clock_ns = 1,
                      .wire_min = RP_WIRE_MIN,
                      .wire_max = RP_WIRE_MAX,
                      .features = RP_WIRE_FEATURES,
                      .memory_bytes = 1 << 20};
    (void)snprintf(hello.device, sizeof hello.device, "%s", device);
    return hello;
}

static void greet(uint32_t board, const char *device, bool expected_new) {
    const rp_Hello hello = hello_of(device);
    bool is_new;
    expect_ok(rp_ring_check_software(&ring, board, &hello));
    expect_ok(rp_ring_take_hello(&ring, board, &hello, &is_new));
    assert_int_equal(is_new, expected_new);
    assert_true(ring.board[board].hello);
}

/* ---- who is in it ---------------------------------------------------------------------------- */

static void boards_leave_and_join(void **state) {
    (void)state;
    open_connected();
    expect_order("one two three");
    greet(2, "device of three", true);
    rp_ring_leave(&ring, 1);
    expect_order("one three");
    assert_string_equal(ring.board[1].device, "device of three");
    assert_ptr_equal(ring.board[1].device, ring.board[1].device_text); /* of its own place */
    rp_ring_join(&ring, 1);
    expect_order("one two three");
    assert_null(ring.board[1].device);
    assert_null(ring.board[1].control);
    assert_string_equal(ring.board[2].device, "device of three");
    assert_ptr_equal(ring.board[2].device, ring.board[2].device_text);
}

static void boards_change_places(void **state) {
    (void)state;
    static const uint32_t at[] = {2, 0, 1};
    open_connected();
    greet(0, "a", true);
    rp_link *const control = ring.board[0].control;
    expect_ok(rp_ring_reorder(&ring, at));
    expect_order("three one two");
    assert_ptr_equal(ring.board[1].control, control);
    assert_string_equal(ring.board[1].device, "a");
    assert_ptr_equal(ring.board[1].device, ring.board[1].device_text);
}

static void a_spare_takes_a_place(void **state) {
    (void)state;
    open_connected();
    greet(1, "a", true);
    const rp_roster_entry lost = roster[1];
    roster[1] = roster[3];
    roster[3] = lost;
    rp_ring_take_entry(&ring, 1);
    expect_order("one four three");
    assert_null(ring.board[1].device);
    assert_null(ring.board[1].control);
    assert_string_equal(ring.board[1].address.public_text, far[3].own.keys.public_text);
}

/* ---- greeting -------------------------------------------------------------------------------- */

static void a_board_is_new_until_it_is_lost(void **state) {
    (void)state;
    open_connected();
    greet(0, "a", true);
    rp_ring_expect_hello(&ring, 0, true);
    greet(0, "b", false);
    assert_string_equal(ring.board[0].device, "a"); /* greeted again: it is what it was */
    rp_ring_reset(&ring, 0);
    assert_null(ring.board[0].control);
    assert_non_null(ring.board[1].control);
    greet(0, "b", true);
    assert_string_equal(ring.board[0].device, "b");
}

static void the_ring_has_what_all_ends_have(void **state) {
    (void)state;
    rp_Hello hello = hello_of("a");
    bool is_new;
    open_connected();
    hello.features &= ~RP_WIRE_FEATURE_LEDGER;
    expect_ok(rp_ring_take_hello(&ring, 0, &hello, &is_new));
    greet(1, "b", true);
    assert_false(ring.features & RP_WIRE_FEATURE_LEDGER);
    rp_ring_begin_greeting(&ring, true);
    assert_true(ring.features & RP_WIRE_FEATURE_LEDGER);
    hello.features = 0;
    expect_err(rp_ring_check_software(&ring, 2, &hello), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "board three"));
    hello.wire_min = hello.wire_max = RP_WIRE_MAX + 1;
    expect_err(rp_ring_check_software(&ring, 2, &hello), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "update ringpipe on the host"));
}

static void a_clock_that_no_board_has_is_refused(void **state) {
    (void)state;
    rp_Hello hello = hello_of("a");
    bool is_new;
    open_connected();
    hello.clock_ns = INT64_MIN;
    expect_err(rp_ring_take_hello(&ring, 0, &hello, &is_new), RP_ERR_PEER);
    assert_false(ring.board[0].hello);
}

/* ---- what boards say ------------------------------------------------------------------------- */

static void numbers_are_bounded(void **state) {
    (void)state;
    open_connected();
    const rp_Building building = {.kernels = 4, .ready = 9, .built = 7, .build_ns = -1};
    rp_ring_take_building(&ring, 0, &building);
    assert_int_equal(ring.board[0].build.now.ready, 4);
    assert_int_equal(ring.board[0].build.now.built, 4);
    assert_int_equal(ring.board[0].build.now.build_ns, 0);
    const rp_Ready ready = {.device_bytes = UINT64_MAX, .weight_bytes = 5, .weight_copies = 3};
    expect_err(rp_ring_take_ready(&ring, 0, &ready, NULL), RP_ERR_PEER); /* it was not asked */
    ring.board[0].machine.asked = true;
    expect_ok(rp_ring_take_ready(&ring, 0, &ready, NULL));
    expect_err(rp_ring_take_ready(&ring, 0, &ready, NULL), RP_ERR_PEER); /* it is ready already */
    assert_true(ring.board[0].ready && ring.board[0].build.has_built);
    assert_int_equal(ring.board[0].build.before.ready, 4);
    assert_int_equal(ring.board[0].build.now.ready, 0);
    assert_int_equal(ring.board[0].memory.device_bytes, 0);
    assert_int_equal(ring.board[0].memory.weight_bytes, 5);
    rp_ring_expect_ready(&ring, 0, true);
    expect_ok(rp_ring_take_ready(&ring, 0, &(rp_Ready){.weight_copies = 2}, NULL));
    assert_int_equal(ring.board[0].memory.weight_copies, 2);
    assert_int_equal(ring.board[0].memory.weight_copies_max, 3);
}

static void facts_add_up_over_assignments(void **state) {
    (void)state;
    open_connected();
    const rp_Finished report = {.microbatches = 10,
                                .in_flight_max = 2,
                                .link_count = 2,
                                .link = {{.peer = 1, .bytes = 7}, {.peer = 99, .bytes = 7}}};
    rp_ring_take_facts(&ring, 0, &report);
    rp_ring_take_facts(&ring, 0, &report); /* the same assignment says it again */
    assert_int_equal(ring.board[0].facts.microbatches, 10);
    assert_int_equal(ring.board[0].facts.link_count, 1); /* board 99 is not in the ring */
    rp_ring_end_assignment(&ring);
    rp_ring_take_facts(&ring, 0, &report);
    assert_int_equal(ring.board[0].facts.microbatches, 20);
    assert_int_equal(ring.board[0].facts.link[0].bytes, 14);
    assert_int_equal(ring.board[0].facts.in_flight_max, 2);
    rp_ring_rewind_facts(&ring, 0, 4);
    rp_ring_take_facts(&ring, 0, &report);
    assert_int_equal(ring.board[0].facts.microbatches, 14);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void fill_queue(uint32_t *sent) {
    while (ring.board[0].queue.count < RP_RING_PENDING_MAX) {
        const rp_Frame frame = {.which_body = RP_KIND_STOP, .body.stop = {.step = ++*sent}};
        expect_ok(rp_ring_post(&ring, 0, &frame, NULL));
        assert_true(*sent < 1000);
    }
}

static void messages_wait_in_order_up_to_the_bound(void **state) {
    (void)state;
    uint32_t sent = 0;
    open_connected();
    far[0].is_deaf = true;
    fill_queue(&sent);
    rp_Frame more = {.which_body = RP_KIND_STOP, .body.stop = {.step = sent + 1}};
    expect_err(rp_ring_offer(&ring, 0, &more, NULL, 0), RP_ERR_AGAIN);
    expect_err(rp_ring_post(&ring, 0, &more, NULL), RP_ERR_FAULT);
    far[0].is_deaf = false;
    expect_ok(pass(100, 10 * RP_NS_PER_MS));
    assert_int_equal(ring.board[0].queue.count, 0);
    assert_int_equal(far[0].orders[RP_KIND_STOP], sent);
    assert_int_equal(far[0].last[RP_KIND_STOP].body.stop.step, sent);
}

static void a_message_does_not_wait_for_ever(void **state) {
    (void)state;
    uint32_t sent = 0;
    open_connected();
    far[0].is_deaf = true;
    fill_queue(&sent);
    const int64_t since_ns = ring.board[0].queue.since_ns;
    rp_err err = RP_OK;
    for (uint32_t i = 0; err == RP_OK && i < 100; i++) {
        err = pass(1, RP_NS_PER_S);
    }
    expect_err(err, RP_ERR_TIMEOUT);
    assert_string_equal(rp_err_message(), "board one accepts no message");
    assert_in_range(ring.now_ns - since_ns, RP_RING_HELLO_NS, RP_RING_HELLO_NS + 2 * RP_NS_PER_S);
}

static void a_reset_drops_what_waits(void **state) {
    (void)state;
    uint32_t sent = 0;
    open_connected();
    far[0].is_deaf = true;
    fill_queue(&sent);
    rp_ring_reset(&ring, UINT32_MAX);
    assert_int_equal(ring.board[0].queue.count, 0);
    assert_false(ring.is_watching);
}

/* ---- silence --------------------------------------------------------------------------------- */

static void a_silent_board_is_a_fault_while_boards_are_watched(void **state) {
    (void)state;
    open_connected();
    far[1].is_deaf = true;
    expect_ok(pass(15, RP_NS_PER_S)); /* nobody watches */
    far[1].is_deaf = false;
    expect_ok(pass(3, RP_NS_PER_S));
    rp_ring_watch_boards(&ring, true);
    far[1].is_deaf = true;
    expect_ok(pass(10, RP_NS_PER_S));
    expect_err(pass(3, RP_NS_PER_S), RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), "board two has been silent for"));
    rp_ring_reset(&ring, UINT32_MAX);
    assert_true(ring.board[1].silence.hung);
    assert_null(ring.board[1].control);
    assert_non_null(ring.board[0].control);
}

/* A host that slept has heard nobody: that is no fault of the boards. */
static void silence_counts_from_when_the_host_is_awake(void **state) {
    (void)state;
    open_connected();
    rp_ring_watch_boards(&ring, true);
    far[1].is_deaf = true;
    test_clock.stepped_ns += 60 * RP_NS_PER_S;
    expect_ok(pass(1, RP_NS_PER_S));
    assert_int_equal(rp_ring_silence_ns(&ring, 1), 0);
    expect_ok(pass(10, RP_NS_PER_S));
    expect_err(pass(2, RP_NS_PER_S), RP_ERR_FAULT);
}

static void a_restart_is_a_fault_while_boards_are_watched(void **state) {
    (void)state;
    open_connected();
    rp_ring_watch_boards(&ring, true);
    open_control(2, NULL);
    expect_err(pass(100, 100 * RP_NS_PER_MS), RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), "board three has restarted"));
}

/* A board that trusts another host: an error at first, and away once the run has had it. */
static void a_board_that_refuses(void **state) {
    (void)state;
    open_ring(false);
    const rp_keypair ours = host.keys;
    host.keys = far[3].own.keys; /* whom board 0 trusts */
    open_control(0, NULL);
    host.keys = ours;
    open_control(1, NULL);
    open_control(2, NULL);
    expect_ok(rp_ring_connect(&ring, host.links, false));
    expect_err(pass(20, 100 * RP_NS_PER_MS), RP_ERR_REFUSED);
    assert_int_equal(ring.board[0].silence.why, RP_SILENT_REFUSES);
    rp_ring_begin_greeting(&ring, true);
    expect_ok(pass(20, 100 * RP_NS_PER_MS));
    assert_int_equal(rp_ring_look_at_silence(&ring, 0), RP_SILENT_REFUSES);
    expect_err(rp_ring_why_silent(&ring, 0), RP_ERR_REFUSED);
    assert_int_equal(rp_ring_look_at_silence(&ring, 1), RP_SILENT_UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RING_TEST(boards_leave_and_join),
        RING_TEST(boards_change_places),
        RING_TEST(a_spare_takes_a_place),
        RING_TEST(a_board_is_new_until_it_is_lost),
        RING_TEST(the_ring_has_what_all_ends_have),
        RING_TEST(a_clock_that_no_board_has_is_refused),
        RING_TEST(numbers_are_bounded),
        RING_TEST(facts_add_up_over_assignments),
        RING_TEST(messages_wait_in_order_up_to_the_bound),
        RING_TEST(a_message_does_not_wait_for_ever),
        RING_TEST(a_reset_drops_what_waits),
        RING_TEST(a_silent_board_is_a_fault_while_boards_are_watched),
        RING_TEST(silence_counts_from_when_the_host_is_awake),
        RING_TEST(a_restart_is_a_fault_while_boards_are_watched),
        RING_TEST(a_board_that_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
