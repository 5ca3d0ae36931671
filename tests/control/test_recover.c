/* The way back to work: a run that loses a board goes on by itself, from its newest checkpoint, and
 * counts every step once. Boards follow a script, time is stepped. */
#include "boards.h"
#include "train/train_own.h"

#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>

static test_ring ring; /* large for a stack */
static const rp_Frame broken = {.which_body = RP_KIND_FAULT,
                                .body.fault = {.err = RP_ERR_FAULT, .text = "broken"}};

/* `set`: one more assignment, or NULL. A later assignment of a key counts. */
static void open_ring(const char *set) {
    ring_prepare(&ring, "out");
    ring_set(&ring, "ring.wait=20");
    if (set) {
        ring_set(&ring, set);
    }
    ring_open(&ring);
}

static json_t *read_summary(void) {
    json_t *summary = json_load_file(in_folder("out/summary.json"), 0, NULL);
    assert_non_null(summary);
    return summary;
}

static json_int_t ledger_of(const json_t *summary, const char *key) {
    return json_integer_value(json_object_get(json_object_get(summary, "ledger"), key));
}

/* The log's lines: every step once and in order; events by name. */
static void expect_log(uint64_t steps, uint32_t faults, uint32_t recovered) {
    char *text = strdup(slurp("out/log.jsonl", NULL));
    char *rest = text;
    uint64_t next = 0;
    uint32_t fault_lines = 0;
    uint32_t recovered_lines = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *record = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(record, "event"));
        if (!event) {
            next++;
            assert_int_equal(json_integer_value(json_object_get(record, "step")), next);
        } else {
            fault_lines += strcmp(event, "fault") == 0;
            recovered_lines += strcmp(event, "recovered") == 0;
        }
        json_decref(record);
    }
    free(text);
    assert_int_equal(next, steps);
    assert_int_equal(fault_lines, faults);
    assert_int_equal(recovered_lines, recovered);
}

/* A run that was disturbed `count` times and has finished all the same. */
static void expect_finished(uint32_t count) {
    expect_ok(ring_end(&ring, 400));
    json_t *summary = read_summary();
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "finished");
    assert_int_equal(json_array_size(json_object_get(summary, "recovery")), count);
    assert_int_equal(ledger_of(summary, "microbatches"), 2 * TRAIN / 8);
    assert_int_equal(ledger_of(summary, "samples"), 2 * TRAIN);
    assert_int_equal(ledger_of(summary, "lost") + ledger_of(summary, "repeated"), 0);
    json_decref(summary);
    expect_log(2 * TRAIN / BATCH, count, count);
    ring_close(&ring);
}

/* ---- every state ----------------------------------------------------------------------------- */

static const rp_control_state_id states[] = {
    RP_CONTROL_HELLO, RP_CONTROL_PROFILE,  RP_CONTROL_ASSIGN,
    RP_CONTROL_TRAIN, RP_CONTROL_EVALUATE, RP_CONTROL_SAVE,
};
enum { STATES = sizeof states / sizeof *states };

static void a_fault_in_any_state_is_gone_back_from(void **state) {
    (void)state;
    for (size_t i = 0; i < STATES; i++) {
        open_ring(NULL);
        assert_true(ring_reach(&ring, states[i]));
        board_send(&ring.board[1], broken, NULL);
        expect_finished(1);
        assert_int_equal(ring.restarts, 1);
        assert_false(ring.hung[0] || ring.hung[1]);
    }
}

static void a_child_that_ends_is_started_again(void **state) {
    (void)state;
    for (size_t i = 0; i < STATES; i++) {
        open_ring(NULL);
        assert_true(ring_reach(&ring, states[i]));
        ring.lost = RP_ERR_FAULT;
        rp_controller_child_ended(ring.c);
        ring.lost = RP_OK;
        expect_finished(1);
        assert_int_equal(ring.restarts, 1);
    }
}

/* Other schedules: the prediction's gains and the average begin anew, too. */
static void other_schedules_go_back(void **state) {
    (void)state;
    static const char *const schedules[] = {
        "schedule=1f1b", "schedule={kind: pipeoptim, horizon: measured}", "schedule=ea-pipe",
        "schedule={kind: pipedream, advance: auto}"};
    for (size_t i = 0; i < 4; i++) {
        open_ring(schedules[i]);
        assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
        board_send(&ring.board[0], broken, NULL);
        expect_finished(1);
    }
}

/* ---- copies of neighbours -------------------------------------------------------------------- */

/* Three of eight steps, two of which the boards have copies of; nothing was saved. The next one
 * ends before a fault is heard. */
static void reach_step_3(void) {
    open_ring("ring.copy_steps=2");
    while (ring.c->machine.state != RP_CONTROL_TRAIN || ring.c->position.step < 3) {
        ring_step(&ring, RP_NS_PER_MS);
    }
    assert_int_equal(ring.board[0].orders[RP_KIND_SAVE], 0);
    assert_int_equal(ring.board[0].orders[RP_KIND_COPY], 1);
    assert_int_equal(ring.board[0].copy_step, 2);
}

static json_int_t done_again(void) {
    json_t *summary = read_summary();
    const json_t *told = json_array_get(json_object_get(summary, "recovery"), 0);
    const json_int_t count = json_integer_value(json_object_get(told, "replay_microbatches"));
    json_decref(summary);
    return count;
}

/* The run ends, having done `again` microbatches twice, and its log says what became of the copies
 * of step 2. */
static void expect_again(json_int_t again, rp_event_kind kind) {
    expect_ok(ring_end(&ring, 400));
    assert_int_equal(done_again(), again);
    expect_events(1, .kind = kind, .copy_step = 2);
    expect_log(8, 1, 1);
    ring_close(&ring);
}

/* A board that begins anew has no copy of its own; the other one has both. */
static void copies_are_gone_back_to(void **state) {
    (void)state;
    reach_step_3();
    ring.board[1].copy_step = 0;
    board_send(&ring.board[1], broken, NULL);
    ring_step(&ring, RP_NS_PER_MS);
    assert_int_equal(ring.c->position.step, 2);
    assert_true(ring_reach(&ring, RP_CONTROL_RESCUE));
    expect_again(4, RP_EVENT_COPY_RESTORED);
    assert_int_equal(ring.board[0].orders[RP_KIND_FETCH], 2);
    assert_int_equal(ring.board[1].orders[RP_KIND_FETCH], 0);
}

/* Three at first, behind 8 steps each; then, as they cost some of these short steps, seldom. */
static void copies_as_often_as_they_may_cost(void **state) {
    (void)state;
    uint64_t at[16] = {0}; /* steps, of the first ones */
    uint32_t copies = 0;
    unsigned every = 0;
    ring_prepare(&ring, "out");
    ring_set(&ring, "ring.copy_steps=auto");
    ring_set(&ring, "data.train=9600"); /* 600 steps, and nothing is saved on the way */
    ring_set(&ring, "train.epochs=1");
    ring_open(&ring);
    while (ring.c->machine.state != RP_CONTROL_CLOSE) {
        ring_step(&ring, RP_NS_PER_MS);
        if (copies < 16 && ring.board[0].copy_step != at[copies]) {
            at[++copies % 16] = ring.board[0].copy_step;
        }
    }
    expect_ok(ring_end(&ring, 400));
    const char *said = strstr(slurp("out/log.jsonl", NULL), "\"kind\":\"copy_pace\"");
    assert_non_null(said);
    assert_int_equal(sscanf(strstr(said, "\"every\":"), "\"every\":%u,", &every), 1);
    assert_in_range(every, 16, 400);
    assert_in_range(copies, 4, 3 + 600 / 16);
    for (uint32_t i = 1; i <= copies && i < 16; i++) {
        assert_true(i > 3 ? at[i] >= at[i - 1] + 16 : at[i] == 8 * i);
    }
    ring_close(&ring);
}

/* Both have begun anew. */
static void copies_that_nobody_has(void **state) {
    (void)state;
    reach_step_3();
    ring.board[0].copy_step = ring.board[1].copy_step = 0;
    board_send(&ring.board[1], broken, NULL);
    expect_again(8, RP_EVENT_COPY_MISSING);
}

static void copies_that_are_not_finite(void **state) {
    (void)state;
    reach_step_3();
    ring.diverged = true;
    board_send(&ring.board[1], broken, NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_RESCUE));
    assert_true(ring_reach(&ring, RP_CONTROL_HELLO));
    ring.diverged = false;
    assert_int_equal(ring.c->position.step, 0);
    expect_again(8, RP_EVENT_COPY_NOT_FINITE);
}

/* What the boards have is not looked for twice. */
static void a_fault_while_copies_are_made_or_fetched(void **state) {
    (void)state;
    open_ring("ring.copy_steps=2");
    assert_true(ring_reach(&ring, RP_CONTROL_COPY));
    board_send(&ring.board[1], broken, NULL);
    expect_finished(1);
    reach_step_3();
    board_send(&ring.board[1], broken, NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_RESCUE));
    board_send(&ring.board[1], broken, NULL);
    ring_step(&ring, RP_NS_PER_MS);
    assert_int_equal(ring.c->position.step, 0);
    expect_ok(ring_end(&ring, 400));
    assert_int_equal(done_again(), 8);
    ring_close(&ring);
}

/* On the same way back, behind the checkpoint that came of them. */
static void a_fault_when_copies_have_become_a_checkpoint(void **state) {
    (void)state;
    reach_step_3();
    board_send(&ring.board[1], broken, NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_RESCUE));
    assert_true(ring_reach(&ring, RP_CONTROL_ASSIGN));
    board_send(&ring.board[0], broken, NULL);
    ring_step(&ring, RP_NS_PER_MS);
    assert_int_equal(ring.c->position.step, 2);
    expect_ok(ring_end(&ring, 400));
    assert_int_equal(done_again(), 4);
    assert_int_equal(ring.board[0].orders[RP_KIND_FETCH] + ring.board[1].orders[RP_KIND_FETCH], 2);
    ring_close(&ring);
}

/* Where a checkpoint is due there are no copies; a newer one makes older copies useless. */
static void a_newer_checkpoint_counts(void **state) {
    (void)state;
    open_ring("ring.copy_steps=2");
    assert_true(ring_reach(&ring, RP_CONTROL_EVALUATE)); /* 4 of 8 steps are saved */
    assert_int_equal(ring.board[0].orders[RP_KIND_COPY], 1);
    board_send(&ring.board[1], broken, NULL);
    ring_step(&ring, RP_NS_PER_MS);
    assert_int_equal(ring.c->position.step, 4);
    expect_finished(1);
    assert_int_equal(ring.board[0].orders[RP_KIND_FETCH], 0);
}

/* Behind a checkpoint: what was trained since is done again, and counted once. */
static void steps_behind_the_checkpoint_are_done_again(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_EVALUATE)); /* 4 of 8 steps are saved */
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring_step(&ring, RP_NS_PER_MS);
    ring_step(&ring, RP_NS_PER_MS);
    ring_step(&ring, RP_NS_PER_MS);
    assert_int_equal(ring.c->position.step, 6);
    board_send(&ring.board[0], broken, NULL);
    ring_step(&ring, RP_NS_PER_MS);
    assert_int_equal(ring.c->position.step, 4);
    expect_ok(ring_end(&ring, 400));
    assert_int_equal(ring.board[0].orders[RP_KIND_START], 4); /* one checkpoint came sooner */
    json_t *summary = read_summary();
    const json_t *told = json_array_get(json_object_get(summary, "recovery"), 0);
    assert_int_equal(json_integer_value(json_object_get(told, "board")), 0);
    assert_int_equal(json_integer_value(json_object_get(told, "replay_microbatches")), 4);
    json_decref(summary);
    expect_log(8, 1, 1);
    ring_close(&ring);
}

/* ---- boards that are away -------------------------------------------------------------------- */

/* Silent for 12 s, which is noticed after 10, and back. */
static void a_board_that_was_out_of_reach(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.deaf = true;
    for (uint32_t i = 0; i < 12; i++) {
        ring_step(&ring, RP_NS_PER_S);
    }
    assert_int_equal(ring.c->machine.state, RP_CONTROL_HELLO);
    assert_true(ring.hung[0] && ring.hung[1]);
    ring.deaf = false;
    expect_finished(1);
}

/* A host that was stopped has heard nobody meanwhile: that is no silence of the boards. */
static void a_host_that_slept_misses_nobody(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.clock.stepped_ns += 25 * RP_NS_PER_S;
    expect_finished(0);
    assert_int_equal(ring.restarts, 0);

    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.mute = RP_KIND_START;
    ring.clock.stepped_ns += 25 * RP_NS_PER_S;
    ring_step(&ring, RP_NS_PER_S);
    ring.deaf = true; /* they fall silent behind its sleep */
    for (uint32_t i = 0; i < 9; i++) {
        ring_step(&ring, RP_NS_PER_S);
    }
    assert_int_equal(ring.c->machine.state, RP_CONTROL_TRAIN);
    ring_step(&ring, RP_NS_PER_S);
    ring_step(&ring, RP_NS_PER_S);
    ring_step(&ring, RP_NS_PER_S);
    assert_int_equal(ring.c->machine.state, RP_CONTROL_HELLO);
    ring_close(&ring);
}

/* One that stays away: nobody waits longer than ring.wait, and the reason of it all is said. */
static void a_board_that_stays_away(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    board_send(&ring.board[1], broken, NULL);
    ring_step_boards(&ring, 0);
    ring_step_controller(&ring);
    assert_int_equal(ring.c->machine.state, RP_CONTROL_HELLO);
    ring.deaf = true;
    const int64_t begin_ns = rp_clock_now_ns(&ring.clock);
    for (uint32_t i = 0; i < 300 && ring.c->machine.state < RP_CONTROL_CLOSE; i++) {
        ring_step(&ring, RP_NS_PER_S / 10);
    }
    assert_in_range(rp_clock_now_ns(&ring.clock) - begin_ns, 20 * RP_NS_PER_S, 21 * RP_NS_PER_S);
    expect_err(ring_end(&ring, 100), RP_ERR_TIMEOUT);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    assert_non_null(strstr(ring.fault.text, "no hello within 20 s (ring.wait)"));
    json_t *summary = read_summary();
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "failed");
    assert_non_null(strstr(json_string_value(json_object_get(summary, "note")), "board 1: broken"));
    json_decref(summary);
    ring_close(&ring);
}

/* Boards of this machine that do not come up again. */
static void agents_that_do_not_start_again(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.up = false;
    board_send(&ring.board[1], broken, NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_RESTART));
    expect_err(ring_end(&ring, 1000), RP_ERR_TIMEOUT);
    assert_non_null(strstr(ring.fault.text, "the agents did not come up within 300 s"));
    ring_close(&ring);
}

static void an_interrupt_ends_the_waiting(void **state) {
    (void)state;
    for (uint32_t up = 0; up < 2; up++) {
        open_ring(NULL);
        assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
        board_send(&ring.board[1], broken, NULL);
        ring.up = up != 0;
        assert_true(ring_reach(&ring, up ? RP_CONTROL_HELLO : RP_CONTROL_RESTART));
        ring.deaf = true;
        rp_controller_interrupt(ring.c);
        expect_err(ring_end(&ring, 100), RP_ERR_INTERRUPTED);
        ring_close(&ring);
    }
}

/* ---- what is not gone back from -------------------------------------------------------------- */

static void what_comes_again_stops_the_run(void **state) {
    (void)state;
    static const struct {
        rp_err err;
        rp_control_state_id state;
        bool stops;
    } cases[] = {
        {RP_ERR_DEVICE, RP_CONTROL_ASSIGN, true}, {RP_ERR_DEVICE, RP_CONTROL_TRAIN, false},
        {RP_ERR_MEMORY, RP_CONTROL_ASSIGN, true}, {RP_ERR_MEMORY, RP_CONTROL_TRAIN, false},
        {RP_ERR_PEER, RP_CONTROL_TRAIN, true},    {RP_ERR_REFUSED, RP_CONTROL_TRAIN, true},
        {RP_ERR_USAGE, RP_CONTROL_TRAIN, true},   {RP_ERR_TIMEOUT, RP_CONTROL_TRAIN, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_Frame frame = {.which_body = RP_KIND_FAULT,
                                .body.fault = {.err = (uint32_t)cases[i].err, .text = "broken"}};
        open_ring(NULL);
        assert_true(ring_reach(&ring, cases[i].state));
        board_send(&ring.board[1], frame, NULL);
        if (cases[i].stops) {
            expect_err(ring_end(&ring, 400),
                       cases[i].err == RP_ERR_USAGE ? RP_ERR_FAULT : cases[i].err);
            ring_close(&ring);
        } else {
            expect_finished(1);
        }
    }
}

/* A board fails each time that the ring is at work, for so long. How often that was. */
static uint32_t break_for(int64_t time_ns) {
    uint32_t tries = 0;
    const int64_t until_ns = rp_clock_now_ns(&ring.clock) + time_ns;
    while (rp_clock_now_ns(&ring.clock) < until_ns && ring.c->machine.state < RP_CONTROL_CLOSE) {
        if (ring.c->machine.state == RP_CONTROL_TRAIN) {
            board_send(&ring.board[1], broken, NULL);
            tries++;
        }
        ring_step(&ring, 10 * RP_NS_PER_MS);
    }
    return tries;
}

/* Every try meets the same fault before there is a new checkpoint. */
static void tries_have_an_end(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    assert_int_equal(break_for(29 * RP_NS_PER_S), 7 + 1); /* the last one after 30 s */
    assert_int_equal(break_for(2 * RP_NS_PER_S), 1);
    expect_err(ring_end(&ring, 10), RP_ERR_FAULT);
    expect_log(1, 8 + 1, 8); /* a step that came with the last fault */
    json_t *summary = read_summary();
    assert_non_null(strstr(json_string_value(json_object_get(summary, "note")),
                           "board 1: broken; the run does not go back once more: "));
    json_decref(summary);
    ring_close(&ring);
}

/* Fewer faults cost no time; as many as end the run would be over within a second. */
static void faults_that_come_close_together_pass(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    assert_int_equal(break_for(RP_NS_PER_S), 4);
    const uint32_t more = break_for(20 * RP_NS_PER_S);
    assert_in_range(more, 1, 4);
    expect_ok(ring_end(&ring, 40 * 1000));
    expect_log(8, 4 + more, 4 + more);
    ring_close(&ring);
}

/* A fault after every step or two, which is less than a checkpoint's steps: they come sooner. */
static void frequent_faults_do_not_stop_it(void **state) {
    (void)state;
    open_ring(NULL);
    uint64_t farthest = 0;
    uint32_t faults = 0;
    while (farthest < 7 && faults < 20) {
        assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
        const uint64_t first = ring.c->position.step;
        for (uint32_t i = 0; i < 10 && ring.c->position.step == first; i++) {
            ring_step(&ring, RP_NS_PER_MS);
        }
        farthest = ring.c->position.step;
        if (farthest < ring.c->train->segment_end) {
            board_send(&ring.board[1], broken, NULL);
            ring_step(&ring, RP_NS_PER_MS);
            faults++;
        }
    }
    assert_in_range(faults, 4, 19);
    expect_ok(ring_end(&ring, 400));
    expect_log(8, faults, faults);
    ring_close(&ring);
}

/* A loss that is not finite is not mended by a new try. */
static void a_run_that_diverged_stops(void **state) {
    (void)state;
    open_ring("schedule={kind: pipedream, advance: auto}");
    ring.diverged = true;
    assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
    ring.round_ns = SLOW_NS; /* new stages could not be filled */
    expect_err(ring_end(&ring, 400), RP_ERR_FAULT);
    assert_non_null(strstr(ring.fault.text, "is not finite"));
    assert_null(strstr(ring.trail, "restart"));
    ring_close(&ring);
}

static void without_a_wait_nothing_is_tried(void **state) {
    (void)state;
    open_ring("ring.wait=0");
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    board_send(&ring.board[1], broken, NULL);
    expect_err(ring_end(&ring, 100), RP_ERR_FAULT);
    assert_int_equal(ring.restarts, 0);
    ring_close(&ring);
}

/* ---- a full disk ----------------------------------------------------------------------------- */

/* No file grows meanwhile. */
static void step_on_full_disk(uint32_t seconds) {
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    for (uint32_t i = 0; i < seconds && !rp_controller_has_ended(ring.c); i++) {
        ring_step(&ring, RP_NS_PER_S);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* Lines of steps may be missing in the log; all else is as ever. */
static void expect_all_trained(uint32_t recoveries) {
    expect_ok(ring_end(&ring, 400));
    json_t *summary = read_summary();
    assert_string_equal(json_string_value(json_object_get(summary, "status")), "finished");
    assert_int_equal(json_array_size(json_object_get(summary, "recovery")), recoveries);
    assert_int_equal(ledger_of(summary, "samples"), 2 * TRAIN);
    assert_int_equal(ledger_of(summary, "lost") + ledger_of(summary, "repeated"), 0);
    json_decref(summary);
    assert_int_equal(access(in_folder("out/weights.safetensors"), F_OK), 0);
    expect_events(1, .kind = RP_EVENT_SAVED);
    ring_close(&ring);
}

static void a_disk_that_is_full_for_a_while_stops_no_run(void **state) {
    (void)state;
    static const struct {
        const char *set;
        rp_control_state_id at;
    } cases[] = {
        {"schedule=gpipe", RP_CONTROL_SAVE},
        {"train.checkpoint_steps=1", RP_CONTROL_TRAIN},
        {"checkpoint={best: loss}", RP_CONTROL_EVALUATE},
        {"schedule=pipedream", RP_CONTROL_SAVE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_ring(cases[i].set);
        assert_true(ring_reach(&ring, cases[i].at));
        step_on_full_disk(12);
        expect_all_trained(0);
    }
}

/* Training goes on from a pause that could not be saved. */
static void training_goes_on_without_a_checkpoint(void **state) {
    (void)state;
    open_ring("train.checkpoint_steps=1");
    assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
    const uint64_t step = ring.c->position.step;
    step_on_full_disk(12);
    assert_true(ring.c->position.step > step + 1);
    assert_int_equal(rp_keep_saved_step(ring.c->keep), 0);
    expect_all_trained(0);
}

static void a_board_that_is_lost_meanwhile_is_waited_for(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    board_send(&ring.board[1], broken, NULL);
    step_on_full_disk(8);
    assert_int_equal(ring.c->machine.state, RP_CONTROL_RECOVER);
    expect_all_trained(1);
}

static void copies_wait_for_the_disk(void **state) {
    (void)state;
    reach_step_3();
    board_send(&ring.board[1], broken, NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_RESCUE));
    step_on_full_disk(5);
    assert_int_equal(ring.c->machine.state, RP_CONTROL_RESCUE);
    expect_all_trained(1);
}

/* ring.wait is 20. */
static void a_disk_that_stays_full_stops_the_run(void **state) {
    (void)state;
    static const char *const waits[] = {"ring.wait=20", "ring.wait=0"};
    for (size_t i = 0; i < 2; i++) {
        open_ring(waits[i]);
        assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
        const int64_t begin_ns = rp_clock_now_ns(&ring.clock);
        step_on_full_disk(400);
        const int64_t waited_ns = rp_clock_now_ns(&ring.clock) - begin_ns;
        assert_true(i == 0 ? waited_ns >= 20 * RP_NS_PER_S : waited_ns < 10 * RP_NS_PER_S);
        assert_non_null(strstr(ring.fault.text, "out/"));
        assert_non_null(strstr(ring.fault.text, "File too large"));
        expect_err(ring_end(&ring, 10), RP_ERR_FAULT);
        ring_close(&ring);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_fault_in_any_state_is_gone_back_from, setup, teardown),
        cmocka_unit_test_setup_teardown(a_child_that_ends_is_started_again, setup, teardown),
        cmocka_unit_test_setup_teardown(other_schedules_go_back, setup, teardown),
        cmocka_unit_test_setup_teardown(steps_behind_the_checkpoint_are_done_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(copies_are_gone_back_to, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_as_often_as_they_may_cost, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_that_nobody_has, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_that_are_not_finite, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fault_while_copies_are_made_or_fetched, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fault_when_copies_have_become_a_checkpoint, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_newer_checkpoint_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_was_out_of_reach, setup, teardown),
        cmocka_unit_test_setup_teardown(a_host_that_slept_misses_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_stays_away, setup, teardown),
        cmocka_unit_test_setup_teardown(agents_that_do_not_start_again, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interrupt_ends_the_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(what_comes_again_stops_the_run, setup, teardown),
        cmocka_unit_test_setup_teardown(tries_have_an_end, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_that_come_close_together_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(frequent_faults_do_not_stop_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_diverged_stops, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_wait_nothing_is_tried, setup, teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_is_full_for_a_while_stops_no_run, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(training_goes_on_without_a_checkpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_is_lost_meanwhile_is_waited_for, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(copies_wait_for_the_disk, setup, teardown),
        cmocka_unit_test_setup_teardown(a_disk_that_stays_full_stops_the_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
