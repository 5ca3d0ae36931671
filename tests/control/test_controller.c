/* The controller as a machine, with boards that follow a script: the states of whole runs, and two
 * controllers in one process. Nothing here sleeps: time is stepped. */
#include "ring/identity.h"
#include "states.h"

enum { MOST_LAYERS = 4000 };

static void a_run_goes_through_its_states(void **state) {
    (void)state;
    open_ring(NULL);
    expect_ok(ring_end(&ring, 200));
    assert_string_equal(ring.trail, good_run);
    for (uint32_t k = 0; k < BOARDS; k++) {
        assert_int_equal(ring.board[k].orders[RP_KIND_BYE], 1);
        assert_int_equal(ring.board[k].orders[RP_KIND_START], 2);
        assert_int_equal(ring.board[k].orders[RP_KIND_CONNECT], 1);
    }
    /* two epochs and two evaluations, in microbatches */
    assert_int_equal(ring.board[0].inputs, 2 * (TRAIN / 8 + TEST / 8));
    assert_int_equal(ring.board[1].inputs, 0);
    ring_close(&ring);
}

/* At 3 and 6, and at the end, which is no multiple; the epoch's end at 4 only saves. */
static void steps_may_say_when_to_evaluate(void **state) {
    (void)state;
    ring_prepare(&ring, "out");
    ring_set(&ring, "train.eval_epochs=0");
    ring_set(&ring, "train.eval_steps=3");
    ring_open(&ring);
    expect_ok(ring_end(&ring, 200));
    assert_string_equal(ring.trail,
                        "start hello profile plan assign load train save evaluate train save "
                        "train save evaluate train save evaluate close ended");
    assert_int_equal(ring.board[0].inputs, 2 * (TRAIN / 8) + 3 * (TEST / 8));
    ring_close(&ring);
}

static void other_purposes_end_earlier(void **state) {
    (void)state;
    static const struct {
        rp_controller_purpose purpose;
        const char *trail;
    } cases[] = {
        {RP_PURPOSE_PROFILE, "start hello profile close ended"},
        {RP_PURPOSE_PLAN, "start hello profile plan assign close ended"},
        {RP_PURPOSE_EVALUATE, "start hello profile plan assign load evaluate close ended"},
    };
    char weights[600];
    open_ring(NULL);
    expect_ok(ring_end(&ring, 200));
    (void)snprintf(weights, sizeof weights, "%s.weights", ring.out);
    char made[600];
    (void)snprintf(made, sizeof made, "%s/weights.safetensors", ring.out);
    assert_int_equal(rename(made, weights), 0);
    ring_close(&ring);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ring_prepare(&ring, "json");
        ring.options.purpose = cases[i].purpose;
        ring.options.weights = weights;
        ring.options.split = RP_SPLIT_TEST;
        ring_open(&ring);
        expect_ok(ring_end(&ring, 200));
        assert_string_equal(ring.trail, cases[i].trail);
        ring_close(&ring);
    }
    (void)unlink(weights);
}

/* Ahead of a run: the boards hear how much time they have, and have no links to each other. One
 * whose software does not know that has them, for nothing. */
static void boards_are_warmed(void **state) {
    (void)state;
    for (uint32_t old = 0; old < 2; old++) {
        ring_prepare(&ring, "json");
        ring.options.purpose = RP_PURPOSE_WARM;
        ring.options.within_s = 77;
        ring.board[1].old = old > 0;
        ring_open(&ring);
        expect_ok(ring_end(&ring, 200));
        assert_string_equal(ring.trail, "start hello profile plan assign close ended");
        for (uint32_t k = 0; k < BOARDS; k++) {
            assert_in_range(ring.board[k].warm_s, 60, 77);
            assert_int_equal(ring.board[k].orders[RP_KIND_ASSIGN], 1);
            assert_int_equal(ring.board[k].orders[RP_KIND_CONNECT], 0);
        }
        ring_close(&ring);
    }
}

/* Boards give up by themselves; the host does not wait much longer for one that does not. */
static void warming_has_an_end(void **state) {
    (void)state;
    static const struct {
        rp_kind mute;
        rp_control_state_id state;
        const char *text;
    } cases[] = {{RP_KIND_PROFILE, RP_CONTROL_PROFILE, "no profile within 107 s"},
                 {RP_KIND_ASSIGN, RP_CONTROL_ASSIGN, "no ready within "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ring_prepare(&ring, "json");
        ring.options.purpose = RP_PURPOSE_WARM;
        ring.options.within_s = 77;
        ring_open(&ring);
        ring.mute = cases[i].mute;
        const int64_t begin_ns = rp_clock_now_ns(&ring.clock);
        expect_err(ring_end(&ring, 3000), RP_ERR_TIMEOUT);
        assert_int_equal(ring.failed, cases[i].state);
        assert_non_null(strstr(ring.fault.text, cases[i].text));
        assert_true(rp_clock_now_ns(&ring.clock) - begin_ns < 200 * RP_NS_PER_S);
        ring_close(&ring);
    }
}

/* Whatever was lost comes back, as long as there is time: here in the middle of each phase. */
static void warming_goes_on_after_a_restart(void **state) {
    (void)state;
    static const rp_control_state_id phases[] = {RP_CONTROL_PROFILE, RP_CONTROL_ASSIGN};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        ring_prepare(&ring, "json");
        ring.options.purpose = RP_PURPOSE_WARM;
        ring.options.within_s = 300;
        ring_open(&ring);
        ring.mute = i == 0 ? RP_KIND_PROFILE : RP_KIND_ASSIGN;
        assert_true(ring_reach(&ring, phases[i]));
        ring.board[1].away = true;
        for (uint32_t s = 0; s < 100; s++) { /* longer than a first greeting may take */
            ring_step(&ring, RP_NS_PER_S);
        }
        assert_true(ring.c->machine.state == RP_CONTROL_HELLO ||
                    ring.c->machine.state == RP_CONTROL_RESTART);
        ring.mute = RP_KIND_NONE;
        board_begin(&ring, 1);
        expect_ok(ring_end(&ring, 200));
        assert_in_range(ring.board[1].warm_s, 100, 230); /* what is left of it */
        ring_close(&ring);
    }
}

static void a_board_that_stays_away_ends_warming_at_its_deadline(void **state) {
    (void)state;
    ring_prepare(&ring, "json");
    ring.options.purpose = RP_PURPOSE_WARM;
    ring.options.within_s = 120;
    ring_open(&ring);
    ring.mute = RP_KIND_ASSIGN;
    assert_true(ring_reach(&ring, RP_CONTROL_ASSIGN));
    const int64_t begin_ns = rp_clock_now_ns(&ring.clock);
    ring.board[1].away = true;
    expect_err(ring_end(&ring, 3000), RP_ERR_TIMEOUT);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    assert_in_range((rp_clock_now_ns(&ring.clock) - begin_ns) / RP_NS_PER_S, 110, 150);
    ring_close(&ring);
}

/* Boards of one machine build together what one of them measures then. */
static void local_boards_build_together(void **state) {
    (void)state;
    static const uint32_t orders[][1 + BOARDS] = {{0, 1, 0}, {1, 1, 0}, {2, 2, 1}, {16, 2, 1}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        ring_prepare(&ring, "json");
        ring.options.purpose = RP_PURPOSE_PROFILE;
        ring.cores = orders[i][0];
        ring_open(&ring);
        assert_true(ring_reach(&ring, RP_CONTROL_CLOSE));
        for (uint32_t l = 0; l < 2 * ring.c->run->model->layer_count; l++) {
            expect_close(rp_measure_layer_seconds(ring.c->measure)[l], 1e-3, 0,
                         0); /* those that were measured */
        }
        expect_ok(ring_end(&ring, 200));
        assert_string_equal(ring.trail, "start hello profile close ended");
        for (uint32_t k = 0; k < BOARDS; k++) {
            assert_int_equal(ring.board[k].orders[RP_KIND_PROFILE], orders[i][1 + k]);
            assert_int_equal(ring.board[k].builds, orders[i][0] > 1 ? 1 : 0);
        }
        ring_close(&ring);
    }
}

/* advance: auto. The links become slow behind the first epoch: the pipes drain, and the boards get
 * new stages, with the checkpoint of there. */
static void a_run_follows_its_links(void **state) {
    (void)state;
    open_ring(auto_run);
    assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
    ring.round_ns = SLOW_NS;
    (void)ring_end(&ring, 400);
    assert_non_null(
        strstr(ring.trail, "save evaluate plan drain save hello assign load save train"));
    ring_close(&ring);
}

/* links.codec: auto. What wires carry that are not emulated shows in the first segment: behind its
 * checkpoint the boards get stages with codecs. */
static void full_wires_get_codecs(void **state) {
    (void)state;
    open_ring("links={codec: auto, max_error: 0.1}");
    ring.board[0].rate = 1e3;
    ring.board[1].rate = 1e12f;
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    const rp_plan *plan = rp_arrangement_plan(ring.c->setup);
    for (uint32_t e = 0; e < plan->edge_count; e++) {
        const bool is_first = plan->edge[e].from == 0 && plan->edge[e].to == 1;
        assert_true(!is_first || plan->edge[e].codec == RP_CODEC_F32);
    }
    (void)ring_end(&ring, 400);
    assert_non_null(strstr(ring.trail, "train save hello assign load save"));
    expect_events(1, .kind = RP_EVENT_CODECS_NEXT, .codecs = "int4/f32");
    ring_close(&ring);
}

/* The plan names every layer, so its text grows with the model. */
static void a_plan_of_many_layers_is_sent(void **state) {
    (void)state;
    ring_prepare_deep(&ring, "out", MOST_LAYERS);
    ring_set(&ring, "cut=[dense_layer_1000]");
    ring_open(&ring);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    assert_int_equal(ring.c->run->model->layer_count, MOST_LAYERS + 3);
    assert_true(strlen(rp_arrangement_plan_text(ring.c->setup)) > (size_t)100 << 10);
    ring_close(&ring);
}

static void a_ring_over_a_network_has_a_bound(void **state) {
    (void)state;
    const rp_controller_env env = {.clock = &ring.clock, .feeder = RP_FEEDER_DIRECT};
    ring_prepare_deep(&ring, "out", DEEP_LAYERS);
    ring_set(&ring, "ring={boards: 65}");
    expect_err(rp_controller_open(&env, &ring.options, &ring.c), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "65 boards; over a network at most 64 are possible"));
    ring_open(&ring); /* over links that are given: a simulation */
    expect_ok(rp_controller_close(&ring.c) == RP_ERR_INTERRUPTED ? RP_OK : RP_ERR_FAULT);
    ring_close(&ring);
}

static void it_says_what_it_waits_for(void **state) {
    (void)state;
    rp_controller_waiting why;
    open_ring(NULL);
    ring.mute = RP_KIND_ASSIGN;
    assert_true(ring_reach(&ring, RP_CONTROL_ASSIGN));
    const int64_t since_ns = ring.c->ring.now_ns;
    ring_step(&ring, RP_NS_PER_S);
    ring_step(&ring, RP_NS_PER_S);
    rp_controller_waiting_of(ring.c, &why);
    assert_string_equal(why.state, "assign");
    assert_string_equal(why.what, "ready");
    assert_string_equal(why.board, "0");
    assert_int_equal(why.since_ns, since_ns);
    ring_close(&ring);
}

/* ---- two in one process ---------------------------------------------------------------------- */

static void two_controllers_in_one_loop(void **state) {
    (void)state;
    static test_ring other;
    ring_prepare(&ring, "one");
    ring_open(&ring);
    ring_prepare(&other, "two");
    ring_set(&other, "train.epochs=1");
    ring_open(&other);
    for (uint32_t i = 0; i < 300; i++) {
        if (ring.c->machine.state != RP_CONTROL_ENDED) {
            ring_step(&ring, RP_NS_PER_MS);
        }
        if (other.c->machine.state != RP_CONTROL_ENDED) {
            ring_step(&other, RP_NS_PER_MS);
        }
        if (i == 7) { /* one is told to end: the other does not hear of it */
            rp_controller_interrupt(ring.c);
        }
    }
    expect_err(ring_end(&ring, 100), RP_ERR_INTERRUPTED);
    expect_ok(ring_end(&other, 100));
    assert_string_equal(other.trail,
                        "start hello profile plan assign load train save evaluate close ended");
    ring_close(&ring);
    ring_close(&other);
}

/* Both would write the same checkpoints. */
static void a_folder_has_one_controller(void **state) {
    (void)state;
    static test_ring other;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring_prepare(&other, "out");
    other.options.out = NULL;
    other.options.resume = ring.out;
    expect_err(ring_try_open(&other), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "another ringpipe trains in this folder"));
    rp_controller *crashed = ring.c;
    rp_controller_crash(&ring.c); /* as its process would end */
    ring_open(&other);
    (void)!rp_controller_close(&other.c);
    ring.c = crashed;
    ring_open(&other);
    expect_ok(ring_end(&other, 200));
    other.out[0] = '\0'; /* which is the first one's */
    ring_close(&other);
    ring_close(&ring);
}

/* Where the folder could not be locked: whoever has begun later may save. */
static void who_has_begun_later_saves(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
    rp_run_identity later = {0};
    expect_ok(rp_identity_begin_term(ring.out, 0, &later));
    expect_err(ring_end(&ring, 100), RP_ERR_PEER);
    assert_non_null(strstr(ring.fault.text, "another controller has taken over this run"));
    assert_int_equal(access(in_folder("out/checkpoint/step-0000000004.safetensors"), F_OK), -1);
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_ring_over_a_network_has_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plan_of_many_layers_is_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_goes_through_its_states, setup, teardown),
        cmocka_unit_test_setup_teardown(steps_may_say_when_to_evaluate, setup, teardown),
        cmocka_unit_test_setup_teardown(other_purposes_end_earlier, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_are_warmed, setup, teardown),
        cmocka_unit_test_setup_teardown(warming_goes_on_after_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_stays_away_ends_warming_at_its_deadline, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(warming_has_an_end, setup, teardown),
        cmocka_unit_test_setup_teardown(local_boards_build_together, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_follows_its_links, setup, teardown),
        cmocka_unit_test_setup_teardown(full_wires_get_codecs, setup, teardown),
        cmocka_unit_test_setup_teardown(two_controllers_in_one_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_has_one_controller, setup, teardown),
        cmocka_unit_test_setup_teardown(who_has_begun_later_saves, setup, teardown),
        cmocka_unit_test_setup_teardown(it_says_what_it_waits_for, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
