/* Copies that boards keep of each other: whole, under way, forgotten, gone back to; how often. */
#include "keeping.h"

static rp_err say_copied(uint32_t board, uint32_t node, uint64_t step, uint32_t term) {
    const rp_message message = {
        .frame = {.which_body = RP_KIND_COPIED, .body.copied = {term, step, node}}};
    return rp_keep_on_copied(keep, plan, board, &message);
}

static void begin_copy(uint64_t step) {
    const rp_position position = position_at(step);
    expect_ok(rp_keep_begin_copy(keep, plan, &position, NULL));
}

/* Both boards have their own copy and that of the other one. */
static void say_all(uint64_t step) {
    for (uint32_t i = 0; i < BOARDS * BOARDS; i++) {
        assert_true(rp_keep_is_copying(keep));
        expect_ok(say_copied(i / BOARDS, i % BOARDS, step, ring.identity.term));
    }
}

static void copies_are_whole_when_all_have_said_so(void **state) {
    (void)state;
    open_keep("ring.copy_steps=2");
    expect_ok(rp_keep_check_plan(keep, plan));
    begin_copy(2);
    pass_ms(5);
    assert_int_equal(far[1].orders[RP_KIND_COPY], 1);
    assert_int_equal(far[1].last[RP_KIND_COPY].body.copy.step, 2);
    assert_null(rp_keep_newest_copies(keep));
    expect_ok(say_copied(0, 0, 2, ring.identity.term));
    assert_true(ring.board[0].keep.copied && !ring.board[1].keep.copied);
    expect_ok(say_copied(0, 0, 2, ring.identity.term));     /* said before */
    expect_ok(say_copied(1, 0, 2, ring.identity.term - 1)); /* of another assignment */
    expect_ok(say_copied(1, 0, 1, ring.identity.term));     /* of other copies */
    assert_true(rp_keep_is_copying(keep));
    expect_err(say_copied(0, BOARDS, 2, ring.identity.term), RP_ERR_PEER);
    expect_err(say_copied(0, UINT32_MAX, 2, ring.identity.term), RP_ERR_PEER);
    say_all(2);
    assert_false(rp_keep_is_copying(keep));
    assert_int_equal(rp_keep_newest_copies(keep)->step, 2);
    close_keep();
}

static void the_last_copies_stay_until_the_next_are_whole(void **state) {
    (void)state;
    open_keep("ring.copy_steps=2");
    ring.board[1].facts.microbatches = 4;
    begin_copy(2);
    say_all(2);
    ring.board[1].facts.microbatches = 8;
    begin_copy(4);
    assert_int_equal(rp_keep_newest_copies(keep)->step, 2);
    assert_int_equal(rp_keep_copied_microbatches(keep, 1), 4);
    begin_copy(6); /* the ones of step 4 are on their way: nothing is ordered */
    pass_ms(5);
    assert_int_equal(far[0].orders[RP_KIND_COPY], 2);
    assert_true(ring.board[0].keep.copied && ring.board[1].keep.copied);
    say_all(4);
    assert_int_equal(rp_keep_newest_copies(keep)->step, 4);
    assert_int_equal(rp_keep_copied_microbatches(keep, 1), 8);
    save_at(4, 0.5F); /* as new as the copies */
    assert_null(rp_keep_newest_copies(keep));
    rp_keep_forget_copies(keep);
    assert_false(rp_keep_is_copying(keep));
    close_keep();
}

static rp_keep_outcome step_rescue(void) {
    const char *not_finite;
    rp_keep_outcome outcome;
    expect_ok(rp_keep_step_rescue(keep, &not_finite, &outcome));
    assert_true((outcome == RP_KEEP_DAMAGED) == (not_finite != NULL));
    return outcome;
}

/* Board 1 has lost its state; board 0 has both copies, as it says. */
static void want_copies(void) {
    begin_copy(2);
    say_all(2);
    begin_copy(4);
    rp_keep_want_copies(keep);
    assert_true(rp_keep_wants_copies(keep) && !rp_keep_is_copying(keep));
    rp_keep_ask_for_holders(keep, plan);
    assert_string_equal(rp_keep_find_lost(keep, plan), "0");
    expect_ok(say_copied(0, 0, 2, ring.identity.term));
    expect_ok(say_copied(0, 1, 4, ring.identity.term)); /* not the one that is wanted */
    expect_ok(say_copied(0, 7, 2, ring.identity.term)); /* no such node */
    assert_string_equal(rp_keep_find_lost(keep, plan), "1");
    expect_ok(say_copied(0, 1, 2, ring.identity.term));
    assert_null(rp_keep_find_lost(keep, plan));
}

static void begin_rescue(void) {
    rp_keep_outcome outcome;
    expect_ok(rp_keep_begin_rescue(keep, plan, &outcome));
    assert_int_equal(outcome, RP_KEEP_WAITS);
}

/* `leaves`: without the board that has lost its state, the ring is smaller than the copies' plan.
 */
static void rescue(bool leaves) {
    open_keep("ring.copy_steps=2");
    want_copies();
    if (leaves) {
        rp_ring_leave(&ring, 1);
    }
    begin_rescue();
    for (uint32_t node = 0; node < BOARDS; node++) { /* one at a time */
        assert_int_equal(step_rescue(), RP_KEEP_WAITS);
        assert_int_equal(step_rescue(), RP_KEEP_WAITS);
        pass_ms(5);
        assert_int_equal(far[0].orders[RP_KIND_FETCH], node + 1);
        assert_int_equal(far[0].last[RP_KIND_FETCH].body.fetch.node, node);
        (void)say_stage(0, node, 0.5F);
        expect_ok(rp_keep_on_end(keep, 0));
    }
    assert_int_equal(far[1].orders[RP_KIND_FETCH], 0);
    assert_int_equal(step_rescue(), RP_KEEP_DONE);
    assert_int_equal(rp_keep_saved_step(keep), 2);
    assert_false(rp_keep_wants_copies(keep));
    assert_null(rp_keep_newest_copies(keep));
    close_keep();
}

static void copies_become_a_checkpoint(void **state) {
    (void)state;
    rescue(false);
}

static void copies_become_a_checkpoint_of_a_smaller_ring(void **state) {
    (void)state;
    rescue(true);
}

static void copies_that_are_not_finite_are_of_no_use(void **state) {
    (void)state;
    open_keep("ring.copy_steps=2");
    want_copies();
    begin_rescue();
    for (uint32_t node = 0; node < BOARDS; node++) {
        assert_int_equal(step_rescue(), RP_KEEP_WAITS);
        (void)say_stage(0, node, node == 1 ? 1.0F / 0.0F : 0.5F);
        expect_ok(rp_keep_on_end(keep, 0));
    }
    assert_int_equal(step_rescue(), RP_KEEP_DAMAGED);
    assert_int_equal(rp_keep_saved_step(keep), 0);
    rp_keep_abandon_rescue(keep);
    assert_false(rp_keep_wants_copies(keep));
    close_keep();
}

static void memory_for_copies_is_checked(void **state) {
    (void)state;
    open_keep("ring.copy_steps=2");
    for (uint32_t k = 0; k < BOARDS; k++) {
        ring.board[k].memory.copy_bytes = 1 << 20;
        ring.board[k].memory.limit_bytes = 4 << 20; /* two copies of each of both */
    }
    expect_ok(rp_keep_check_memory(keep, plan));
    ring.board[1].memory.parcel_bytes = 1;
    expect_err(rp_keep_check_memory(keep, plan), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), ring.board[1].name));
    close_keep();
    open_keep(NULL); /* without copies nothing is asked for */
    ring.board[0].memory.limit_bytes = 1;
    expect_ok(rp_keep_check_memory(keep, plan));
    close_keep();
}

static void a_fixed_pace_is_of_the_run_file(void **state) {
    (void)state;
    open_keep("ring.copy_steps=3");
    expect_ok(rp_keep_choose_copy_pace(keep, 0, RP_NS_PER_S));
    assert_int_equal(rp_keep_next_copies(keep, 0), 3);
    assert_int_equal(rp_keep_next_copies(keep, 3), 6);
    assert_true(rp_keep_copies_are_due(keep, 6) && !rp_keep_copies_are_due(keep, 5));
    close_keep();
    open_keep(NULL);
    assert_true(rp_keep_next_copies(keep, 3) == UINT64_MAX);
    assert_false(rp_keep_copies_are_due(keep, 4));
    close_keep();
}

/* Copies at `step` that need so many milliseconds to arrive, and delay the next step by as many. */
static void make_copies(uint64_t step, uint32_t ms) {
    const int64_t usual_ns = 10 * RP_NS_PER_MS;
    rp_keep_note_step(keep, usual_ns);
    begin_copy(step);
    pass_ms(ms);
    say_all(step);
    pass_ms(10);
    rp_keep_note_step(keep, usual_ns);
}

static void a_free_pace_follows_what_copies_cost(void **state) {
    (void)state;
    const int64_t usual_ns = 10 * RP_NS_PER_MS;
    open_keep("ring.copy_steps=auto");
    expect_ok(rp_keep_choose_copy_pace(keep, 0, usual_ns));
    const uint64_t at_first = rp_keep_next_copies(keep, 0);
    assert_int_equal(at_first, run.safety.copy_steps);
    make_copies(at_first, 100);
    expect_ok(rp_keep_choose_copy_pace(keep, at_first, usual_ns));
    const uint64_t second = rp_keep_next_copies(keep, at_first);
    assert_int_equal(second, 2 * at_first); /* one cost alone says too little */
    make_copies(second, 200);
    expect_ok(rp_keep_choose_copy_pace(keep, second, usual_ns));
    /* The smaller cost: 100 ms until they had arrived and 100 ms of pause, each 50 times in a
     * pace of steps of 10 ms. */
    const uint64_t third = rp_keep_next_copies(keep, second);
    assert_int_equal(third - second, 1000);
    assert_true(rp_keep_copies_are_due(keep, third) && !rp_keep_copies_are_due(keep, third - 1));
    expect_events(1, .kind = RP_EVENT_COPY_PACE, .every = 1000, .step_s = 0.01, .copy_s = 0.2);
    rp_keep_forget_copies(keep); /* the pace stays, and counts from the newest checkpoint: none */
    assert_int_equal(rp_keep_next_copies(keep, second), 1000);
    assert_int_equal(rp_keep_next_copies(keep, 1200), 1201);
    close_keep();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies_are_whole_when_all_have_said_so, setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_copies_stay_until_the_next_are_whole, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(copies_become_a_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_become_a_checkpoint_of_a_smaller_ring, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(copies_that_are_not_finite_are_of_no_use, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_for_copies_is_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fixed_pace_is_of_the_run_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_free_pace_follows_what_copies_cost, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
