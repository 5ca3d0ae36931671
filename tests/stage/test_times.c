/* Steps of several lengths: samples of fewer tokens give the losses and gradients that they give
 * when they are padded to the longest, with the same memory, and parcels of other lengths are
 * refused. */
#include "agent/ring.h"

enum { TIME = 8, SHORT = 3, N = 5, OUT = 6, CLASSES = 3, FLOATS = 1 << 10 };

static const char model[] =
    "input: {shape: [8], type: i32}\nlayers:\n"
    "  - {name: words, kind: embedding, count: 9, out: 6, padding: 0}\n"
    "  - {name: places, kind: position, length: 8}\n"
    "  - {name: drop, kind: dropout, p: 0.2}\n"
    "  - {name: look, kind: attention, from: [drop, drop, drop, data], heads: 2, padding: 0}\n"
    "  - {name: fc, kind: linear, out: 6}\n"
    "  - {name: pooled, kind: seqpool, from: [fc, data], padding: 0}\n"
    "  - {name: out, kind: dense, out: 3}\n";

static const char job_format[] =
    "sample: [8]\nsample_type: i32\ntokens: 9\nclasses: 3\nseed: 3\nbatch: 6\nmicrobatch: 6\n"
    "epoch_samples: 60\nsteps: 10\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.5}\n"
    "schedule: %s\ntimes: [3, 5]\n%s";

/* Results of a step on two stages. */
typedef struct {
    float weights[FLOATS], loss[RP_LOSS_RESULT * N], crossing[N * TIME * OUT];
    size_t count;
} result;

/* Samples of up to SHORT tokens, each padded to `time`. */
static void fill_ids(int32_t *id, uint32_t time) {
    for (uint32_t i = 0; i < N * time; i++) {
        const uint32_t s = i / time;
        const uint32_t t = i % time;
        id[i] = t <= s % SHORT ? 1 + (int32_t)((3 * s + t) % 8) : 0;
    }
}

static void open_ring(test_ring *ring, const char *schedule, const char *more) {
    char job[512];
    (void)snprintf(job, sizeof job, job_format, schedule, more);
    test_ring_open(ring, RP_GEMM_PANEL, model, job, "[pooled]", 2);
}

/* Indices of the sequence and of the ids among the tensors that cross the cut. */
static void find_parts(const test_ring *ring, uint32_t *rows, uint32_t *ids) {
    const rp_boundary_tensors up =
        rp_layout_boundary(rp_stage_layout(ring->board[0].stage), true, false);
    assert_int_equal(up.count, 2);
    *ids = up.type[0] == RP_I32 ? 0 : 1;
    *rows = 1 - *ids;
}

static void run_backward(rp_stage *stage, bool splits, const rp_stage_piece *in, void *const *out) {
    rp_op op = {.kind = splits ? RP_OP_BACKWARD_INPUT : RP_OP_BACKWARD, .samples = {0, N}};
    expect_ok(rp_stage_backward(stage, &op, in, 1, out));
    op.kind = RP_OP_BACKWARD_WEIGHT;
    if (splits) {
        expect_ok(rp_stage_backward(stage, &op, NULL, 0, out));
    }
    op.kind = RP_OP_UPDATE;
    expect_ok(rp_stage_update(stage, &op, 1.0f, false));
}

/* A step of samples of `time` tokens; TIME is sent as 0. */
static void run_step(const char *schedule, const char *more, uint32_t time, result *out) {
    static int32_t x[N * TIME];
    static int32_t ids[N * TIME];
    static float dx[N * TIME * OUT];
    static const int32_t label[N] = {0, 1, 2, 1, 0};
    const uint32_t sent = time == TIME ? 0 : time;
    const rp_op op = {.kind = RP_OP_FORWARD, .samples = {0, N}};
    uint32_t rows;
    uint32_t second;
    test_ring ring;
    *out = (result){0};
    open_ring(&ring, schedule, more);
    find_parts(&ring, &rows, &second);
    fill_ids(x, time);
    const void *const input[] = {x};
    const void *const target[] = {label};
    void *crossing[2];
    crossing[rows] = out->crossing;
    crossing[second] = ids;
    const void *const arrived[] = {crossing[0], crossing[1]};
    const void *const gradient[] = {dx};
    const bool splits = ring.board[0].job.method.kind->split_backward;
    const rp_stage_piece first = {.samples = op.samples, .part = input, .time = sent};
    const rp_stage_piece middle = {.samples = op.samples, .part = arrived, .time = sent};
    const rp_stage_piece labels = {.samples = op.samples, .part = target, .time = sent};
    const rp_stage_piece back = {.samples = op.samples, .part = gradient, .time = sent};
    rp_stage *const stage[] = {ring.board[0].stage, ring.board[1].stage};
    expect_ok(rp_stage_forward(stage[0], &op, &first, 1, crossing));
    expect_ok(rp_stage_drain(stage[0]));
    assert_memory_equal(ids, x, N * time * sizeof *x);
    expect_ok(rp_stage_forward(stage[1], &op, &middle, 1, NULL));
    assert_int_equal(rp_stage_time_of(stage[1], &op), sent);
    run_backward(stage[1], splits, &labels, (void *[]){dx});
    expect_ok(rp_stage_drain(stage[1]));
    run_backward(stage[0], splits, &back, NULL);
    expect_ok(rp_stage_results(stage[1], out->loss, N));
    expect_ok(rp_stage_drain(stage[0]));
    out->count = test_ring_weights(&ring, out->weights, FLOATS);
    test_ring_close(&ring);
}

static void compare_floats(const float *got, const float *want, size_t count) {
    for (size_t i = 0; i < count; i++) {
        expect_close(got[i], want[i], 1e-6, 1e-5);
    }
}

static void padding_changes_nothing(void **state) {
    (void)state;
    static const char *const schedules[] = {"gpipe", "zb-h1"};
    static const char *const more[] = {"", "recompute: all\n", "offload: host\n"};
    static result whole;
    static result cut;
    static result other;
    for (uint32_t s = 0; s < 2; s++) {
        run_step(schedules[s], more[0], TIME, &whole);
        run_step(schedules[s], more[0], SHORT, &cut);
        assert_true(whole.count > 0 && cut.count == whole.count);
        assert_true(expect_finite_bits((double)whole.loss[0]) && whole.loss[0] > 0);
        compare_floats(cut.weights, whole.weights, whole.count);
        compare_floats(cut.loss, whole.loss, RP_LOSS_RESULT * N);
        for (uint32_t i = 0; i < N * SHORT * OUT; i++) {
            const uint32_t n = i / (SHORT * OUT);
            const uint32_t at = i % (SHORT * OUT);
            if (at < (n % SHORT + 1) * OUT) { /* a token; no layer reads the rest */
                expect_close(cut.crossing[i], whole.crossing[n * TIME * OUT + at], 1e-6, 1e-5);
            }
        }
        for (uint32_t k = 1; k < (s == 0 ? 3 : 1); k++) {
            run_step(schedules[s], more[k], SHORT, &other);
            assert_memory_equal(other.weights, cut.weights, cut.count * sizeof *cut.weights);
        }
        run_step(schedules[s], more[0], 5, &other); /* a longer bucket than needed */
        compare_floats(other.weights, whole.weights, whole.count);
    }
}

static void expect_message(const char *part) {
    if (!strstr(rp_err_message(), part)) {
        fail_msg("'%s' is not in '%s'", part, rp_err_message());
    }
}

static void other_lengths_are_refused(void **state) {
    (void)state;
    static int32_t x[N * TIME];
    static float y[N * TIME * OUT];
    const rp_op op = {.kind = RP_OP_FORWARD, .samples = {0, N}};
    const rp_op back = {.kind = RP_OP_BACKWARD, .samples = {0, N}};
    const void *const part[] = {x, x};
    const rp_stage_piece mixed[] = {{.samples = {0, 2}, .part = part, .time = 3},
                                    {.samples = {2, 3}, .part = part, .time = 0}};
    const rp_stage_piece good = {.samples = {0, N}, .part = part, .time = 3};
    const rp_stage_piece longer = {.samples = {0, N}, .part = part, .time = 5};
    test_ring ring;
    open_ring(&ring, "gpipe", "");
    rp_stage *stage = ring.board[0].stage;
    expect_err(rp_stage_forward_only(stage, &op, mixed, 2, (void *[]){y, y}, false), RP_ERR_PEER);
    expect_message("samples of 3 and of 0 tokens");
    expect_ok(rp_stage_forward(stage, &op, &good, 1, (void *[]){y, y}));
    expect_err(rp_stage_backward(stage, &back, &longer, 1, NULL), RP_ERR_PEER);
    expect_message("samples of 5 tokens, expected 3");
    test_ring_close(&ring);
}

static void jobs(void **state) {
    (void)state;
    static const char *const bad[] = {
        "[]", "[8]", "[5, 3]", "[3, 3]", "[0]", "3", "[1, 2, 3, 4, 5, 6, 7, 8, 9]"};
    char text[512];
    rp_arena arena;
    rp_job job;
    rp_arena_init(&arena, "jobs", 0);
    (void)snprintf(text, sizeof text, job_format, "gpipe", "");
    expect_ok(test_parse(&arena, model, text, "[pooled]", 2, 1, &job));
    assert_int_equal(job.model->view_count, 2);
    assert_int_equal(rp_job_target_width_at(&job, 3), 1);
    char *list = strstr(text, "[3, 5]");
    assert_non_null(list);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(list, sizeof text - (size_t)(list - text), "%s\n", bad[i]);
        expect_err(test_parse(&arena, model, text, "[pooled]", 2, 1, &job), RP_ERR_USAGE);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_changes_nothing),
        cmocka_unit_test(other_lengths_are_refused),
        cmocka_unit_test(jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
