/* The controller as a machine, with boards that follow a script: every state is reached, times out,
 * fails, is interrupted, and meets every message. Nothing here sleeps: time is stepped. */
#include <math.h>

#include "boards.h"
#include "control/identity.h"
#include "planning/fit_memory.h"
#include "wire/trace.h"

enum { DEEP_LAYERS = 80, MOST_LAYERS = 4000 };

static test_ring ring; /* large for a stack */
static const char auto_run[] = "schedule={kind: pipedream, advance: auto}";

static const char good_run[] =
    "start hello profile plan assign load train save evaluate train save evaluate close ended";

/* `pipedream` with `advance: auto` waits in `plan`; an average has `statistics`. */
static void open_ring(const char *schedule) {
    ring_prepare(&ring, "out");
    if (schedule) {
        ring_set(&ring, schedule);
    }
    ring_open(&ring);
}

/* ---- the way to the end ---------------------------------------------------------------------- */

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
        assert_true(ring.c->state == RP_CONTROL_HELLO || ring.c->state == RP_CONTROL_RESTART);
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
        for (uint32_t l = 0; l < 2 * ring.c->run.model->layer_count; l++) {
            expect_close(ring.c->layer_seconds[l], 1e-3, 0, 0); /* those that were measured */
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
    ring.c->run.emulate = true;
    ring.c->run.link.delay_ms = 40;
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
    assert_int_equal(ring.c->codecs.now[0][0], RP_CODEC_F32);
    (void)ring_end(&ring, 400);
    assert_non_null(strstr(ring.trail, "train save hello assign load save"));
    assert_non_null(strstr(slurp("out/log.jsonl", NULL),
                           "wires were full; next, from stage to stage (activations/gradients): "
                           "int4/f32\""));
    ring_close(&ring);
}

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
    assert_int_equal(ring.c->state, RP_CONTROL_SAVE);
    const int64_t last_ns = ring.c->now_ns;
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
        assert_int_equal(ring.c->state, RP_CONTROL_TRAIN);
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
        for (uint32_t s = 0; s < 400 && ring.c->state == RP_CONTROL_TRAIN; s++) {
            ring_step(&ring, RP_NS_PER_S);
        }
        assert_in_range(rp_clock_now_ns(&ring.clock) - begin_ns, least_ns,
                        least_ns + 10 * RP_NS_PER_S);
        ring_close(&ring);
    }
}

/* ---- faults and interrupts ------------------------------------------------------------------- */

/* States that wait for something, how a run gets there, and the text of an interrupt's end. */
typedef enum { PLAIN, FOLLOWS, DEEP, AVERAGES, VERIFIES, COPIES } way;
static const struct {
    rp_control_state_id state;
    way way;
    const char *interrupted;
} waits[] = {
    {RP_CONTROL_START, PLAIN, "interrupted while the agents start"},
    {RP_CONTROL_HELLO, PLAIN, "interrupted while waiting for hello"},
    {RP_CONTROL_PROFILE, PLAIN, "interrupted while waiting for profile"},
    {RP_CONTROL_PLAN, FOLLOWS, "interrupted while waiting for answer to a ping"},
    {RP_CONTROL_ASSIGN, PLAIN, "interrupted while waiting for ready"},
    {RP_CONTROL_TRAIN, PLAIN, "interrupted after step"},
    {RP_CONTROL_EVALUATE, PLAIN, "interrupted in an evaluation"},
    {RP_CONTROL_SAVE, PLAIN, "interrupted after step 4"},
    {RP_CONTROL_DRAIN, FOLLOWS, "interrupted after step"},
    {RP_CONTROL_LOAD, DEEP, "interrupted after step 0"},
    {RP_CONTROL_STATISTICS, AVERAGES, "interrupted after step"},
    {RP_CONTROL_VERIFY, VERIFIES, "interrupted after step"},
    {RP_CONTROL_COPY, COPIES, "interrupted after step 2"},
};
enum { WAITS = sizeof waits / sizeof *waits };

/* Weights of a model with more tensors than a board's link takes at once. */
static void make_deep_weights(char *path, size_t bytes) {
    char made[600];
    (void)snprintf(path, bytes, "%s/deep.safetensors", folder);
    if (access(path, F_OK) == 0) {
        return;
    }
    ring_prepare_deep(&ring, "deep", DEEP_LAYERS);
    ring_set(&ring, "train.epochs=1");
    ring_open(&ring);
    expect_ok(ring_end(&ring, 400));
    (void)snprintf(made, sizeof made, "%s/weights.safetensors", ring.out);
    assert_int_equal(rename(made, path), 0);
    ring_close(&ring);
}

static void open_way(way how) {
    static char init[700] = "train.init=";
    const size_t word = strlen("train.init=");
    if (how == DEEP) {
        make_deep_weights(init + word, sizeof init - word);
        ring_prepare_deep(&ring, "out", DEEP_LAYERS);
        ring_set(&ring, init);
        ring_open(&ring);
    } else {
        open_ring(how == FOLLOWS    ? auto_run
                  : how == AVERAGES ? "schedule=ea-pipe"
                  : how == VERIFIES ? "ring.verify=1/2"
                  : how == COPIES   ? "ring.copy_steps=2"
                                    : NULL);
    }
}

static void reach_row(size_t i) {
    open_way(waits[i].way);
    ring.up = waits[i].state != RP_CONTROL_START;
    if (waits[i].state == RP_CONTROL_DRAIN) {
        assert_true(ring_reach(&ring, RP_CONTROL_SAVE));
        ring.c->run.emulate = true; /* the links have become slow */
        ring.c->run.link.delay_ms = 40;
    }
    assert_true(ring_reach(&ring, waits[i].state));
}

static void a_fault_ends_every_state(void **state) {
    (void)state;
    const rp_Frame frame = {.which_body = RP_KIND_FAULT,
                            .body.fault = {.err = RP_ERR_DEVICE, .text = "broken"}};
    char line[80];
    for (size_t i = 1; i < WAITS; i++) {
        reach_row(i);
        board_send(&ring.board[1], frame, NULL);
        expect_err(ring_end(&ring, 100), RP_ERR_DEVICE);
        assert_string_equal(ring.fault.text, "board 1: broken");
        assert_int_equal(ring.fault.board, 1);
        assert_int_equal(ring.fault.fault_class, RP_FAULT_BOARD);
        assert_int_equal(ring.failed, waits[i].state);
        assert_non_null(strstr(ring.trail, " recover close ended"));
        (void)snprintf(line, sizeof line, "board, in state %s: board 1: broken",
                       rp_control_states[waits[i].state].name);
        assert_non_null(strstr(slurp("out/log.jsonl", NULL), line));
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
    while (ring.c->state != RP_CONTROL_TRAIN) {
        ring_step(&ring, RP_NS_PER_MS);
    }
    ring.diverged = true;
    rp_controller_interrupt(ring.c);
    expect_err(ring_end(&ring, 100), RP_ERR_INTERRUPTED);
    assert_non_null(strstr(slurp("out/log.jsonl", NULL), "'fc.weight' is not finite, so no "
                                                         "checkpoint is saved: --resume goes on "
                                                         "from step 4; try a smaller "));
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
    expect_ok(rp_fit_memory_needs(&ring.c->run, &ring.c->plan_cut, ring.c->plan, needs));
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
    ring.c->run.emulate = true;
    ring.c->run.link.delay_ms = 40;
    ring.mute = RP_KIND_ASSIGN;
    assert_true(ring_reach(&ring, RP_CONTROL_ASSIGN));
    const uint32_t advance = ring.c->run.method.advance;
    assert_true(advance > 0);
    ring_step(&ring, RP_NS_PER_MS);
    board_send(&ring.board[0], frame, NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_HELLO));
    assert_int_equal(ring.c->run.method.advance, advance - 1);
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
    ring.c->run.emulate = true;
    ring.c->run.link.delay_ms = 40;
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

/* ---- messages -------------------------------------------------------------------------------- */

/* What a state takes, kind by kind; HELLO, FAULT and COPIED everywhere. */
static bool is_taken(rp_control_state_id state, rp_kind kind) {
    const bool adopts = state == RP_CONTROL_ADOPT; /* boards at work for a host that has died */
    const bool trains = state == RP_CONTROL_TRAIN || state == RP_CONTROL_DRAIN || adopts;
    const bool passes = state == RP_CONTROL_EVALUATE || state == RP_CONTROL_STATISTICS || adopts;
    switch (kind) {
    case RP_KIND_HELLO:
    case RP_KIND_FAULT:
    case RP_KIND_COPIED:
    case RP_KIND_TRIAL_DONE:
    case RP_KIND_TRIAL_BYTES:
        return true;
    case RP_KIND_PROFILE_DONE:
        return state == RP_CONTROL_PROFILE;
    case RP_KIND_BUILDING:
        return state == RP_CONTROL_PROFILE || state == RP_CONTROL_ASSIGN ||
               state == RP_CONTROL_VERIFY;
    case RP_KIND_RECORD:
    case RP_KIND_RECOMPUTED:
        return state == RP_CONTROL_VERIFY;
    case RP_KIND_READY:
        return state == RP_CONTROL_ASSIGN;
    case RP_KIND_STEP_DONE:
    case RP_KIND_NORMS:
    case RP_KIND_PREDICTION_ERROR:
    case RP_KIND_SKIPPED:
        return trains;
    case RP_KIND_EVALUATE_DONE:
        return state == RP_CONTROL_EVALUATE || adopts;
    case RP_KIND_HELD:
        return adopts;
    case RP_KIND_TRACE:
    case RP_KIND_WAITING:
    case RP_KIND_FINISHED:
        return trains || passes;
    case RP_KIND_TENSOR:
    case RP_KIND_IN_FLIGHT:
    case RP_KIND_TENSORS_END:
        return state == RP_CONTROL_SAVE || state == RP_CONTROL_RESCUE;
    default:
        return false;
    }
}

static void every_kind_is_taken_or_refused(void **state) {
    (void)state;
    uint32_t taken = 0;
    for (uint32_t kind = 0; kind < 64; kind++) {
        const rp_kind_facts *facts = rp_kind_facts_of((rp_kind)kind);
        for (uint32_t s = 0; s < RP_CONTROL_STATES; s++) {
            const bool takes = rp_control_handler_of((rp_kind)kind, (rp_control_state_id)s) != NULL;
            assert_int_equal(takes, is_taken((rp_control_state_id)s, (rp_kind)kind));
            assert_true(!takes || facts->name); /* of a kind that there is */
            assert_true(!takes || facts->from != RP_FROM_HOST);
            taken += takes;
        }
    }
    assert_true(taken > 2 * RP_CONTROL_STATES);
}

/* A message of the kind, with parts that the wire takes. */
static void send_kind(test_board *b, rp_kind kind) {
    static const double numbers[3] = {1, 2, 3};
    static const uint64_t counts[1] = {1};
    const rp_kind_facts *facts = rp_kind_facts_of(kind);
    rp_Frame frame = {.which_body = (pb_size_t)kind};
    rp_part part = rp_part_of_bytes(numbers, 8);
    if (facts->parts == RP_PARTS_F64) {
        part = rp_part_of_array(RP_DTYPE_F64, numbers, 3);
    } else if (facts->parts == RP_PARTS_U64) {
        part = rp_part_of_array(RP_DTYPE_U64, counts, 1);
    } else if (facts->parts == RP_PARTS_TENSOR) {
        part = rp_part_of_array(RP_DTYPE_F32, numbers, 2);
    }
    board_send(b, frame, facts->parts_min > 0 ? &part : NULL);
}

static void a_message_at_a_wrong_time_is_refused_with_a_text(void **state) {
    (void)state;
    for (size_t i = 1; i < WAITS; i++) {
        for (uint32_t kind = 1; kind < 48; kind++) {
            const rp_kind_facts *facts = rp_kind_facts_of((rp_kind)kind);
            if (!facts->name || facts->from == RP_FROM_HOST ||
                facts->of_class != RP_CLASS_CONTROL || is_taken(waits[i].state, (rp_kind)kind)) {
                continue;
            }
            reach_row(i);
            send_kind(&ring.board[0], (rp_kind)kind);
            expect_err(ring_end(&ring, 100), RP_ERR_PEER);
            assert_non_null(strstr(ring.fault.text, facts->name));
            assert_non_null(
                strstr(ring.fault.text, "which the controller does not expect in state"));
            ring_close(&ring);
        }
    }
}

/* What would be taken once is refused twice; a second HELLO is an answer to an older greeting. */
static void a_message_that_comes_twice_is_refused(void **state) {
    (void)state;
    static const struct {
        rp_control_state_id state;
        rp_kind kind;
        const char *text;
    } cases[] = {
        {RP_CONTROL_ASSIGN, RP_KIND_READY, "is ready for a stage that it does not have"},
        {RP_CONTROL_TRAIN, RP_KIND_FINISHED, "has finished its segment twice"},
        {RP_CONTROL_SAVE, RP_KIND_TENSORS_END, "ended its tensors twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_ring(NULL);
        ring.mute = cases[i].state == RP_CONTROL_ASSIGN  ? RP_KIND_ASSIGN
                    : cases[i].state == RP_CONTROL_TRAIN ? RP_KIND_START
                                                         : RP_KIND_SAVE;
        assert_true(ring_reach(&ring, cases[i].state));
        ring_step(&ring, RP_NS_PER_MS);
        ring.board[0].run = ring.c->ring.identity;
        send_kind(&ring.board[0], cases[i].kind);
        ring_step(&ring, RP_NS_PER_MS);
        assert_int_equal(ring.c->fault.err, RP_OK);
        send_kind(&ring.board[0], cases[i].kind);
        expect_err(ring_end(&ring, 100), RP_ERR_PEER);
        assert_non_null(strstr(ring.fault.text, cases[i].text));
        ring_close(&ring);
    }
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    send_kind(&ring.board[0], RP_KIND_HELLO);
    expect_ok(ring_end(&ring, 200));
    assert_string_equal(ring.trail, good_run);
    ring_close(&ring);
}

/* What is left of an assignment that is over does no harm. */
static void an_older_term_is_dropped(void **state) {
    (void)state;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    const rp_run_identity now = ring.board[0].run;
    ring.board[0].run.term--;
    send_kind(&ring.board[0], RP_KIND_READY);
    ring.board[0].run = now;
    expect_ok(ring_end(&ring, 200));
    ring_close(&ring);
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    ring.board[0].run.term++;
    send_kind(&ring.board[0], RP_KIND_READY);
    expect_err(ring_end(&ring, 100), RP_ERR_PEER);
    assert_non_null(strstr(ring.fault.text, "another controller goes on with it"));
    ring_close(&ring);
}

/* A board may speak more than we do, and not all else: then both are named, and who is older. */
static void versions_of_the_wire_must_meet(void **state) {
    (void)state;
    char both[200];
    open_ring(NULL);
    ring.board[1].wire = (rp_wire_range){1, RP_WIRE_MAX + 5};
    expect_ok(ring_end(&ring, 200));
    ring_close(&ring);
    open_ring(NULL);
    ring.board[1].wire = (rp_wire_range){RP_WIRE_MAX + 1, RP_WIRE_MAX + 5};
    expect_err(ring_end(&ring, 100), RP_ERR_PEER);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    (void)snprintf(both, sizeof both,
                   "board 1 (ringpipe 7.0) speaks wire versions %d to %d, this host (ringpipe %s) "
                   "and the other boards %d to %d: update ringpipe on the host",
                   RP_WIRE_MAX + 1, RP_WIRE_MAX + 5, RP_VERSION, RP_WIRE_MIN, RP_WIRE_MAX);
    assert_non_null(strstr(ring.fault.text, both));
    ring_close(&ring);
}

/* A board that was built before plans were sent is refused at HELLO, before it builds anything. */
static void a_board_must_read_plans(void **state) {
    (void)state;
    open_ring(NULL);
    ring.board[1].features = 0;
    expect_err(ring_end(&ring, 100), RP_ERR_PEER);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    assert_non_null(strstr(ring.fault.text, "board 1 (ringpipe 7.0) does not read a plan"));
    assert_non_null(strstr(ring.fault.text, "update ringpipe on the board"));
    assert_int_equal(ring.board[1].orders[RP_KIND_ASSIGN], 0);
    ring_close(&ring);
}

/* ---- a full link ----------------------------------------------------------------------------- */

/* Behind a full link messages wait, in order and no more than the bound; then they are a fault. */
static void messages_wait_for_room(void **state) {
    (void)state;
    uint32_t sent = 0;
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    rp_ring *boards = &ring.c->ring;
    test_board *b = &ring.board[0];
    while (boards->board[0].pending_count < RP_RING_PENDING_MAX) {
        const rp_Frame frame = {.which_body = RP_KIND_STOP, .body.stop = {.step = sent++}};
        expect_ok(rp_ring_post(boards, 0, &frame, NULL));
        assert_true(sent < 1000);
    }
    const rp_Frame more = {.which_body = RP_KIND_STOP, .body.stop = {.step = sent}};
    expect_err(rp_ring_post(boards, 0, &more, NULL), RP_ERR_FAULT);
    rp_Frame offered = more;
    expect_err(rp_ring_offer(boards, 0, &offered, NULL, 0), RP_ERR_AGAIN);
    const int64_t late_ns = rp_clock_now_ns(&ring.clock) + RP_RING_HELLO_NS + 1;
    assert_true(rp_ring_deadline_ns(boards) <= late_ns);
    expect_err(rp_ring_step(boards, 0, late_ns), RP_ERR_TIMEOUT);
    assert_string_equal(rp_err_message(), "board 0 accepts no message");
    for (uint32_t got = 0, rounds = 0; got < sent; rounds++) {
        rp_message *message;
        assert_true(rounds < 1000);
        expect_ok(rp_link_step(b->control));
        while (rp_link_recv(b->control, &message) == RP_OK) {
            if (rp_frame_kind(&message->frame) == RP_KIND_STOP) {
                assert_int_equal(message->frame.body.stop.step, got++);
            }
            rp_link_release(b->control, &message);
        }
        expect_ok(rp_ring_step(boards, 0, rp_clock_now_ns(&ring.clock)));
        ring.clock.stepped_ns += RP_NS_PER_MS;
    }
    assert_int_equal(boards->board[0].pending_count, 0);
    ring_close(&ring);
}

/* What a board says that its codecs lose counts where it is a number, of a stage that it has. */
static void losses_of_boards_are_checked(void **state) {
    (void)state;
    static const rp_CodecLoss bad[] = {{.lost = -1, .all = 1},
                                       {.lost = 0.25, .all = (double)INFINITY},
                                       {.lost = (double)NAN, .all = 1}};
    rp_Finished end = {.loss_count = 3};
    memcpy(end.loss, bad, sizeof bad);
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    expect_ok(rp_losses_take(ring.c, 0, &end));
    assert_true(isnan(rp_losses_of_wire(ring.c, 0, 1)));
    end.loss[1] = (rp_CodecLoss){.lost = 0.25, .all = 1};
    expect_ok(rp_losses_take(ring.c, 0, &end));
    assert_true(rp_losses_of_wire(ring.c, 0, 1) == 0.5);
    assert_true(isnan(rp_losses_of_wire(ring.c, 1, 0)));
    end.loss[2].stage = 1;
    expect_err(rp_losses_take(ring.c, 0, &end), RP_ERR_PEER);
    end.loss[2].stage = UINT32_MAX;
    expect_err(rp_losses_take(ring.c, 0, &end), RP_ERR_PEER);
    ring_close(&ring);
}

/* Sums and differences of them must fit, whatever a board sends. */
static void numbers_of_boards_are_bounded(void **state) {
    (void)state;
    static const int64_t no_times[] = {INT64_MIN, INT64_MIN / 3, INT64_MAX / 3, INT64_MAX};
    const rp_control_handler hello = rp_control_handler_of(RP_KIND_HELLO, RP_CONTROL_HELLO);
    const rp_control_handler ready = rp_control_handler_of(RP_KIND_READY, RP_CONTROL_ASSIGN);
    const rp_control_handler finished = rp_control_handler_of(RP_KIND_FINISHED, RP_CONTROL_TRAIN);
    static const rp_message absurd_ready = {
        .frame = {.which_body = RP_KIND_READY,
                  .body.ready = {.device_bytes = UINT64_MAX,
                                 .weight_bytes = UINT64_MAX,
                                 .resident_bytes = (uint64_t)1 << 63}}};
    static const uint64_t applied[1];
    rp_message absurd_end = {.frame = {.which_body = RP_KIND_FINISHED,
                                       .body.finished = {.busy_ns = INT64_MAX,
                                                         .microbatches = UINT64_MAX,
                                                         .device_bytes_max = UINT64_MAX,
                                                         .in_flight_bytes = UINT64_MAX,
                                                         .link_count = 2,
                                                         .link = {{.peer = UINT32_MAX, .bytes = 5},
                                                                  {.peer = 1,
                                                                   .bytes = UINT64_MAX,
                                                                   .busy_s = (double)NAN}}}},
                             .part = {rp_part_of_array(RP_DTYPE_U64, applied, 1)},
                             .part_count = 1};
    open_ring(NULL);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    rp_board_state *board = &ring.c->ring.board[0];
    board->ready = false;
    board->facts_before.busy_ns = 5;
    expect_ok(ready(ring.c, 0, &absurd_ready));
    expect_err(finished(ring.c, 0, &absurd_end), RP_ERR_PEER); /* 0 would mean: none in flight */
    absurd_end.frame.body.finished.in_flight_bytes = 0;
    board->finished = false;
    expect_ok(finished(ring.c, 0, &absurd_end));
    assert_int_equal(board->device_bytes + board->weight_bytes + board->resident_bytes, 0);
    assert_int_equal(board->facts.busy_ns, 5);
    assert_int_equal(board->facts.microbatches + board->facts.device_bytes_max, 0);
    assert_int_equal(board->in_flight_bytes + board->facts.link_count, 1);
    assert_int_equal(board->facts.link[0].peer, 1);
    assert_int_equal(board->facts.link[0].bytes, 0);
    assert_true(board->facts.link[0].busy_s == 0);
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++) {
        const rp_message greeting = {.frame = {.which_body = RP_KIND_HELLO,
                                               .body.hello = {.clock_ns = no_times[i],
                                                              .wire_min = RP_WIRE_MIN,
                                                              .wire_max = RP_WIRE_MAX,
                                                              .features = RP_WIRE_FEATURES}}};
        const rp_trace_record op = {.start_ns = no_times[i], .end_ns = no_times[i]};
        uint8_t bytes[RP_TRACE_BYTES];
        rp_trace_pack(&op, bytes);
        const rp_part trace = rp_part_of_bytes(bytes, sizeof bytes);
        expect_err(rp_controller_record_ops(ring.c, 0, &trace), RP_ERR_PEER);
        board->hello = false;
        board->device = NULL;
        expect_err(hello(ring.c, 0, &greeting), RP_ERR_PEER);
    }
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
        if (ring.c->state != RP_CONTROL_ENDED) {
            ring_step(&ring, RP_NS_PER_MS);
        }
        if (other.c->state != RP_CONTROL_ENDED) {
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
    assert_non_null(strstr(ring.fault.text, "another controller goes on with this run"));
    assert_int_equal(access(in_folder("out/checkpoint/step-0000000004.safetensors"), F_OK), -1);
    ring_close(&ring);
}

/* ---- what it says of itself ------------------------------------------------------------------ */

static void it_says_what_it_waits_for(void **state) {
    (void)state;
    rp_controller_waiting why;
    open_ring(NULL);
    ring.mute = RP_KIND_ASSIGN;
    assert_true(ring_reach(&ring, RP_CONTROL_ASSIGN));
    const int64_t since_ns = ring.c->now_ns;
    ring_step(&ring, RP_NS_PER_S);
    ring_step(&ring, RP_NS_PER_S);
    rp_controller_waiting_of(ring.c, &why);
    assert_string_equal(why.state, "assign");
    assert_string_equal(why.what, "ready");
    assert_string_equal(why.board, "0");
    assert_int_equal(why.since_ns, since_ns);
    ring_close(&ring);
}

/* Every state but the last can be left, is waited in for a bounded time, and has a name. */
static void the_table_is_complete(void **state) {
    (void)state;
    for (uint32_t s = 0; s < RP_CONTROL_STATES; s++) {
        const rp_control_state *row = &rp_control_states[s];
        assert_non_null(row->name);
        assert_non_null(row->waits_for);
        assert_true(row->enter && row->step);
        assert_true(s == RP_CONTROL_ENDED || row->next != 0);
        assert_true((row->next & UINT32_C(1) << RP_CONTROL_START) == 0);
        assert_true(row->timeout_ns > 0 || s >= RP_CONTROL_RECOVER);
        assert_true(row->timeout_ns == 0 || row->has_done || row->late);
        /* behind a fault: see test_recover.c, test_adopt.c; of lanes: cli/test_lanes.py */
        bool reached = s >= RP_CONTROL_RESTART || s == RP_CONTROL_ADOPT || s == RP_CONTROL_ROUND;
        for (size_t i = 0; i < WAITS; i++) {
            reached |= waits[i].state == s;
        }
        assert_true(reached);
    }
}

/* A state's paragraph in PROTOCOL.md, from the table. */
static void describe_state(rp_control_state_id s, char *out, size_t bytes) {
    const rp_control_state *row = &rp_control_states[s];
    char then[200] = "";
    char takes[300] = "";
    for (uint32_t n = 0; n < RP_CONTROL_STATES; n++) {
        if (row->next & UINT32_C(1) << n) {
            const size_t used = strlen(then);
            (void)snprintf(then + used, sizeof then - used, " %s", rp_control_states[n].name);
        }
    }
    for (uint32_t kind = 1; kind < 64 && s < RP_CONTROL_RECOVER; kind++) {
        const bool everywhere = kind == RP_KIND_HELLO || kind == RP_KIND_FAULT ||
                                kind == RP_KIND_COPIED || kind == RP_KIND_TRIAL_DONE ||
                                kind == RP_KIND_TRIAL_BYTES;
        if (!everywhere && rp_control_handler_of((rp_kind)kind, s)) {
            const size_t used = strlen(takes);
            (void)snprintf(takes + used, sizeof takes - used, " %s", rp_kind_name((rp_kind)kind));
        }
    }
    int used = snprintf(out, bytes, "    %-10s ->%s\n", row->name, then[0] ? then : " nowhere");
    if (row->timeout_ns > 0) {
        used += snprintf(out + used, bytes - (size_t)used, "               waits for %s, %d s\n",
                         row->waits_for, (int)(row->timeout_ns / RP_NS_PER_S));
    }
    if (takes[0]) {
        (void)snprintf(out + used, bytes - (size_t)used, "               takes%s\n", takes);
    }
}

/* Print what should stand there, so that it can be put there. */
static void the_protocol_page_has_the_table(void **state) {
    (void)state;
    static char text[1 << 17];
    char all[8192] = "";
    char path[600];
    const char *top = getenv("RP_SOURCE_DIR");
    assert_non_null(top);
    (void)snprintf(path, sizeof path, "%s/firmware/wire/PROTOCOL.md", top);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_int_equal(fgetc(file), EOF); /* all of it */
    (void)fclose(file);
    for (uint32_t s = 0; s < RP_CONTROL_STATES; s++) {
        const size_t used = strlen(all);
        describe_state((rp_control_state_id)s, all + used, sizeof all - used);
    }
    const char *begin = strstr(text, "<!-- controller states: begin -->");
    const char *end = strstr(text, "<!-- controller states: end -->");
    const char *found = strstr(text, all);
    if (!begin || !end || !found || found < begin || found > end) {
        (void)fprintf(stderr, "PROTOCOL.md needs, between the marks:\n%s", all);
        fail();
    }
}

/* The plan names every layer, so its text grows with the model. */
static void a_plan_of_many_layers_is_sent(void **state) {
    (void)state;
    ring_prepare_deep(&ring, "out", MOST_LAYERS);
    ring_set(&ring, "cut=[dense_layer_1000]");
    ring_open(&ring);
    assert_true(ring_reach(&ring, RP_CONTROL_TRAIN));
    assert_int_equal(ring.c->run.model->layer_count, MOST_LAYERS + 3);
    assert_true(strlen(ring.c->plan_text) > (size_t)100 << 10);
    ring_close(&ring);
}

static void a_text_that_no_message_takes_is_refused(void **state) {
    (void)state;
    enum { MOST = 4 << 20 };
    char *text = malloc(MOST + 2);
    assert_non_null(text);
    memset(text, 'a', MOST + 1);
    text[MOST + 1] = '\0';
    expect_err(rp_ring_check_text("the plan", text), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "the text of the plan has 4194305 bytes, a message to "
                                             "a board takes at most 4194304"));
    text[MOST] = '\0';
    expect_ok(rp_ring_check_text("the plan", text));
    free(text);
}

/* Who was to dial in is told apart from who did not answer, with what may help. */
/* A ring of `far`, which dials this host, and `near`. */
static void set_roster_that_dials(void) {
    static const char roster[] =
        "boards:\n"
        "  - {name: far, address: dials, key: '0123456789012345678901234567890123456789'}\n"
        "  - {name: near, address: 'tcp://near:7', key: '0123456789012345678901234567890123456780'}"
        "\n";
    static char set[600]; /* the ring keeps it */
    (void)unlink(in_folder("lab.yaml"));
    append("lab.yaml", roster, sizeof roster - 1);
    (void)snprintf(set, sizeof set, "ring={roster: '%s', listen: 'tcp://127.0.0.1:7100'}",
                   in_folder("lab.yaml"));
    ring_set(&ring, set);
}

static void a_board_that_does_not_dial_is_named(void **state) {
    (void)state;
    ring_prepare(&ring, "out");
    set_roster_that_dials();
    ring_open(&ring);
    expect_err(ring_end(&ring, 100), RP_ERR_TIMEOUT);
    assert_int_equal(ring.failed, RP_CONTROL_HELLO);
    assert_string_equal(ring.fault.text,
                        "board far did not dial in within 30 s; on the board: `ringpipe-agent "
                        "--host ADDRESS:7100`, and are the ports 7100 and the next one of this "
                        "machine reachable from there?");
    ring_close(&ring);
}

/* A board whose software does not know the word in a plan would dial who can not be dialled. */
static void a_board_must_know_of_dialling(void **state) {
    (void)state;
    for (int knows = 0; knows < 2; knows++) {
        ring_prepare(&ring, "out");
        rp_link_options options = {.name = "control",
                                   .connect = "tcp://127.0.0.1:7100",
                                   .window = 1,
                                   .send_window = 1,
                                   .part_bytes_max = 1 << 20};
        rp_link_close(&ring.board[0].control);
        expect_ok(rp_link_open(ring.links, &options, &ring.board[0].control));
        options.connect = NULL;
        options.bind = "tcp://near:7";
        rp_link_close(&ring.board[1].control);
        expect_ok(rp_link_open(ring.links, &options, &ring.board[1].control));
        ring.board[1].features = RP_WIRE_FEATURES & ~(knows ? 0 : RP_WIRE_FEATURE_DIALS);
        set_roster_that_dials();
        ring_open(&ring);
        assert_true(ring_reach(&ring, knows ? RP_CONTROL_ASSIGN : RP_CONTROL_CLOSE));
        if (!knows) {
            assert_non_null(strstr(ring.fault.text, "does not know of boards that dial, as far"));
        }
        ring_close(&ring);
    }
}

/* A board whose software has no codecs would read other bytes than were sent. */
static void a_board_must_know_of_codecs(void **state) {
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        ring_prepare(&ring, "out");
        ring.board[1].features = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_CODECS;
        if (asked) {
            ring_set(&ring, "links.codec=bf16");
        }
        ring_open(&ring);
        assert_true(ring_reach(&ring, asked ? RP_CONTROL_CLOSE : RP_CONTROL_ASSIGN));
        if (asked) {
            assert_non_null(strstr(ring.fault.text, "knows no codec, and links asks for one"));
        }
        ring_close(&ring);
    }
}

/* One that does not normalise gets f32, unless bytes are asked for. */
static void older_boards_get_floats(void **state) {
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        ring_prepare(&ring, "out");
        ring.board[1].features = RP_WIRE_FEATURES & ~RP_WIRE_FEATURE_UINT8;
        if (asked) {
            ring_set(&ring, "links.inputs=uint8");
        }
        ring_open(&ring);
        assert_true(ring_reach(&ring, asked ? RP_CONTROL_CLOSE : RP_CONTROL_ASSIGN));
        if (asked) {
            assert_non_null(strstr(ring.fault.text, "knows no codec uint8"));
        } else {
            assert_int_equal(rp_plan_input_codec(ring.c->plan), RP_CODEC_F32);
        }
        ring_close(&ring);
    }
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

/* A model without statistics of a batch: its stages may be shared. */
static void prepare_shares(void) {
    static const char model[] = "input: data\nlayers:\n"
                                "  - {name: fc, kind: dense, out: 8}\n"
                                "  - {name: fc2, kind: dense, out: 8}\n"
                                "  - {name: out, kind: dense, out: classes}\n";
    ring_prepare(&ring, "out");
    (void)unlink(in_folder("model.yaml"));
    append("model.yaml", model, sizeof model - 1);
    ring_set(&ring, "train.epochs=4");
}

/* Boards that share a stage are tried, too; the run goes on with what was fastest. */
static void plans_with_shares_are_tried(void **state) {
    (void)state;
    prepare_shares();
    ring_set(&ring, "plan={share: 2, trial: 1}");
    ring_open(&ring);
    expect_ok(ring_end(&ring, 2000));
    const char *log = slurp("out/log.jsonl", NULL);
    assert_non_null(strstr(log, "some of them shared"));
    assert_null(strstr(log, "fault"));
    assert_non_null(strstr(log, "cut [] on 2 boards tried: "));
    assert_non_null(strstr(log, " is kept, the fastest of "));
    assert_true(ring.board[0].orders[RP_KIND_ASSIGN] > 1);
    assert_int_equal(ring.board[0].orders[RP_KIND_ASSIGN], ring.board[1].orders[RP_KIND_ASSIGN]);
    ring_close(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_ring_over_a_network_has_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_plan_of_many_layers_is_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_that_does_not_dial_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_must_know_of_dialling, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_must_know_of_codecs, setup, teardown),
        cmocka_unit_test_setup_teardown(older_boards_get_floats, setup, teardown),
        cmocka_unit_test(a_text_that_no_message_takes_is_refused),
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
        cmocka_unit_test(every_kind_is_taken_or_refused),
        cmocka_unit_test_setup_teardown(a_message_at_a_wrong_time_is_refused_with_a_text, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_message_that_comes_twice_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(an_older_term_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(versions_of_the_wire_must_meet, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_must_read_plans, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_wait_for_room, setup, teardown),
        cmocka_unit_test_setup_teardown(losses_of_boards_are_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_of_boards_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(two_controllers_in_one_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_has_one_controller, setup, teardown),
        cmocka_unit_test_setup_teardown(who_has_begun_later_saves, setup, teardown),
        cmocka_unit_test_setup_teardown(it_says_what_it_waits_for, setup, teardown),
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(the_protocol_page_has_the_table),
        cmocka_unit_test_setup_teardown(plans_with_shares_are_tried, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
