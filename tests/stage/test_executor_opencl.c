/* The opencl executor behind its port: samples that come in pieces, marks, refusals. */
#include "agent/ring.h"

static const char model[] = "input: [4]\nlayers:\n  - {name: fc1, kind: dense, out: 5}\n"
                            "  - {name: fc2, kind: dense, out: 3}\n";
static const char job[] = "sample: [4]\nclasses: 3\nseed: 1\nbatch: 8\nmicrobatch: 8\n"
                          "epoch_samples: 80\nsteps: 10\nloss: cross-entropy\n"
                          "optimizer: {kind: sgd, lr: 0.1}\nschedule: gpipe\n";

static const rp_op forward = {.kind = RP_OP_FORWARD, .samples = {0, 8}};

static void fill_inputs(float *x, size_t count) {
    for (size_t i = 0; i < count; i++) {
        x[i] = test_input(i, 0);
    }
}

/* One forward and backward of the first of two stages; the gradient of its weights. */
static void run_once(const rp_stage_piece *in, uint32_t in_count, const rp_stage_piece *dy,
                     uint32_t dy_count, float y[40], float weights[20]) {
    test_ring ring;
    rp_op op = forward;
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[fc2]", 2);
    rp_stage *stage = ring.board[0].stage;
    expect_ok(rp_stage_forward(stage, &op, in, in_count, (void *[]){y}));
    op.kind = RP_OP_BACKWARD;
    expect_ok(rp_stage_backward(stage, &op, dy, dy_count, NULL));
    op.kind = RP_OP_UPDATE;
    expect_ok(rp_stage_update(stage, &op, 1.0f, false));
    expect_ok(rp_stage_drain(stage));
    expect_ok(rp_stage_tensor_read(stage, 0, 0, 20, weights));
    test_ring_close(&ring);
}

static void pieces_are_the_whole(void **state) {
    (void)state;
    float x[12 * 4], dy[8 * 5], y[2][40], weights[2][20];
    fill_inputs(x, 12 * 4);
    fill_inputs(dy, 8 * 5);
    const void *part[] = {x, x + 4, x + 3 * 4, dy, dy + 5 * 5};
    const rp_stage_piece whole[] = {{.samples = {0, 8}, .part = &part[0]},
                                    {.samples = {0, 8}, .part = &part[3]}};
    /* out of order, and the last one goes beyond the op */
    const rp_stage_piece in[] = {{.samples = {1, 2}, .part = &part[1]},
                                 {.samples = {0, 1}, .part = &part[0]},
                                 {.samples = {3, 9}, .part = &part[2]}};
    const rp_stage_piece gradients[] = {{.samples = {0, 5}, .part = &part[3]},
                                        {.samples = {5, 3}, .part = &part[4]}};
    run_once(&whole[0], 1, &whole[1], 1, y[0], weights[0]);
    run_once(in, 3, gradients, 2, y[1], weights[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
}

/* A sample that is missing, or there twice, is seen before anything is computed. */
static void pieces_must_fit(void **state) {
    (void)state;
    static const rp_range wrong[][2] = {
        {{0, 4}, {5, 3}}, {{0, 5}, {4, 4}}, {{0, 4}, {0, 4}}, {{8, 8}, {0, 7}}, {{0, 8}, {0, 8}}};
    float x[8 * 4], y[40];
    test_ring ring;
    fill_inputs(x, 8 * 4);
    const void *part[] = {x};
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[fc2]", 2);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const rp_stage_piece in[] = {{.samples = wrong[i][0], .part = part},
                                     {.samples = wrong[i][1], .part = part}};
        expect_err(
            rp_stage_forward_only(ring.board[0].stage, &forward, in, 2, (void *[]){y}, false),
            RP_ERR_PEER);
    }
    test_ring_close(&ring);
}

static void a_mark_passes_behind_its_ops(void **state) {
    (void)state;
    const rp_clock clock = rp_clock_real();
    const int64_t start_ns = rp_clock_now_ns(&clock);
    float x[8 * 4], y[40] = {0};
    int64_t end_ns = 0;
    bool done = false;
    rp_mark mark;
    test_ring ring;
    fill_inputs(x, 8 * 4);
    const void *part[] = {x};
    test_ring_open(&ring, RP_GEMM_PANEL, model, job, "[fc2]", 2);
    rp_stage *stage = ring.board[0].stage;
    assert_true(rp_stage_facts(stage).handle >= 0);
    expect_ok(rp_stage_forward(stage, &forward, &(rp_stage_piece){.samples = {0, 8}, .part = part},
                               1, (void *[]){y}));
    expect_ok(rp_stage_mark(stage, &mark));
    while (!done) {
        expect_ok(rp_stage_poll(stage, &mark, &done, &end_ns));
    }
    assert_true(y[0] != 0);
    assert_true(end_ns > start_ns && end_ns <= rp_clock_now_ns(&clock));
    rp_stage_release(stage, &mark);
    test_ring_close(&ring);
}

static void kinds_by_name(void **state) {
    (void)state;
    assert_string_equal(rp_executor_find("opencl")->name, "opencl");
    assert_null(rp_executor_find("abacus"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_the_whole),
        cmocka_unit_test(pieces_must_fit),
        cmocka_unit_test(a_mark_passes_behind_its_ops),
        cmocka_unit_test(kinds_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
