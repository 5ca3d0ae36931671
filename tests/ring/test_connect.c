/* Links of an assignment, boards that build it, and greetings. */
#include "boards.h"

#include "ring/building.h"
#include "ring/connect.h"
#include "ring/greeting.h"

/* ---- links of an assignment ------------------------------------------------------------------ */

/* A chain of three stages, whose boards are ready. */
static const rp_plan *open_ready(void) {
    const rp_method method = {.kind = rp_sched_find("gpipe"), .replicas = 1, .chunks = 1};
    static const uint32_t first[] = {0, 1, 2, 3};
    const rp_cut cut = {.stage_count = BOARDS, .first = first};
    rp_plan *plan;
    open_connected();
    run.batch = 4;
    run.data.sample = rp_shape_1(5);
    const rp_plan_options options = {.model_name = "m",
                                     .cut = &cut,
                                     .method = &method,
                                     .boards = names,
                                     .batch = 4,
                                     .micro = 2,
                                     .epoch_samples = 8,
                                     .steps = 2};
    expect_ok(rp_plan_make(&arena, &options, &plan));
    for (uint32_t k = 0; k < BOARDS; k++) {
        rp_Ready ready = {.feed_port = 50 + k, .hop_port_count = k > 0, .hop_port = {40 + k}};
        ring.board[k].machine.asked = true;
        expect_ok(rp_ring_take_ready(&ring, k, &ready, plan));
    }
    return plan;
}

static void neighbours_learn_where_they_listen(void **state) {
    (void)state;
    const rp_plan *plan = open_ready();
    uint32_t dialled[RP_PLAN_NEIGHBOURS_MAX];
    assert_int_equal(rp_ring_dialled_by(plan, 0, dialled), 0);
    assert_int_equal(rp_ring_dialled_by(plan, 2, dialled), 1);
    assert_int_equal(dialled[0], 1);
    expect_close(rp_ring_lines_age_s(&ring), 0, 0, 0);
    expect_ok(rp_ring_connect_boards(&ring, plan));
    expect_ok(pass(10, 100 * RP_NS_PER_MS));
    assert_string_equal(far[0].last[RP_KIND_CONNECT].body.connect.endpoint, "tcp://board1:41");
    assert_int_equal(far[0].last[RP_KIND_CONNECT].body.connect.node, 1);
    assert_string_equal(far[0].last[RP_KIND_CONNECT].body.connect.public_key,
                        far[1].own.keys.public_text);
    assert_string_equal(far[1].last[RP_KIND_CONNECT].body.connect.endpoint, "tcp://board2:42");
    assert_int_equal(far[2].orders[RP_KIND_CONNECT], 1); /* it dials no board, and is told so */
    assert_string_equal(far[2].last[RP_KIND_CONNECT].body.connect.endpoint, "");
    assert_true(ring.board[0].feed && !ring.board[1].feed && ring.board[2].feed);
    assert_true(ring.is_watching);
    expect_close(rp_ring_lines_age_s(&ring), 1, 1e-9, 0);
    rp_ring_end_assignment(&ring); /* the age of lines goes on with the next assignment */
    expect_ok(rp_ring_connect_boards(&ring, plan));
    expect_close(rp_ring_lines_age_s(&ring), 1, 1e-9, 0);
    rp_ring_end_assignment(&ring);
}

static void a_board_listens_for_as_many_as_the_plan_says(void **state) {
    (void)state;
    const rp_plan *plan = open_ready();
    const rp_Ready ready = {.hop_port_count = 2};
    rp_ring_expect_ready(&ring, 1, true);
    expect_err(rp_ring_take_ready(&ring, 1, &ready, plan), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "listens for 2 neighbours, but the plan has 1"));
    assert_false(ring.board[1].ready);
    expect_ok(rp_ring_take_ready(&ring, 1, &ready, NULL)); /* it gets no links */
}

/* ---- boards that build ----------------------------------------------------------------------- */

static void building_is_told_of_all_boards(void **state) {
    (void)state;
    rp_sink_part part;
    char text[256];
    open_connected();
    assert_int_equal(rp_ring_build_limit_ns(&ring), RP_RING_BUILD_NS); /* none has built yet */
    rp_ring_tell_building(&ring, "building", &part);
    assert_string_equal(part.unit, "boards ready");
    assert_true(part.done == 0 && part.total == BOARDS);
    rp_ring_take_building(&ring, 0, &(rp_Building){.kernels = 4, .ready = 3, .built = 1});
    rp_ring_take_building(&ring, 2, &(rp_Building){.kernels = 2, .ready = 2, .built = 2});
    rp_ring_tell_building(&ring, "building", &part);
    assert_string_equal(part.unit, "kernels");
    assert_true(part.done == 5 && part.total == 6);
    for (uint32_t k = 0; k < BOARDS; k++) {
        const rp_Ready ready = {.build_ns = (int64_t)k * RP_NS_PER_S, .device_bytes = 1 << 20};
        ring.board[k].machine.asked = true;
        expect_ok(rp_ring_take_ready(&ring, k, &ready, NULL));
    }
    rp_ring_describe_ready(&ring, text, sizeof text);
    assert_string_equal(text, "3 boards are ready: 3 kernels built in 0.0 s, 2 found in the cache "
                              "in 0.0 s, summed over the boards; the slowest stage was prepared "
                              "in 2.0 s; 3.0 MiB of device memory in use");
    assert_int_equal(rp_ring_build_limit_ns(&ring), 2 * RP_NS_PER_S + rp_ring_patience_ns(&run));
}

/* ---- greetings ------------------------------------------------------------------------------- */

static void a_greeting_has_an_end(void **state) {
    (void)state;
    open_ring(false);
    const int64_t begin_ns = ring.greeted_ns;
    const int64_t longest_ns = 40 * RP_NS_PER_S;
    assert_int_equal(rp_ring_greeting_left_ns(&ring, longest_ns, longest_ns, begin_ns, begin_ns),
                     longest_ns);
    assert_int_equal(rp_ring_greeting_left_ns(&ring, longest_ns, longest_ns, begin_ns,
                                              begin_ns + 50 * RP_NS_PER_S),
                     1);
    /* Greeted again just before the end: boards have time to answer. */
    const int64_t again_ns = begin_ns + 39 * RP_NS_PER_S;
    assert_int_equal(rp_ring_greeting_left_ns(&ring, longest_ns, longest_ns, again_ns, again_ns),
                     rp_ring_greet_ns(longest_ns) / 2);
}

static void the_board_that_is_named_is_one_that_is_away(void **state) {
    (void)state;
    open_connected();
    ring.board[0].silence.why = RP_SILENT_REFUSES;
    ring.board[1].hello = true;
    assert_int_equal(rp_ring_find_missing(&ring), 2);
    ring.board[2].hello = true;
    assert_int_equal(rp_ring_find_missing(&ring), 0);
}

static void boards_that_have_ended_are_counted(void **state) {
    (void)state;
    open_connected();
    assert_int_equal(rp_ring_count_ended(&ring), 0);
    ring.board[1].silence.has_ended = true;
    assert_int_equal(rp_ring_count_ended(&ring), 0); /* its link is connected */
    rp_link_close(&ring.board[1].control);
    assert_int_equal(rp_ring_count_ended(&ring), 0); /* it has none to say so */
    expect_ok(rp_ring_report_refusals(&ring, NULL, 0));
    assert_false(ring.board[1].silence.is_reported);
}

static void a_board_that_is_greeted_again_may_hang(void **state) {
    (void)state;
    open_ring(false);
    ring.now_ns += RP_RING_SILENT_NS + 1;
    rp_ring_greet_again(&ring);
    assert_true(ring.board[0].silence.hung);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RING_TEST(neighbours_learn_where_they_listen),
        RING_TEST(a_board_listens_for_as_many_as_the_plan_says),
        RING_TEST(building_is_told_of_all_boards),
        RING_TEST(a_greeting_has_an_end),
        RING_TEST(the_board_that_is_named_is_one_that_is_away),
        RING_TEST(boards_that_have_ended_are_counted),
        RING_TEST(a_board_that_is_greeted_again_may_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
