/* A controller that has died, and another one that takes its boards over: from what they hold when
 * that is one state, from the newest checkpoint when it is not. Boards follow a script. */
#include "boards.h"

#include <jansson.h>

enum { STEPS = 2 * TRAIN / BATCH, EPOCH = TRAIN / BATCH };

static test_ring ring; /* large for a stack */

static void open_ring(const char *schedule) {
    ring_prepare(&ring, "out");
    ring_set_roster(&ring, "wait: 20");
    ring_set(&ring, schedule);
    ring_open(&ring);
}

/* No goodbye is said: to the boards it is as if it had been killed. */
static void kill_controller(void) {
    expect_err(rp_controller_close(&ring.c), RP_ERR_INTERRUPTED);
    ring.options.resume = ring.out;
    ring.options.out = NULL;
}

/* `steps` of a segment are done, and nothing of them is in a checkpoint. */
static void die_behind(const char *schedule, uint64_t steps) {
    open_ring(schedule);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    for (uint32_t i = 0; i < 100 && ring.c->position.step < steps; i++) {
        ring_step(&ring, RP_NS_PER_MS);
    }
    assert_int_equal(ring.c->position.step, steps);
    kill_controller();
}

/* The log's lines: every step once and in order, with the loss that the boards said. */
static void expect_steps(uint64_t steps) {
    char *text = strdup(slurp("out/log.jsonl", NULL));
    char *rest = text;
    uint64_t next = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *record = json_loads(line, 0, NULL);
        if (!json_object_get(record, "event")) {
            next++;
            assert_int_equal(json_integer_value(json_object_get(record, "step")), next);
            assert_true(json_number_value(json_object_get(record, "loss")) == 1.0);
        }
        json_decref(record);
    }
    free(text);
    assert_int_equal(next, steps);
}

static void expect_finished(void) {
    expect_ok(ring_end(&ring, 400));
    json_t *summary = json_load_file(in_folder("out/summary.json"), 0, NULL);
    const json_t *ledger = json_object_get(summary, "ledger");
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "finished");
    assert_int_equal(json_integer_value(json_object_get(ledger, "samples")), 2 * TRAIN);
    json_decref(summary);
    expect_steps(STEPS);
    ring_close(&ring);
}

static void resume_until(rp_control_state_id state) {
    ring_open(&ring);
    assert_true(ring_reach(&ring, RP_CONTROL_ADOPT));
    for (uint32_t i = 0; i < 3000 && ring.c->machine.state != state; i++) {
        ring_step(&ring, RP_NS_PER_S / 10);
        assert_false(rp_controller_has_ended(ring.c));
    }
    assert_int_equal(ring.c->machine.state, state);
}

/* The new controller leaves `adopt`, and trains from there. */
static uint64_t resume(void) {
    resume_until(RP_CONTROL_TRAIN);
    return ring.c->run->step_first;
}

static void expect_not_used(const char *why) {
    assert_int_equal(resume(), 0);
    expect_events(1, .kind = RP_EVENT_ADOPTED_NOT, .why = why);
    expect_finished();
}

/* ---- one state ------------------------------------------------------------------------------- */

static void what_all_boards_hold_is_gone_on_from(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 3);
    for (uint32_t k = 0; k < BOARDS; k++) {
        ring.board[k].held_step = 3;
    }
    assert_int_equal(resume(), 3);
    expect_events(1, .kind = RP_EVENT_ADOPTED, .step = 3);
    expect_finished();
}

/* It has not heard of the last step that they have done. */
static void steps_that_no_controller_heard_of_count(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 2);
    for (uint32_t k = 0; k < BOARDS; k++) {
        ring.board[k].held_step = 3;
    }
    assert_int_equal(resume(), 3);
    expect_finished();
}

/* It was killed while it told the boards what it had decided on a step. */
static void a_decision_is_passed_on(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 3);
    ring.board[0].held_step = 2;
    ring.board[0].held_waits = true;
    ring.board[1].held_step = 3;
    assert_int_equal(resume(), 3);
    assert_false(ring.board[0].held_waits);
    expect_finished();
}

/* At a pause a schedule that does not flush is held, too. */
static void a_pause_is_held_of_any_schedule(void **state) {
    (void)state;
    die_behind("schedule=pipedream", EPOCH - 1);
    for (uint32_t k = 0; k < BOARDS; k++) {
        ring.board[k].held_step = EPOCH;
        ring.board[k].held_paused = true;
    }
    assert_int_equal(resume(), EPOCH);
    expect_finished();
}

/* ---- none ------------------------------------------------------------------------------------ */

static void boards_that_hold_nothing_begin_as_ever(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 3);
    assert_int_equal(resume(), 0);
    assert_null(strstr(slurp("out/log.jsonl", NULL), "\"adopted\""));
    expect_finished();
}

static void one_board_is_not_enough(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 3);
    ring.board[0].held_step = 3;
    expect_not_used("not every board holds its part");
}

static void different_steps_are_no_state(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 3);
    ring.board[0].held_step = 3;
    ring.board[1].held_step = 2;
    expect_not_used("board two has done 2 steps, board one 3");
}

static void other_samples_are_no_state(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 3);
    ring.board[0].held_step = ring.board[1].held_step = 3;
    ring.skew = SKEW_LOST;
    ring.skewed_step = 1;
    resume_until(RP_CONTROL_HELLO);
    ring.skew = SKEW_NONE;
    expect_events(1, .kind = RP_EVENT_ADOPTED_NOT, .why = "its ledger of steps 1 to 3 differs");
    expect_finished();
}

static void a_step_that_has_begun_changes_statistics(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 3);
    ring.board[0].held_step = ring.board[1].held_step = 3;
    ring.board[0].held_is_dirty = true;
    expect_not_used("on board one step 4 has begun");
}

static void pipes_that_are_full_are_no_state(void **state) {
    (void)state;
    die_behind("schedule=pipedream", 3);
    ring.board[0].held_step = ring.board[1].held_step = 3;
    expect_not_used("schedule pipedream does not flush");
}

static void boards_that_do_not_come_to_rest_are_left(void **state) {
    (void)state;
    die_behind("schedule=gpipe", 3);
    ring.board[0].held_step = ring.board[1].held_step = 3;
    ring.board[1].held_is_restless = true;
    expect_not_used("board two does not come to rest");
}

/* ---- faults on the way ----------------------------------------------------------------------- */

static void a_board_that_fails_while_it_saves(void **state) {
    (void)state;
    static const rp_Frame broken = {.which_body = RP_KIND_FAULT,
                                    .body.fault = {.err = RP_ERR_FAULT, .text = "broken"}};
    die_behind("schedule=gpipe", 3);
    ring.board[0].held_step = ring.board[1].held_step = 3;
    ring.mute = RP_KIND_SAVE;
    ring_open(&ring);
    assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
    board_send(&ring.board[1], broken, NULL);
    ring_step(&ring, RP_NS_PER_MS);
    ring.mute = RP_KIND_NONE;
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    assert_int_equal(ring.c->run->step_first, 0);
    expect_events(1, .kind = RP_EVENT_ADOPTED_NOT, .why = "board two: broken");
    expect_finished();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_all_boards_hold_is_gone_on_from, setup, teardown),
        cmocka_unit_test_setup_teardown(steps_that_no_controller_heard_of_count, setup, teardown),
        cmocka_unit_test_setup_teardown(a_decision_is_passed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pause_is_held_of_any_schedule, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_that_hold_nothing_begin_as_ever, setup, teardown),
        cmocka_unit_test_setup_teardown(one_board_is_not_enough, setup, teardown),
        cmocka_unit_test_setup_teardown(different_steps_are_no_state, setup, teardown),
        cmocka_unit_test_setup_teardown(other_samples_are_no_state, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_that_has_begun_changes_statistics, setup, teardown),
        cmocka_unit_test_setup_teardown(pipes_that_are_full_are_no_state, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_that_do_not_come_to_rest_are_left, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_fails_while_it_saves, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
