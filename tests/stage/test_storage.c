/* Activations that wait in 16 bits: a ring of any size has the bits of one board, whatever else
 * saves memory; slots have half of the bytes. */
#include "agent/ring.h"

#include "stage/opencl_own.h"
#include "stage/stage_own.h"

#include <math.h>

/* Batch statistics, dropout, sums over cuts, layers in place, a flatten, a concatenation, an output
 * that a backward of a later stage alone may read, relus that are fused where no cut is before
 * them, activations that need x and others that need y. */
static const char model[] =
    "input: [2, 9, 9]\n"
    "layers:\n"
    "  - {name: conv1, kind: conv2d, out: 5, kernel: 3, pad: 1}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: conv2, kind: conv2d, out: 5, kernel: 3, pad: 1, bias: false}\n"
    "  - {name: bn2, kind: batchnorm%s}\n"
    "  - {name: relu2, kind: relu}\n"
    "  - {name: conv3, kind: conv2d, out: 5, kernel: 3, pad: 1}\n"
    "  - {name: drop, kind: dropout, p: 0.3}\n"
    "  - {name: add, kind: add, from: [relu1, drop]}\n"
    "  - {name: gelu, kind: gelu, from: conv3}\n"
    "  - {name: cat, kind: concat, from: [relu2, gelu, add]}\n"
    "  - {name: tanh, kind: tanh}\n"
    "  - {name: pool, kind: maxpool, kernel: 3, stride: 2}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: fc1, kind: dense, out: 7}\n"
    "  - {name: relu3, kind: relu}\n"
    "  - {name: fc2, kind: dense, out: 3}\n";

static const char job_format[] =
    "sample: [2, 9, 9]\nclasses: 3\nseed: 3\nbatch: %u\nmicrobatch: %u\nepoch_samples: 47\n"
    "steps: %u\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "schedule: %s\nstorage: %s\n%s";

enum { FLOATS = 1 << 14 };

typedef struct {
    const char *schedule;
    uint32_t batch, micro, steps;
    bool flushed;
} test_case;

static size_t train(const test_case *c, const char *storage, const char *more, const char *cut,
                    uint32_t stages, float *weights, double *loss) {
    char layers[2048];
    char job[1024];
    test_ring ring;
    (void)snprintf(layers, sizeof layers, model, c->flushed ? ", deferred: true" : "");
    (void)snprintf(job, sizeof job, job_format, c->batch, c->micro, c->steps, c->schedule, storage,
                   more);
    test_ring_open(&ring, RP_GEMM_PANEL, layers, job, cut, stages);
    test_ring_run(&ring);
    memset(weights, 0, FLOATS * sizeof *weights);
    const size_t count = test_ring_weights(&ring, weights, FLOATS);
    *loss = ring.loss;
    test_ring_close(&ring);
    return count;
}

static float want[FLOATS], got[FLOATS];

static void expect_same(size_t count, const double loss[2]) {
    assert_true(count > 500);
    assert_memory_equal(want, got, count * sizeof *want);
    assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
}

static const struct {
    const char *cut;
    uint32_t stages;
} cuts[] = {
    {"[drop]", 2},
    {"[relu1, cat]", 3}, /* the first relu is not fused, and the last one is */
    {"[conv2, relu2, add, pool]", 5},
    {"[relu1, conv2, bn2, relu2, conv3, drop, add, gelu, cat, tanh, pool, flat, fc1, relu3]", 15},
};

/* The bits of one board. With batch statistics of a step the microbatch counts, not the cut. */
static void any_cut_has_the_bits_of_one_board(void **state) {
    (void)state;
    static const test_case cases[] = {
        {"gpipe", 10, 3, 6, true}, {"1f1b", 10, 4, 6, true}, {"zb-h1", 10, 2, 6, true}};
    static const char *const storages[] = {"bf16", "f16"};
    static float plain[FLOATS];
    double loss[2];
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const test_case *c = &cases[i / 2];
        const size_t count =
            train(c, storages[i % 2], "recompute: none\n", "[]", 1, want, &loss[0]);
        for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
            train(c, storages[i % 2], "recompute: none\n", cuts[k].cut, cuts[k].stages, got,
                  &loss[1]);
            expect_same(count, loss);
        }
        train(c, "f32", "recompute: none\n", "[]", 1, plain, &loss[1]);
        double far = 0;
        for (size_t w = 0; w < count; w++) {
            far = fmax(far, fabs((double)plain[w] - (double)want[w]));
        }
        assert_true(far > 0 && far < (i % 2 ? 0.05 : 0.3)); /* rounded, but close */
    }
}

static const test_case all[] = {{"gpipe", 16, 2, 5, true},
                                {"1f1b", 16, 2, 5, true},
                                {"zb-h1", 16, 2, 5, true},
                                {"async", 10, 10, 6, false},
                                {"pipedream", 10, 10, 6, false},
                                {"{kind: pipedream, vertical_sync: true}", 10, 10, 6, false},
                                {"pipedream-2bw", 10, 5, 6, false},
                                {"ea-pipe", 10, 10, 6, false},
                                {"{kind: avgpipe, advance: 1}", 10, 5, 6, false}};

/* What is recomputed or offloaded has the same bits as what waits on the device. */
static void other_ways_to_save_memory_change_no_bit(void **state) {
    (void)state;
    static const char *const ways[] = {
        "recompute: all\n", "recompute: blocks\n", "recompute: [conv3, gelu, tanh, flat, fc2]\n",
        "offload: host\nrecompute: none\n", "offload: flash\nrecompute: all\n"};
    double loss[2];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const size_t count =
            train(&all[i], "bf16", "recompute: none\n", "[conv2, cat]", 3, want, &loss[0]);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            train(&all[i], "bf16", ways[w], "[conv2, cat]", 3, got, &loss[1]);
            expect_same(count, loss);
        }
    }
}

static void one_stage_in_many_groups(void **state) {
    (void)state;
    static const char every_layer[] =
        "recompute: [relu1, conv2, bn2, relu2, conv3, drop, add, gelu, cat, tanh, pool, flat, fc1, "
        "relu3, fc2]\n";
    static const char *const ways[] = {"recompute: all\n", "recompute: blocks\n", every_layer};
    double loss[2];
    const size_t count = train(&all[0], "bf16", "recompute: none\n", "[]", 1, want, &loss[0]);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        train(&all[0], "bf16", ways[w], "[]", 1, got, &loss[1]);
        expect_same(count, loss);
    }
}

/* A codec changes what arrives. It is rounded again, so the slot has what the layers have seen. */
static void codecs_and_storage_go_together(void **state) {
    (void)state;
    static const rp_codec both[][2] = {{RP_CODEC_INT8, RP_CODEC_F16},
                                       {RP_CODEC_INT4, RP_CODEC_F32}};
    double loss[2];
    test_codec = both;
    const size_t count =
        train(&all[1], "bf16", "recompute: none\n", "[drop, pool]", 3, want, &loss[0]);
    train(&all[1], "bf16", "recompute: all\n", "[drop, pool]", 3, got, &loss[1]);
    test_codec = NULL;
    expect_same(count, loss);
}

/* A codec of the same format loses nothing more where only rounded tensors cross. */
static void a_codec_of_the_same_format_is_exact(void **state) {
    (void)state;
    static const rp_codec same[][2] = {{RP_CODEC_BF16, RP_CODEC_F32},
                                       {RP_CODEC_BF16, RP_CODEC_F32}};
    double loss[2];
    const size_t count = train(&all[1], "bf16", "", "[bn2, fc1]", 3, want, &loss[0]);
    test_codec = same;
    train(&all[1], "bf16", "", "[bn2, fc1]", 3, got, &loss[1]);
    test_codec = NULL;
    expect_same(count, loss);
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct {
    rp_arena arena;
    rp_job job;
    rp_layout *layout;
} made;

static void make_layout(made *m, const char *storage, const char *more, const char *cut,
                        uint32_t stages, uint32_t stage) {
    char layers[2048];
    char text[1024];
    (void)snprintf(layers, sizeof layers, model, "");
    (void)snprintf(text, sizeof text, job_format, 16, 1, 5, "gpipe", storage, more);
    rp_arena_init(&m->arena, "test", 0);
    expect_ok(test_parse(&m->arena, layers, text, cut, stages, stage, &m->job));
    expect_ok(rp_layout_make(&m->arena, &m->job, RP_GEMM_PANEL, 64, &m->layout));
}

static rp_layout_tensor *tensor_named(const made *m, const char *name) {
    return &m->layout->tensor[m->layout->tensor_of[rp_model_find(m->job.model, name)]];
}

static const rp_layout_storage *storage_named(const made *m, const char *name) {
    return &m->layout->value.storage[tensor_named(m, name)->storage];
}

static void a_slot_has_half_of_the_bytes(void **state) {
    (void)state;
    made plain, half, again;
    make_layout(&plain, "f32", "recompute: none\n", "[]", 1, 0);
    make_layout(&half, "bf16", "recompute: none\n", "[]", 1, 0);
    make_layout(&again, "bf16", "recompute: [gelu]\n", "[gelu]", 2, 1);
    assert_false(storage_named(&plain, "relu1")->packed);
    assert_true(storage_named(&half, "relu1")->packed && storage_named(&half, "flat")->packed);
    assert_false(storage_named(&half, "fc2")->packed);   /* the model's output */
    assert_true(storage_named(&again, "conv3")->packed); /* the backward of gelu reads it */
    assert_true(storage_named(&again, "add")->kept);     /* it enters a group, but */
    assert_false(storage_named(&again, "add")->packed);  /* no backward reads it */
    const rp_layout *a = plain.layout;
    const rp_layout *b = half.layout;
    assert_int_equal(a->order_count, b->order_count);
    assert_true(10 * b->slot_bytes < 6 * a->slot_bytes); /* data, indices and statistics stay */
    assert_true(b->scratch_bytes > a->scratch_bytes);
    assert_true(b->total_bytes < a->total_bytes);
    /* copies: of the forward before those of the backward, in buffers that fit */
    for (uint32_t s = 0; s < b->value.storage_count; s++) {
        const rp_layout_storage *storage = &b->value.storage[s];
        for (int way = 0; way < 2 && storage->packed; way++) {
            assert_true(storage->copy[way] < b->value.pool_count);
            assert_true(b->value.pool_bytes[storage->copy[way]] >= storage->sample_bytes);
        }
        assert_true(!storage->packed || (storage->death < storage->copy_birth &&
                                         storage->copy_birth <= storage->copy_death));
    }
    rp_arena_finish(&plain.arena);
    rp_arena_finish(&half.arena);
    rp_arena_finish(&again.arena);
}

/* No two copies that live at one time share a buffer. */
static void copies_do_not_overlap(void **state) {
    (void)state;
    static const char *const ways[] = {"recompute: none\n", "recompute: all\n",
                                       "recompute: [conv2, conv3, gelu, tanh, flat, fc2]\n"};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        made m;
        make_layout(&m, "f16", ways[w], "[]", 1, 0);
        const rp_layout_memory *value = &m.layout->value;
        for (uint32_t a = 0; a < value->storage_count; a++) {
            for (uint32_t b = 0; b < value->storage_count; b++) {
                const rp_layout_storage *x = &value->storage[a];
                const rp_layout_storage *y = &value->storage[b];
                const bool apart = x->copy_death < y->copy_birth || y->copy_death < x->copy_birth;
                assert_true(a == b || !x->packed || !y->packed || apart ||
                            x->copy[1] != y->copy[1]);
                /* a recomputation writes to what a forward writes to */
                const bool writes = m.layout->group_count && !y->kept && !y->recomputed;
                assert_true(!x->packed || !writes || x->copy[1] != y->buffer);
            }
        }
        rp_arena_finish(&m.arena);
    }
}

/* Counted by the device. */
static void a_device_needs_less(void **state) {
    (void)state;
    size_t used[2];
    for (int half = 0; half < 2; half++) {
        char layers[2048];
        char job[1024];
        test_ring ring;
        (void)snprintf(layers, sizeof layers, model, "");
        (void)snprintf(job, sizeof job, job_format, 40, 2, 2, "gpipe", half ? "bf16" : "f32", "");
        test_ring_open(&ring, RP_GEMM_PANEL, layers, job, "[]", 1);
        used[half] = rp_stage_facts(ring.board[0].stage).used_bytes;
        test_ring_close(&ring);
    }
    assert_true(10 * used[1] < 7 * used[0]);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const char wide[] = "input: [3]\nlayers:\n"
                           "  - {name: fc1, kind: dense, out: 4, bias: false}\n"
                           "  - {name: fc2, kind: dense, out: 3, bias: false}\n";

/* The gradient of the second layer's weights after one forward and backward on inputs of `size`. */
static void gradient_of(const char *storage, float size, bool training, float out[12],
                        rp_stage **stage, rp_arena *arena, rp_job *job) {
    char text[600];
    static const float x[2][3] = {{1, 2, 3}, {-2, 1, 0.5f}};
    const int32_t target[2] = {0, 2};
    float scaled[2][3];
    rp_op op = {.kind = RP_OP_FORWARD, .samples = {0, 2}};
    const void *in[] = {scaled};
    const void *labels[] = {target};
    (void)snprintf(text, sizeof text,
                   "sample: [3]\nclasses: 3\nseed: 3\nbatch: 2\nmicrobatch: 2\nepoch_samples: 2\n"
                   "steps: 1\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.05}\n"
                   "schedule: gpipe\nstorage: %s\n",
                   storage);
    for (uint32_t i = 0; i < 6; i++) {
        scaled[i / 3][i % 3] = x[i / 3][i % 3] * size;
    }
    const rp_site site = {.device = test_device_open()};
    rp_arena_init(arena, "wide", 0);
    expect_ok(test_parse(arena, wide, text, "[]", 1, 0, job));
    expect_ok(rp_stage_prepare(arena, rp_executor_find("opencl"), &site, job, stage));
    if (!training) {
        float results[2 * RP_LOSS_RESULT];
        expect_ok(rp_stage_forward_only(*stage, &op, &(rp_stage_piece){op.samples, in, 0}, 1, NULL,
                                        false));
        expect_ok(rp_stage_evaluate(*stage, &op, 2, &(rp_stage_piece){op.samples, labels, 0}, 1));
        const rp_command read = {.kind = RP_COMMAND_RESULTS, .read = {.out = results, .count = 2}};
        expect_ok(rp_stage_issue(*stage, &read));
        expect_ok(rp_stage_drain(*stage));
        memcpy(out, results, sizeof results);
        return;
    }
    expect_ok(rp_stage_forward(*stage, &op, &(rp_stage_piece){op.samples, in, 0}, 1, NULL));
    op.kind = RP_OP_BACKWARD;
    expect_ok(rp_stage_backward(*stage, &op, &(rp_stage_piece){op.samples, labels, 0}, 1, NULL));
    float gradient[24];
    expect_ok(rp_stage_read_gradient(*stage, gradient));
    expect_ok(rp_stage_drain(*stage));
    memcpy(out, gradient + 12, 12 * sizeof *out);
}

static void gradients_of(const char *storage, float size, bool training, float out[12]) {
    rp_stage *stage;
    rp_arena arena;
    rp_job job;
    gradient_of(storage, size, training, out, &stage, &arena, &job);
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
}

/* Beyond 65504 an f16 is infinite, and the gradient tells. bf16 has the range of f32. */
static void an_overflow_reaches_the_gradient(void **state) {
    (void)state;
    float gradient[12];
    bool finite = true;
    gradients_of("f16", 1e6f, true, gradient);
    for (int i = 0; i < 12; i++) {
        finite &= isfinite(gradient[i]);
    }
    assert_false(finite);
    gradients_of("bf16", 1e6f, true, gradient);
    for (int i = 0; i < 12; i++) {
        assert_true(isfinite(gradient[i]));
    }
}

static void evaluations_do_not_round(void **state) {
    (void)state;
    float plain[12] = {0};
    float half[12] = {0};
    gradients_of("f32", 0.7f, false, plain);
    gradients_of("bf16", 0.7f, false, half);
    assert_memory_equal(plain, half, sizeof plain);
    gradients_of("f16", 1e6f, false, half);
    assert_true(isfinite(half[0]));
    gradients_of("f32", 0.7f, true, plain);
    gradients_of("bf16", 0.7f, true, half);
    assert_memory_not_equal(plain, half, sizeof plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_has_the_bits_of_one_board),
        cmocka_unit_test(other_ways_to_save_memory_change_no_bit),
        cmocka_unit_test(one_stage_in_many_groups),
        cmocka_unit_test(codecs_and_storage_go_together),
        cmocka_unit_test(a_codec_of_the_same_format_is_exact),
        cmocka_unit_test(a_slot_has_half_of_the_bytes),
        cmocka_unit_test(copies_do_not_overlap),
        cmocka_unit_test(a_device_needs_less),
        cmocka_unit_test(an_overflow_reaches_the_gradient),
        cmocka_unit_test(evaluations_do_not_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
