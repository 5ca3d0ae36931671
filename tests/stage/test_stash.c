/* What a forward saved, addressed by sample: its backward may come in parts. */
#include "agent/ring.h"

#include <math.h>

#include "stage/stage_own.h"

enum { MICRO = 32, IMAGE = 2 * 6 * 6, MIDDLE = 36, CLASSES = 5, FLOATS = 4096 };

/* Dense, convolutions (as products, direct, with a fused relu), both poolings, dropout, a residual
 * sum, a concatenation, activations that need x or y or lie in place. */
static const char model[] =
    "input: [2, 6, 6]\nlayers:\n"
    "  - {name: conv1, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1, groups: 4}\n"
    "  - {name: gelu, kind: gelu}\n"
    "  - {name: sum, kind: add, from: [gelu, relu1]}\n"
    "  - {name: drop1, kind: dropout, p: 0.3}\n"
    "  - {name: max, kind: maxpool, kernel: 2, stride: 2}\n"
    "  - {name: mean, kind: avgpool, kernel: 3, stride: 2, pad: 1, from: sum}\n"
    "  - {name: both, kind: concat, from: [max, mean]}\n"
    "  - {name: conv3, kind: conv2d, out: 4, kernel: 1}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: fc1, kind: dense, out: 24}\n"
    "  - {name: tanh, kind: tanh}\n"
    "  - {name: drop2, kind: dropout}\n"
    "  - {name: fc2, kind: dense, out: 5}\n";
static const char statistics[] = "input: [2, 6, 6]\nlayers:\n"
                                 "  - {name: conv1, kind: conv2d, out: 1, kernel: 3, pad: 1}\n"
                                 "  - {name: bn1, kind: batchnorm}\n"
                                 "  - {name: flat, kind: flatten}\n"
                                 "  - {name: fc1, kind: dense, out: 24}\n"
                                 "  - {name: fc2, kind: dense, out: 5}\n";
static const char job[] = "sample: [2, 6, 6]\nclasses: 5\nseed: 3\nbatch: 32\nmicrobatch: 32\n"
                          "epoch_samples: 320\nsteps: 10\nloss: cross-entropy\n"
                          "optimizer: {kind: sgd, lr: 0.1}\nschedule: ";

typedef struct {
    float y[MICRO * MIDDLE], dx[MICRO * MIDDLE]; /* what leaves the stage */
    float gradient[FLOATS];
    size_t count;
    rp_err err;
} result;

static float x[MICRO * IMAGE], between[MICRO * MIDDLE];
static int32_t classes[MICRO];

static rp_err run_part(rp_stage *stage, rp_op_kind kind, rp_range samples, const rp_stage_piece *in,
                       float *out, uint32_t width) {
    const rp_op op = {.kind = kind, .step = 4, .samples = samples};
    void *outs[] = {out + samples.first * width};
    return kind == RP_OP_FORWARD
               ? rp_stage_run_forward(stage, &op, in, 1, outs, (rp_stage_mode){.training = true})
               : rp_stage_run_backward(stage, &op, in, 1, outs);
}

static rp_err run_parts(rp_stage *stage, rp_op_kind kind, uint32_t each, const void *in, float *out,
                        uint32_t width) {
    const rp_stage_piece piece = {.samples = {0, MICRO}, .part = &in};
    rp_err err = RP_OK;
    for (uint32_t first = 0; err == RP_OK && first < MICRO; first += each) {
        const uint32_t count = MICRO - first < each ? MICRO - first : each;
        err = run_part(stage, kind, (rp_range){first, count}, &piece, out, width);
    }
    return err;
}

/* Microbatches of `forward` samples in, gradients of `backward` samples at once; the stage's own
 * weight gradients, all in a row. */
static void run_stage(const char *text, const char *schedule, uint32_t k, uint32_t forward,
                      uint32_t backward, result *out) {
    const bool split = strcmp(schedule, "zb-h1") == 0;
    char job_text[512];
    test_ring ring;
    (void)snprintf(job_text, sizeof job_text, "%s%s\n", job, schedule);
    if (forward < MICRO && schedule[0] != '{') { /* as many slots as there are forwards */
        char *micro = strstr(job_text, "microbatch: 32");
        (void)!memcpy(micro, "microbatch: 8 ", strlen("microbatch: 8 "));
    }
    *out = (result){0};
    test_ring_open(&ring, RP_GEMM_PANEL, text, job_text, "[fc1]", 2);
    rp_stage *stage = ring.board[k].stage;
    stage->seen = (rp_block){RP_BLOCK_WEIGHTS, 0};
    const void *in = k ? (const void *)between : (const void *)x;
    const void *top = k ? (const void *)classes : (const void *)between;
    expect_ok(run_parts(stage, RP_OP_FORWARD, forward, in, out->y, k ? CLASSES : MIDDLE));
    if (split) { /* the gradient of the input at once, that of the weights in parts */
        expect_ok(run_parts(stage, RP_OP_BACKWARD_INPUT, forward, top, out->dx, MIDDLE));
        out->err = run_parts(stage, RP_OP_BACKWARD_WEIGHT, backward, top, out->dx, MIDDLE);
    } else {
        out->err = run_parts(stage, RP_OP_BACKWARD, backward, top, out->dx, MIDDLE);
    }
    expect_ok(rp_stage_drain(stage));
    for (uint32_t i = 0; i < stage->layout->param_count; i++) {
        const rp_region region = {RP_REGION_BLOCK, {RP_BLOCK_GRADIENT, 0}, i};
        const size_t count = stage->job->model->param[stage->layout->param_first + i].count;
        if (stage->layout->trained[i] != RP_NOT_TRAINED) {
            assert_true(out->count + count <= FLOATS);
            expect_ok(stage->executor->kind->read(
                stage->executor, &region, 0, count * sizeof(float), out->gradient + out->count));
            out->count += count;
        }
    }
    for (uint32_t i = 0; i < stage->slots.count && out->err == RP_OK; i++) {
        assert_false(stage->slots.slot[i].busy);
    }
    test_ring_close(&ring);
}

static void expect_near(const float *got, const float *want, size_t count) {
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)want[i]));
    }
    assert_true(largest > 0);
    expect_close_all(got, want, count, 0, 1e-5 * largest);
}

static void parts_give_the_same_gradients(void **state) {
    (void)state;
    static const uint32_t parts[] = {32, 16, 8, 5};
    static result whole, part;
    for (uint32_t k = 0; k < 2; k++) {
        run_stage(model, "gpipe", k, MICRO, MICRO, &whole);
        expect_ok(whole.err);
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            run_stage(model, "gpipe", k, MICRO, parts[i], &part);
            expect_ok(part.err);
            assert_memory_equal(part.y, whole.y, sizeof whole.y);
            expect_near(part.gradient, whole.gradient, whole.count);
            if (k > 0) {
                expect_near(part.dx, whole.dx, MICRO * MIDDLE);
            }
            if (parts[i] == MICRO) {
                assert_memory_equal(part.gradient, whole.gradient, sizeof whole.gradient);
                assert_memory_equal(part.dx, whole.dx, sizeof whole.dx);
            }
        }
    }
}

/* Parts of one forward are what forwards of that size would have been, bit for bit: the same masks,
 * the same places of maxima, the same products. */
static void parts_are_small_microbatches(void **state) {
    (void)state;
    static result small, part;
    for (uint32_t k = 0; k < 2; k++) {
        run_stage(model, "gpipe", k, 8, 8, &small);
        run_stage(model, "gpipe", k, MICRO, 8, &part);
        assert_memory_equal(part.y, small.y, sizeof small.y);
        assert_memory_equal(part.gradient, small.gradient, sizeof small.gradient);
        assert_memory_equal(part.dx, small.dx, sizeof small.dx);
    }
}

/* A backward may begin in the middle of a forward and end in another one: the same bits as those of
 * one large forward in the same parts. */
static void backwards_cross_forwards(void **state) {
    (void)state;
    static const struct {
        uint32_t forward, backward;
        const char *schedule;
    } sizes[] = {{8, 5, "{kind: umpipe, forward: 8, backward: 5}"},
                 {5, 13, "{kind: umpipe, forward: 5, backward: 13}"},
                 {3, 32, "{kind: umpipe, forward: 3, backward: 32}"}};
    static result whole, part;
    for (uint32_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            run_stage(model, "gpipe", k, MICRO, sizes[i].backward, &whole);
            run_stage(model, sizes[i].schedule, k, sizes[i].forward, sizes[i].backward, &part);
            expect_ok(part.err);
            assert_memory_equal(part.y, whole.y, sizeof whole.y);
            assert_memory_equal(part.gradient, whole.gradient, sizeof whole.gradient);
            assert_memory_equal(part.dx, whole.dx, sizeof whole.dx);
        }
    }
}

static void deferred_gradients_come_in_parts_too(void **state) {
    (void)state;
    static result want, got;
    for (uint32_t k = 0; k < 2; k++) {
        run_stage(model, "gpipe", k, MICRO, MICRO, &want);
        run_stage(model, "zb-h1", k, MICRO, MICRO, &got);
        assert_memory_equal(got.gradient, want.gradient, sizeof want.gradient);
        run_stage(model, "gpipe", k, MICRO, 8, &want);
        run_stage(model, "zb-h1", k, MICRO, 8, &got);
        assert_memory_equal(got.gradient, want.gradient, sizeof want.gradient);
    }
}

static void statistics_take_all(void **state) {
    (void)state;
    static result whole, part;
    run_stage(statistics, "gpipe", 0, MICRO, MICRO, &whole);
    expect_ok(whole.err);
    run_stage(statistics, "gpipe", 0, MICRO, 8, &part);
    expect_err(part.err, RP_ERR_USAGE);
    assert_non_null(
        strstr(rp_err_message(), "layer 'bn1': the backward of batchnorm needs all 32"));
    run_stage(statistics, "gpipe", 1, MICRO, 8, &part); /* the stage without it may */
    expect_ok(part.err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_give_the_same_gradients),
        cmocka_unit_test(parts_are_small_microbatches),
        cmocka_unit_test(backwards_cross_forwards),
        cmocka_unit_test(deferred_gradients_come_in_parts_too),
        cmocka_unit_test(statistics_take_all),
    };
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        x[i] = test_input(i, 0);
    }
    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        between[i] = test_input(i, 9);
    }
    for (int32_t i = 0; i < MICRO; i++) {
        classes[i] = i % CLASSES;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
