/* How a run ends before its time: timeouts, faults and interrupts in every state in which the
 * controller waits, boards without memory, and results that are not finite. */
#include "planning/fit_memory.h"
#include "states.h"

/* ---- time-outs ------------------------------------------------------------------------------- */

typedef struct {
    rp_control_state_id state;
    rp_kind mute; /* that nobody answers */
    const char *text;
} late_case;

static void every_wait_has_an_end(void **state) {
    (void)state;
    static const late_case cases[] = {
        {RP_CONTROL_START, RP_KIND_NONE, "the agents did not come up within 300 s"},
        {RP_CONTROL_HELLO, RP_KIND_HELLO, "no hello within 30 s"},
        {RP_CONTROL_PROFILE, RP_KIND_PROFILE, "no profile within 1800 s"},
        {RP_CONTROL_ASSIGN, RP_KIND_ASSIGN, "no ready within 1800 s"},
        {RP_CONTROL_TRAIN, RP_KIND_START, "no board has reported anything for 900 s"},
        {RP_CONTROL_EVALUATE, RP_KIND_EVALUATE, "no board has reported anything for 900 s"},
        {RP_CONTROL_SAVE, RP_KIND_SAVE,
         "2 boards still have tensors to send, and nothing came for 600 s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_ring(NULL);
        for (uint32_t k = 0; k < BOARDS; k++) { /* boards that do not say what they wait for */
            ring.board[k].features &= ~RP_WIRE_FEATURE_WAITING;
        }
        ring.mute = cases[i].mute;
        ring.up = cases[i].state != RP_CONTROL_START;
        expect_err(ring_end(&ring, 3000), RP_ERR_TIMEOUT);
        assert_int_equal(ring.failed, cases[i].state);
        assert_non_null(strstr(ring.fault.text, cases[i].text));
        assert_non_null(strstr(ring.trail, " recover close ended"));
        ring_close(&ring);
    }
}

/* A large model over a slow link takes its time: pieces that come are progress. */
static void a_slow_save_is_no_fault(void **state) {
    (void)state;
    static const float values[8];
    rp_Frame frame = {.which_body = RP_KIND_TENSOR, .body.tensor = {.name = "fc.bias", .total = 8}};
    open_ring(NULL);
    ring.mute = RP_KIND_SAVE;
    assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
    for (uint32_t i = 0; i < 8; i++) {
        const rp_part part = rp_part_of_array(RP_DTYPE_F32, &values[i], 1);
        frame.body.tensor.first = i;
        for (uint32_t s = 0; s < 100; s++) {
            ring_step(&ring, RP_NS_PER_S);
        }
        board_send(&ring.board[0], frame, &part);
    }
    assert_int_equal(ring.c->machine.state, RP_CONTROL_SAVE);
    const int64_t last_ns = ring.c->ring.now_ns;
    expect_err(ring_end(&ring, 3000), RP_ERR_TIMEOUT);
    assert_non_null(
        strstr(ring.fault.text, "still have tensors to send, and nothing came for 600 s"));
    assert_true(ring.c == NULL && rp_clock_now_ns(&ring.clock) - last_ns > 600 * RP_NS_PER_S);
    ring_close(&ring);
}

/* Boards that do not even answer pings are missed sooner; `plan` waits for just these. */
static void silence_is_a_fault(void **state) {
    (void)state;
    open_ring(auto_run);
    assert_true(ring_reach(&ring, RP_CONTROL_PLAN));
    ring.deaf = true;
    expect_err(ring_end(&ring, 100), RP_ERR_TIMEOUT);
    assert_int_equal(ring.failed, RP_CONTROL_PLAN);
    assert_non_null(strstr(ring.fault.text, "no answer to a ping within 10 s"));
    ring_close(&ring);

    static const rp_control_state_id watched[] = {RP_CONTROL_PROFILE, RP_CONTROL_ASSIGN,
                                                  RP_CONTROL_TRAIN};
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        open_ring(NULL);
        assert_true(ring_reach(&ring, watched[i]));
        ring.deaf = true;
        expect_err(ring_end(&ring, 100), RP_ERR_FAULT);
        assert_int_equal(ring.failed, watched[i]);
        assert_non_null(strstr(ring.fault.text, "has been silent for"));
        assert_true(ring.fault.board == 0 || watched[i] != RP_CONTROL_TRAIN);
        assert_int_equal(ring.fault.fault_class, RP_FAULT_BOARD);
        ring_close(&ring);
    }
}

/* A feed link whose port nobody reaches: before a first packet, and later. Boards that are heard on
 * it may take as long as they like: see `train` above. */
static void a_feed_that_is_cut_is_named(void **state) {
    (void)state;
    for (uint32_t met = 0; met < 2; met++) {
        open_ring(NULL);
        ring.feed_is_cut = !met;
        assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
        ring.mute = RP_KIND_START;
        ring.feed_is_cut = false;
        for (uint32_t i = 0; met && i < 100; i++) {
            ring_step(&ring, RP_NS_PER_S);
        }
        assert_int_equal(ring.c->machine.state, RP_CONTROL_TRAIN);
        ring.feed_is_cut = true;
        const int64_t begin_ns = rp_clock_now_ns(&ring.clock);
        expect_err(ring_end(&ring, 100), RP_ERR_FAULT);
        /* an answer takes a round of 1 s here, which gives more time */
        const int64_t least_ns = met ? RP_LINK_LOST_NS : RP_LINK_MEET_NS;
        assert_in_range(rp_clock_now_ns(&ring.clock) - begin_ns, least_ns,
                        least_ns + 10 * RP_NS_PER_S);
        assert_int_equal(ring.failed, RP_CONTROL_TRAIN);
        assert_non_null(
            strstr(ring.fault.text, "nothing came back over its feed link at tcp://board"));
        assert_int_equal(ring.fault.board, 0);
        assert_int_equal(ring.fault.fault_class, RP_FAULT_BOARD);
        ring_close(&ring);
    }
}

/* ring.wait, and 30 s at least: of boards that do not answer at the start, and of a feed over which
 * no answer ever came. */
static void a_board_that_was_never_heard_has_its_time(void **state) {
    (void)state;
    static const struct {
        const char *setting;
        int64_t least_s;
    } cases[] = {{"ring.wait=0", 30}, {"ring.wait=12", 30}, {"ring.wait=120", 120}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t least_ns = cases[i].least_s * RP_NS_PER_S;
        open_ring(cases[i].setting);
        ring.deaf = true;
        int64_t begin_ns = rp_clock_now_ns(&ring.clock);
        expect_err(ring_end(&ring, 400), RP_ERR_TIMEOUT);
        assert_in_range(rp_clock_now_ns(&ring.clock) - begin_ns, least_ns,
                        least_ns + 10 * RP_NS_PER_S);
        ring_close(&ring);

        open_ring(cases[i].setting);
        ring.feed_is_cut = true;
        assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
        ring.idle = true;
        begin_ns = rp_clock_now_ns(&ring.clock);
        for (uint32_t s = 0; s < 400 && ring.c->machine.state == RP_CONTROL_TRAIN; s++) {
            ring_step(&ring, RP_NS_PER_S);
        }
        assert_in_range(rp_clock_now_ns(&ring.clock) - begin_ns, least_ns,
                        least_ns + 10 * RP_NS_PER_S);
        ring_close(&ring);
    }
}

/* ---- faults and interrupts ------------------------------------------------------------------- */

static void a_fault_ends_every_state(void **state) {
    (void)state;
    const rp_Frame frame = {.which_body = RP_KIND_FAULT,
                            .body.fault = {.err = RP_ERR_DEVICE, .text = "broken"}};
    for (size_t i = 1; i < WAITS; i++) {
        reach_row(i);
        board_send(&ring.board[1], frame, NULL);
        expect_err(ring_end(&ring, 100), RP_ERR_DEVICE);
        assert_string_equal(ring.fault.text, "board 1: broken");
        assert_int_equal(ring.fault.board, 1);
        assert_int_equal(ring.fault.fault_class, RP_FAULT_BOARD);
        assert_int_equal(ring.failed, waits[i].state);
        assert_non_null(strstr(ring.trail, " recover close ended"));
        expect_events(1, .kind = RP_EVENT_FAULT_STOP, .fault_class = "board",
                      .state = rp_control_states[waits[i].state].name, .board = "1",
                      .error = "board 1: broken");
        ring_close(&ring);
    }
}

static void a_child_that_ends_is_a_fault(void **state) {
    (void)state;
    for (size_t i = 0; i < WAITS; i++) {
        reach_row(i);
        rp_controller_child_ended(ring.c); /* some other child of the process */
        ring.lost = RP_ERR_FAULT;
        rp_controller_child_ended(ring.c);
        expect_err(ring_end(&ring, 100), RP_ERR_FAULT);
        assert_string_equal(ring.fault.text, "agent 1 ended");
        assert_int_equal(ring.fault.board, 1);
        ring_close(&ring);
    }
}

static void an_interrupt_ends_every_state(void **state) {
    (void)state;
    for (size_t i = 0; i < WAITS; i++) {
        reach_row(i);
        rp_controller_interrupt(ring.c);
        expect_err(ring_end(&ring, 100), RP_ERR_INTERRUPTED);
        assert_non_null(strstr(ring.fault.text, waits[i].interrupted));
        assert_int_equal(ring.fault.fault_class, RP_FAULT_USER);
        ring_close(&ring);
        reach_row(i);
        rp_controller_interrupt(ring.c);
        rp_controller_interrupt(ring.c);
        expect_err(ring_end(&ring, 100), RP_ERR_INTERRUPTED);
        assert_non_null(strstr(ring.fault.text, "interrupted twice"));
        ring_close(&ring);
    }
}

/* Training stops before the first step that nothing was sent of, and is saved. */
static void an_interrupted_run_goes_on(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    rp_controller_interrupt(ring.c);
    expect_err(ring_end(&ring, 100), RP_ERR_INTERRUPTED);
    assert_non_null(strstr(ring.trail, "train save recover close ended"));
    char first[512];
    (void)snprintf(first, sizeof first, "%s", ring.out);
    ring.out[0] = '\0'; /* which the next one goes on in */
    ring_close(&ring);

    ring_prepare(&ring, "out");
    ring.options.out = NULL;
    ring.options.resume = first;
    ring_open(&ring);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    assert_true(ring.c->position.step > 0);
    expect_ok(ring_end(&ring, 200));
    assert_non_null(strstr(ring.trail, "assign load train"));
    assert_int_equal(ring.board[1].orders[RP_KIND_TENSORS_END], 1);
    ring_close(&ring);
}

/* With `guard: false`. What is saved can be gone on from, and the run says from where. */
static void weights_that_are_not_finite_are_told(void **state) {
    (void)state;
    char first[512];
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_EVALUATE)); /* of the first epoch, which is saved */
    while (ring.c->machine.state != RP_CONTROL_TRAIN) {
        ring_step(&ring, RP_NS_PER_MS);
    }
    ring.diverged = true;
    rp_controller_interrupt(ring.c);
    expect_err(ring_end(&ring, 100), RP_ERR_INTERRUPTED);
    expect_events(1, .kind = RP_EVENT_UNSAVED_TENSOR, .tensor = "fc.weight", .checkpoint_step = 4);
    (void)snprintf(first, sizeof first, "%s", ring.out);
    ring.out[0] = '\0';
    ring_close(&ring);

    ring_prepare(&ring, "out");
    ring.options.out = NULL;
    ring.options.resume = first;
    ring_open(&ring);
    assert_int_equal(ring.c->position.step, 4);
    ring.diverged = true; /* to the end: the weights are there */
    expect_err(ring_end(&ring, 200), RP_ERR_FAULT);
    assert_int_equal(access(in_folder("out/weights.safetensors"), F_OK), 0);
    ring_close(&ring);
}

/* Ends before a board takes memory; `text` NULL: it fits. */
static void try_memory(uint64_t machine, const uint64_t board[BOARDS], const char *text) {
    ring_prepare(&ring, "out");
    ring.machine_bytes = machine;
    memcpy(ring.board_bytes, board, sizeof ring.board_bytes);
    ring_open(&ring);
    assert_int_equal(ring_end(&ring, 200), text ? RP_ERR_USAGE : RP_OK);
    assert_int_equal(ring.board[0].orders[RP_KIND_ASSIGN], text ? 0 : 1);
    if (text && !strstr(ring.fault.text, text)) {
        fail_msg("'%s' is not in '%s'", text, ring.fault.text);
    }
    ring_close(&ring);
}

static void what_does_not_fit_is_not_begun(void **state) {
    (void)state;
    const uint64_t much = UINT64_C(1) << 40;
    uint64_t needs[BOARDS];
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    expect_ok(rp_fit_memory_needs(ring.c->run, rp_arrangement_plan_cut(ring.c->setup),
                                  rp_arrangement_plan(ring.c->setup), needs));
    rp_controller_interrupt(ring.c);
    expect_err(ring_end(&ring, 100), RP_ERR_INTERRUPTED);
    ring_close(&ring);
    const uint64_t sum = needs[0] + needs[1];
    assert_true(needs[0] > 0 && needs[1] > 0);
    try_memory(0, (uint64_t[]){needs[0], needs[1]}, NULL);
    try_memory(0, (uint64_t[]){much, needs[1] - 1}, "MB of device memory, and its device has");
    try_memory(sum, (uint64_t[]){much, much}, NULL);
    try_memory(sum - 1, (uint64_t[]){much, much}, "the boards on this machine need");
    try_memory(0, (uint64_t[]){16, 16},
               "of memory at least, on all boards together, and they "
               "have 0. Expected");
    try_memory(16, (uint64_t[]){much, much}, "(available on this machine)");
}

/* Of 8 steps, fewer than stop a run on its way. */
static void a_result_that_is_not_finite_is_a_failure(void **state) {
    (void)state;
    static const struct {
        bool diverged, bad_score;
        uint64_t bad_from;
        const char *text; /* NULL: it is finished */
    } cases[] = {
        {true, false, 0,
         "the result is of no use: 'fc.weight' is not finite; try a smaller "
         "optimizer.lr, optimizer.clip_norm"},
        {false, true, 0, "the result is of no use: the test loss is not finite"},
        {false, false, 1, "the loss has not been finite since step 1"},
        {false, false, 8, NULL}, /* the guard may have skipped it; the score is finite */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t never = 0; never < 2; never++) {
            ring_prepare(&ring, "out");
            ring_set(&ring, never ? "train.stop_after.non_finite=0" : "train.guard=true");
            ring_open(&ring);
            ring.diverged = cases[i].diverged;
            ring.bad_score = cases[i].bad_score;
            ring.bad_from = cases[i].bad_from;
            const bool fails = cases[i].text && !never;
            const rp_err err = ring_end(&ring, 300);
            assert_int_equal(err, fails ? RP_ERR_FAULT : RP_OK);
            if (fails) {
                assert_non_null(strstr(ring.fault.text, cases[i].text));
                assert_null(strstr(ring.fault.text, "train.guard")); /* it is in force */
            }
            assert_non_null(
                strstr(slurp("out/summary.json", NULL), fails ? "\"failed\"" : "\"finished\""));
            ring_close(&ring);
        }
    }
}

/* Nothing is left to be done, and what there is is no better for that. */
static void a_failure_is_one_when_it_is_resumed(void **state) {
    (void)state;
    char first[512];
    open_ring(NULL);
    ring.bad_score = true;
    expect_err(ring_end(&ring, 300), RP_ERR_FAULT);
    (void)snprintf(first, sizeof first, "%s", ring.out);
    ring.out[0] = '\0';
    ring_close(&ring);
    for (uint32_t never = 0; never < 2; never++) {
        ring_prepare(&ring, "out");
        ring.options.out = NULL;
        ring.options.resume = first;
        ring_set(&ring, never ? "train.stop_after.non_finite=0" : "train.guard=true");
        assert_int_equal(ring_try_open(&ring), never ? RP_OK : RP_ERR_FAULT);
        ring.out[0] = never ? ring.out[0] : '\0';
        ring_close(&ring);
    }
}

static void a_score_that_is_not_finite_is_no_answer(void **state) {
    (void)state;
    char weights[600];
    char made[600];
    open_ring(NULL);
    expect_ok(ring_end(&ring, 200));
    (void)snprintf(weights, sizeof weights, "%s.weights", ring.out);
    (void)snprintf(made, sizeof made, "%s/weights.safetensors", ring.out);
    assert_int_equal(rename(made, weights), 0);
    ring_close(&ring);
    ring_prepare(&ring, "json");
    ring.options.purpose = RP_PURPOSE_EVALUATE;
    ring.options.weights = weights;
    ring.options.split = RP_SPLIT_TEST;
    ring_open(&ring);
    ring.bad_score = true;
    expect_err(ring_end(&ring, 200), RP_ERR_NUMERIC);
    ring_close(&ring);
    (void)unlink(weights);
}

/* The one fault that is dealt with: no memory for as many forwards in flight as the links want. */
static void fall_back(void) {
    const rp_Frame frame = {
        .which_body = RP_KIND_FAULT,
        .body.fault = {.err = RP_ERR_LIMIT, .fault_class = RP_FAULT_USER, .text = "no memory"}};
    open_ring(auto_run);
    ring.round_ns = SLOW_NS;
    ring.mute = RP_KIND_ASSIGN;
    assert_true(ring_reach(&ring, RP_CONTROL_ASSIGN));
    const uint32_t advance = ring.c->run->method.advance;
    assert_true(advance > 0);
    ring_step(&ring, RP_NS_PER_MS);
    board_send(&ring.board[0], frame, NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_HELLO));
    assert_int_equal(ring.c->run->method.advance, advance - 1);
}

static void a_board_without_memory_gets_less(void **state) {
    (void)state;
    fall_back();
    ring.mute = RP_KIND_NONE;
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    assert_non_null(strstr(ring.trail, "assign recover hello assign load train"));
    ring_close(&ring);
}

/* Who failed has built no kernel, and the others may have been interrupted. */
static void a_board_that_has_built_nothing_may_take_its_time(void **state) {
    (void)state;
    fall_back();
    expect_err(ring_end(&ring, 3000), RP_ERR_TIMEOUT);
    assert_non_null(strstr(ring.trail, "assign recover hello assign recover close"));
    assert_non_null(strstr(ring.fault.text, "no ready within 1800 s"));
    ring_close(&ring);

    open_ring(auto_run); /* with kernels there it is a fault sooner */
    assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
    ring.round_ns = SLOW_NS;
    assert_true(ring_reach(&ring, RP_CONTROL_DRAIN));
    ring.mute = RP_KIND_ASSIGN;
    expect_err(ring_end(&ring, 400), RP_ERR_TIMEOUT);
    assert_non_null(strstr(ring.fault.text, "no ready within 30 s"));
    ring_close(&ring);
}

/* What a board said of a fault that is over is not said of the next one. */
static void a_fault_that_was_dealt_with_is_over(void **state) {
    (void)state;
    fall_back();
    ring.lost = RP_ERR_FAULT;
    rp_controller_child_ended(ring.c);
    expect_err(ring_end(&ring, 100), RP_ERR_FAULT);
    assert_string_equal(ring.fault.text, "agent 1 ended");
    assert_int_equal(ring.fault.fault_class, RP_FAULT_BOARD);
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_wait_has_an_end, setup, teardown),
        cmocka_unit_test_setup_teardown(a_slow_save_is_no_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_is_a_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(a_feed_that_is_cut_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_was_never_heard_has_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fault_ends_every_state, setup, teardown),
        cmocka_unit_test_setup_teardown(a_child_that_ends_is_a_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interrupt_ends_every_state, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interrupted_run_goes_on, setup, teardown),
        cmocka_unit_test_setup_teardown(weights_that_are_not_finite_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_not_begun, setup, teardown),
        cmocka_unit_test_setup_teardown(a_result_that_is_not_finite_is_a_failure, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failure_is_one_when_it_is_resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_score_that_is_not_finite_is_no_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_without_memory_gets_less, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_has_built_nothing_may_take_its_time, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_fault_that_was_dealt_with_is_over, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
