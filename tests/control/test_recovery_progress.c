/* What is noted of a recovery, and which boards are lost on it: without a controller. */
#include "expect.h"

#include "control/fault_remedy.h"
#include "control/recovery_progress.h"
#include "control/stopping.h"

#define SECONDS(s) ((int64_t)(s)*RP_NS_PER_S)

enum { BOARDS = 3 };

static rp_recovery recovery; /* large for a stack */
static rp_runfile run;
static rp_board_state boards[BOARDS];
static rp_ring ring;
static rp_machine machine;

static void prepare(void) {
    memset(&recovery, 0, sizeof recovery);
    memset(&run, 0, sizeof run);
    memset(boards, 0, sizeof boards);
    memset(&ring, 0, sizeof ring);
    memset(&machine, 0, sizeof machine);
    run.method.kind = rp_sched_find("gpipe");
    run.method.chunks = run.method.replicas = 1;
    run.stages = run.boards = BOARDS;
    run.batch = 8;
    run.micro = 2;
    run.steps = 100;
    run.epoch_steps = 100;
    run.data.count[RP_SPLIT_TRAIN] = 800;
    ring.board = boards;
    ring.count = BOARDS;
    machine.wrong = machine.fault.board = RP_NO_BOARD;
}

static void begin(uint32_t board, uint64_t from, uint64_t to, int64_t now_ns) {
    const rp_controller_fault fault = {
        .err = RP_ERR_FAULT, .board = board, .silent_ns = SECONDS(2), .text = "it is lost"};
    rp_recovery_begin(&recovery,
                      &(rp_recovery_order){
                          .run = &run, .fault = &fault, .from = from, .to = to, .now_ns = now_ns});
}

static void faults_on_the_way_belong_to_one_recovery(void **state) {
    (void)state;
    prepare();
    begin(1, 10, 8, SECONDS(100));
    assert_true(recovery.is_on);
    assert_int_equal(recovery.microbatches, 2 * 4);
    assert_int_equal(recovery.not_before_ns, SECONDS(100) + rp_remedy_pause_ns(1));
    begin(2, 8, 5, SECONDS(110));
    assert_int_equal(recovery.fault.board, 1);
    assert_int_equal(recovery.step, 10);
    assert_int_equal(recovery.microbatches, 5 * 4); /* from where the run was at first */
    assert_int_equal(recovery.since_ns, SECONDS(100));
    assert_int_equal(recovery.in_a_row, 1);
    assert_int_equal(recovery.on_the_way, 2);
    assert_int_equal(recovery.not_before_ns, SECONDS(100) + rp_remedy_pause_ns(2));
    assert_int_equal(rp_recovery_ways_before(&recovery), 0);
}

/* A board that was replaced early may be back: it is tried once more, and no third time. */
static void spares_have_a_second_round(void **state) {
    rp_run_event event;
    (void)state;
    prepare();
    begin(0, 6, 4, SECONDS(100));
    recovery.spares_tried = 2;
    assert_false(rp_recovery_try_again(&recovery)); /* each had its whole time */
    assert_int_equal(recovery.spares_tried, 2);
    recovery.hurried = 1;
    assert_true(rp_recovery_try_again(&recovery));
    assert_int_equal(recovery.spares_tried, 1);
    recovery.spares_tried = 2;
    assert_false(rp_recovery_try_again(&recovery));
    recovery.assign_ns = SECONDS(103);
    assert_true(rp_recovery_note_work(&recovery, 4, SECONDS(107), &event));
    assert_true(recovery.hurried == 0 && !recovery.second_round);
}

/* The summary has each way back with its times, up to its limit. */
static void work_ends_a_recovery(void **state) {
    rp_run_event event;
    (void)state;
    prepare();
    recovery.spares_tried = 2;
    assert_false(rp_recovery_note_work(&recovery, 5, SECONDS(1), &event));
    assert_int_equal(recovery.spares_tried, 0);
    assert_int_equal(recovery.done_count, 0); /* there was none */
    for (uint32_t i = 0; i < RP_RECOVERIES_TOLD + 2; i++) {
        begin(i % BOARDS, 6, 4, SECONDS(100));
        recovery.assign_ns = SECONDS(103);
        assert_true(rp_recovery_note_work(&recovery, 4, SECONDS(107), &event));
        assert_false(recovery.is_on);
        assert_int_equal(recovery.in_a_row, i + 1);
        assert_int_equal(rp_recovery_ways_before(&recovery), i + 1);
    }
    assert_int_equal(recovery.done_count, RP_RECOVERIES_TOLD);
    assert_int_equal(recovery.done[1].board, 1);
    assert_true(recovery.done[1].detect_s == 2 && recovery.done[1].replan_s == 3);
    assert_true(recovery.done[1].restore_s == 4);
    assert_int_equal(recovery.done[1].replay_microbatches, 8);
    assert_true(event.kind == RP_EVENT_RECOVERED && event.step == 4 && event.steps == 2);
    assert_true(event.seconds == 7 && event.replan_s == 3 && event.restore_s == 4);
}

static void a_checkpoint_ends_the_row(void **state) {
    (void)state;
    prepare();
    begin(0, 6, 4, SECONDS(1));
    boards[2].facts.microbatches = 12;
    rp_recovery_note_checkpoint(&recovery, &ring);
    assert_int_equal(recovery.in_a_row, 0);
    assert_int_equal(rp_recovery_ways_before(&recovery), 0); /* also while it is on */
    assert_int_equal(boards[2].keep.microbatches_kept, 12);
    assert_int_equal(boards[1].keep.microbatches_kept, 0);
}

/* The time for a port counts from the first fault of this kind on the way. */
static void a_port_has_time_to_become_free(void **state) {
    (void)state;
    prepare();
    assert_false(rp_recovery_had_time_for_port(&recovery, SECONDS(60), SECONDS(1000)));
    begin(1, 6, 4, SECONDS(100));
    assert_false(rp_recovery_had_time_for_port(&recovery, SECONDS(60), SECONDS(1000)));
    rp_recovery_wait_for_port(&recovery, SECONDS(60), SECONDS(100));
    assert_true(recovery.not_before_ns >= SECONDS(100) + rp_remedy_port_pause_ns(SECONDS(60), 0));
    rp_recovery_wait_for_port(&recovery, SECONDS(60), SECONDS(150));
    assert_int_equal(recovery.port_since_ns, SECONDS(100));
    assert_false(rp_recovery_had_time_for_port(&recovery, SECONDS(60), SECONDS(160)));
    assert_true(rp_recovery_had_time_for_port(&recovery, SECONDS(60), SECONDS(160) + 1));
}

static void spares_that_were_tried_are_not_counted(void **state) {
    static rp_roster_entry roster[BOARDS + 2];
    (void)state;
    prepare();
    run.roster = roster;
    run.spares = 2;
    assert_int_equal(rp_recovery_spares(&recovery, &run), 2);
    recovery.spares_tried = 1;
    assert_int_equal(rp_recovery_spares(&recovery, &run), 1);
}

static void boards_are_lost_for_one_reason(void **state) {
    (void)state;
    prepare();
    boards[0].hello = boards[1].hello = true;
    boards[2].silence.why = RP_SILENT_REFUSES;
    run.safety.wait_s = 60;
    rp_lost_boards lost = rp_recovery_lost(&recovery, &machine, &run, SECONDS(1));
    assert_int_equal(rp_lost_count(&lost, &ring), 1);
    assert_true(rp_lost_is(&lost, &ring, 2));
    assert_int_equal(rp_lost_why(&lost, &ring, 2), RP_EVENT_LOST_REFUSES);

    for (int e = 1; e < RP_ERR_COUNT; e++) { /* a port that a board did not get for long */
        for (int s = 0; s < RP_CONTROL_STATES; s++) {
            machine.failed = (rp_control_state_id)s;
            machine.fault.err = (rp_err)e;
            machine.fault.board = 1;
            recovery.is_on = true;
            recovery.ports_lacked = 1;
            recovery.port_since_ns = SECONDS(1);
            lost = rp_recovery_lost(&recovery, &machine, &run, SECONDS(62));
            const bool lacks = rp_remedy_lacks_port(machine.fault.err, machine.failed, true);
            assert_int_equal(rp_lost_is(&lost, &ring, 1), lacks);
            assert_int_equal(rp_lost_count(&lost, &ring), 1 + lacks);
            lost = rp_recovery_lost(&recovery, &machine, &run, SECONDS(61));
            assert_false(rp_lost_is(&lost, &ring, 1));
            machine.fault.board = RP_NO_BOARD; /* this host's disk */
            lost = rp_recovery_lost(&recovery, &machine, &run, SECONDS(62));
            assert_int_equal(rp_lost_count(&lost, &ring), 1);
        }
    }

    machine.wrong = 0; /* then no other board counts */
    lost = rp_recovery_lost(&recovery, &machine, &run, SECONDS(62));
    assert_int_equal(rp_lost_count(&lost, &ring), 1);
    assert_true(rp_lost_is(&lost, &ring, 0));
    assert_int_equal(rp_lost_why(&lost, &ring, 0), RP_EVENT_LOST_WRONG);
    ring.board = NULL; /* no board is known yet */
    assert_int_equal(rp_lost_count(&lost, &ring), 0);
}

static void the_note_says_how_a_board_was_lost(void **state) {
    (void)state;
    prepare();
    machine.fault = (rp_controller_fault){
        .err = RP_ERR_TIMEOUT, .fault_class = RP_FAULT_BOARD, .text = "it has not come"};
    machine.failed = RP_CONTROL_HELLO;
    machine.fault.board = 1;
    const rp_run_event event = rp_stopping_fault(RP_EVENT_FAULT_STOP, &machine, &ring);
    assert_string_equal(event.fault_class, "board");
    assert_string_equal(event.state, "hello");
    assert_string_equal(event.error, "it has not come");
    assert_ptr_equal(event.board, boards[1].name);
    rp_stopping_note_why(&machine, &recovery, 4);
    assert_string_equal(machine.note, "it has not come");
    begin(1, 6, 4, SECONDS(1));
    rp_stopping_note_why(&machine, &recovery, 4);
    assert_string_equal(machine.note,
                        "it has not come; the run had gone back to step 4 after this: it is lost");
    machine.fault.err = RP_ERR_INTERRUPTED;
    rp_stopping_note_why(&machine, &recovery, 4);
    assert_string_equal(machine.note, "it has not come");
    rp_stopping_note_failed(&machine, "the disk is full");
    assert_string_equal(machine.note, "the disk is full (while recovering from: it has not come)");
    const rp_remedy_facts facts = {.in_a_row = 3, .on_the_way = 5};
    rp_stopping_note_not_back(&machine, &facts);
    assert_non_null(strstr(machine.note, "at least 8 faults since its newest checkpoint"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_on_the_way_belong_to_one_recovery),
        cmocka_unit_test(spares_have_a_second_round),
        cmocka_unit_test(work_ends_a_recovery),
        cmocka_unit_test(a_checkpoint_ends_the_row),
        cmocka_unit_test(a_port_has_time_to_become_free),
        cmocka_unit_test(spares_that_were_tried_are_not_counted),
        cmocka_unit_test(boards_are_lost_for_one_reason),
        cmocka_unit_test(the_note_says_how_a_board_was_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
