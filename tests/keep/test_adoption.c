/* Boards that have lost their controller: answers that fit, and those that do not. */
#include "keeping.h"

enum { AT = 4 };

static rp_run_ledger before; /* at the newest checkpoint: step 0 */
static const rp_adopt_facts facts = {.ledger = &before, .end = 16};

static void write_plan(void) {
    char *text;
    expect_ok(rp_plan_text(&arena, plan, &text));
    append("out/plan.json", text, strlen(text));
}

static void open_adoption(void) {
    open_keep_as(NULL, true);
    write_plan();
    assert_false(rp_keep_is_adopting(keep));
    expect_ok(rp_keep_begin_adoption(keep, 0));
    assert_null(rp_keep_adopted_plan(keep));
    expect_ok(rp_keep_read_adopted_plan(keep));
    assert_true(rp_plan_digest(rp_keep_adopted_plan(keep)) == rp_plan_digest(plan));
    expect_ok(rp_keep_ask_boards(keep));
    assert_true(rp_keep_is_adopting(keep) && !rp_keep_saves_adopted(keep));
}

static void end_adoption(void) {
    rp_keep_forget_adoption(keep);
    assert_false(rp_keep_is_adopting(keep));
    close_keep();
}

static void say_hello(uint32_t board, bool holds) {
    const rp_message message = {
        .frame = {.which_body = RP_KIND_HELLO, .body.hello = {.busy = holds}}};
    expect_ok(rp_keep_on_adopted_hello(keep, board, &message));
}

/* What a board says that stands at rest at step AT. */
static rp_Held held_by(uint32_t board, bool stopped) {
    const rp_sched_shape shape = rp_runfile_sched_shape(&run, 0);
    rp_run_ledger due = {0};
    rp_run_ledger_add_steps(&due, &shape, 0, AT);
    return (rp_Held){.step = AT,
                     .fill_step = AT,
                     .plan = rp_plan_digest(plan),
                     .node = board,
                     .ledger = due.digest,
                     .ops = 9,
                     .settled = true,
                     .paused = true,
                     .clean = true,
                     .stopped = stopped};
}

/* With the counts of its only replica, and the losses of all steps. */
static rp_err say_held(uint32_t board, const rp_Held *held) {
    static const double loss = 0.25;
    static uint64_t applied[1] = {AT};
    static uint64_t told[AT][2];
    for (uint32_t i = 0; i < AT; i++) {
        memcpy(&told[i][0], &loss, sizeof loss);
    }
    rp_message message = {.frame = {.which_body = RP_KIND_HELD, .body.held = *held},
                          .part_count = 2};
    message.part[0] = rp_part_of_array(RP_DTYPE_U64, applied, 1);
    message.part[1] = rp_part_of_array(RP_DTYPE_U64, told, (size_t)2 * AT);
    say_hello(board, true);
    return rp_keep_on_held(keep, board, &message);
}

/* All boards answer; the second as `second` has it. */
static void answer(bool stopped, const rp_Held *second) {
    const rp_Held first = held_by(0, stopped);
    expect_ok(say_held(0, &first));
    expect_ok(say_held(1, second));
}

static rp_adoption step(rp_run_event *why) {
    rp_adoption outcome;
    expect_ok(rp_keep_step_adoption(keep, &facts, why, &outcome));
    return outcome;
}

/* Asks and answers until the boards have stopped, or the adoption is off. */
static rp_adoption adopt(rp_Held second, rp_run_event *why) {
    rp_adoption outcome = RP_ADOPTION_WAITS;
    bool stopped = false;
    for (uint32_t i = 0; i < 40 && outcome == RP_ADOPTION_WAITS; i++) {
        second.stopped = stopped;
        answer(stopped, &second);
        pass_ms(250);
        outcome = step(why);
        pass_ms(2);
        stopped = far[0].last[RP_KIND_HELLO].body.hello.hold == 2;
    }
    return outcome;
}

static void boards_at_one_step_are_adopted(void **state) {
    (void)state;
    rp_run_event why;
    rp_adopted adopted;
    double sum;
    uint64_t ignored = 1;
    open_adoption();
    assert_int_equal(step(&why), RP_ADOPTION_WAITS); /* nobody has answered */
    assert_int_equal(rp_keep_adoption_is_late(keep), RP_ERR_TIMEOUT);
    assert_int_equal(adopt(held_by(1, false), &why), RP_ADOPTION_TAKES);
    expect_ok(rp_keep_take_adopted(keep, &before, &adopted));
    assert_true(adopted.step == AT && adopted.fill_step == AT);
    assert_true(adopted.ledger.digest == held_by(0, true).ledger && adopted.ledger.samples == 64);
    assert_int_equal(ring.board[1].train.applied[0], AT);
    assert_true(rp_keep_adopted_loss(keep, AT - 1, &sum, &ignored));
    expect_close(sum, 0.25, 0, 0); /* only the last stage knows it */
    assert_true(ignored == 0);
    assert_false(rp_keep_adopted_loss(keep, AT, &sum, &ignored));
    rp_keep_save_adopted(keep);
    assert_true(rp_keep_saves_adopted(keep));
    save_at(AT, 0.5F);
    expect_ok(rp_keep_end_adoption(keep, NULL, AT));
    expect_events(1, .kind = RP_EVENT_ADOPTED, .step = 4, .checkpoint_step = 0);
    assert_false(rp_keep_is_adopting(keep));
    close_keep();
}

typedef struct {
    rp_event_kind why;
    rp_Held held;
} misfit;

static void answers_that_do_not_fit_are_refused(void **state) {
    (void)state;
    rp_run_event why;
    open_adoption();
    misfit all[] = {{RP_EVENT_HELD_OTHER_PLAN, held_by(1, false)},
                    {RP_EVENT_HELD_OTHER_PLAN, held_by(1, false)},
                    {RP_EVENT_HELD_OTHER_STEP, held_by(1, false)},
                    {RP_EVENT_HELD_OTHER_STEP, held_by(1, false)},
                    {RP_EVENT_HELD_OTHER_LEDGER, held_by(1, false)}};
    end_adoption();
    all[0].held.plan++;
    all[1].held.node = 0;
    all[2].held.step = 3;
    all[3].held.fill_step = 3;
    all[4].held.ledger++;
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++) {
        open_adoption();
        assert_int_equal(adopt(all[i].held, &why), RP_ADOPTION_IS_OFF);
        assert_int_equal(why.kind, all[i].why);
        assert_string_equal(why.board, "1");
        assert_true(i != 2 || (why.board_step == 3 && why.peer_step == 4));
        expect_ok(rp_keep_end_adoption(keep, &why, 0));
        expect_events(1, .kind = RP_EVENT_ADOPTED_NOT, .why = "board 1");
        close_keep();
    }
}

static void a_board_without_rest_is_not_awaited_for_ever(void **state) {
    (void)state;
    rp_run_event why;
    rp_Held held;
    open_adoption();
    held = held_by(1, false);
    for (uint32_t i = 0; i < 3; i++) {
        held.ops++;
        answer(false, &held);
        assert_int_equal(step(&why), RP_ADOPTION_WAITS);
        pass_ms(250);
    }
    assert_int_equal(rp_keep_adoption_is_late(keep), RP_ERR_TIMEOUT);
    pass_s(60);
    held.ops++;
    answer(false, &held);
    assert_int_equal(step(&why), RP_ADOPTION_IS_OFF);
    assert_int_equal(why.kind, RP_EVENT_HELD_RESTLESS);
    end_adoption();
}

/* Whether the newest question to the boards is to stop. */
static bool are_asked_to_stop(void) {
    pass_ms(2);
    return far[0].last[RP_KIND_HELLO].body.hello.hold == 2;
}

/* One answer later than ASK_EVERY_NS, and what follows from it. */
static void expect_wait(bool stopped, const rp_Held *second, bool asks_to_stop) {
    rp_run_event why;
    pass_ms(250);
    answer(stopped, second);
    assert_int_equal(step(&why), RP_ADOPTION_WAITS);
    assert_int_equal(are_asked_to_stop(), asks_to_stop);
}

/* A board may not have read the last words of the controller yet: what does not fit is asked for
 * again for a while. */
static void a_board_that_is_behind_has_time(void **state) {
    (void)state;
    rp_run_event why;
    open_adoption();
    rp_Held second = held_by(1, false);
    second.step--;
    for (uint32_t i = 0; i < 4; i++) {
        expect_wait(false, &second, false);
    }
    assert_int_equal(far[1].orders[RP_KIND_HELLO], 5);
    second = held_by(1, false);
    second.ops++;
    assert_int_equal(adopt(second, &why), RP_ADOPTION_TAKES);
    end_adoption();
}

/* It did something after the answers that looked like rest: all are asked once more from the
 * beginning. */
static void a_board_that_moved_before_it_stopped_is_asked_again(void **state) {
    (void)state;
    rp_run_event why;
    open_adoption();
    rp_Held second = held_by(1, false);
    second.settled = false; /* an op is under way */
    expect_wait(false, &second, false);
    second.settled = true;
    expect_wait(false, &second, false); /* one answer is no rest */
    expect_wait(false, &second, true);
    second.stopped = true;
    second.ops++;
    expect_wait(true, &second, false);
    assert_int_equal(adopt(second, &why), RP_ADOPTION_TAKES);
    end_adoption();
}

static void all_boards_have_to_hold_something(void **state) {
    (void)state;
    rp_run_event why;
    open_adoption();
    say_hello(0, false);
    say_hello(1, false);
    assert_int_equal(step(&why), RP_ADOPTION_IS_OFF);
    assert_int_equal(why.kind, RP_EVENT_NONE);
    const rp_Held first = held_by(0, false);
    expect_ok(say_held(0, &first));
    assert_int_equal(step(&why), RP_ADOPTION_IS_OFF);
    assert_int_equal(why.kind, RP_EVENT_HELD_PARTLY);
    ring.board[1].silence.why = RP_SILENT_REFUSES;
    assert_int_equal(step(&why), RP_ADOPTION_IS_OFF);
    assert_int_equal(why.kind, RP_EVENT_HELD_REFUSED);
    end_adoption();
}

/* Bytes of a board are checked before they are believed. */
static void malformed_answers_are_faults_of_the_board(void **state) {
    (void)state;
    static uint64_t numbers[RP_REPLICAS_MAX + 1];
    rp_run_event why;
    rp_adopted adopted;
    open_adoption();
    rp_message message = {.frame = {.which_body = RP_KIND_HELD, .body.held = held_by(0, false)},
                          .part_count = 1};
    message.part[0] = rp_part_of_array(RP_DTYPE_U64, numbers, RP_REPLICAS_MAX + 1);
    expect_err(rp_keep_on_held(keep, 0, &message), RP_ERR_PEER);
    message.part_count = 2;
    message.part[0] = rp_part_of_array(RP_DTYPE_U64, numbers, 1);
    message.part[1] = rp_part_of_array(RP_DTYPE_U64, numbers, 1); /* half of a step */
    expect_err(rp_keep_on_held(keep, 0, &message), RP_ERR_PEER);
    assert_int_equal(adopt(held_by(1, false), &why), RP_ADOPTION_TAKES);
    message.part_count = 1;
    message.frame.body.held.stopped = true;
    message.part[0] = rp_part_of_array(RP_DTYPE_U64, numbers, 2); /* of too many replicas */
    expect_ok(rp_keep_on_held(keep, 0, &message));
    expect_err(rp_keep_take_adopted(keep, &before, &adopted), RP_ERR_PEER);
    end_adoption();
}

static void boards_of_this_machine_are_never_asked(void **state) {
    (void)state;
    open_keep_as(NULL, true);
    write_plan();
    assert_false(rp_keep_may_adopt(keep, false));
    assert_false(rp_keep_hopes_for_boards(keep));
    rp_keep_hope_for_boards(keep, true);
    assert_true(rp_keep_hopes_for_boards(keep));
    close_keep();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boards_at_one_step_are_adopted, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_that_do_not_fit_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_without_rest_is_not_awaited_for_ever, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_board_that_is_behind_has_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_moved_before_it_stopped_is_asked_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(all_boards_have_to_hold_something, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_answers_are_faults_of_the_board, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_of_this_machine_are_never_asked, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
