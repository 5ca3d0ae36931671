/* k stages = 1 stage, bit for bit: the promise of flushed schedules. */
#include "agent/ring.h"

/* Skips over one and over two boundaries, every kind of state, sizes that divide by nothing. */
static const char model[] =
    "input: [2, 9, 9]\n"
    "layers:\n"
    "  - {name: conv1, kind: conv2d, out: 5, kernel: 3, pad: 1, bias: false}\n"
    "  - {name: bn1, kind: batchnorm}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: conv2, kind: conv2d, out: 5, kernel: 3, pad: 1, groups: 5}\n"
    "  - {name: drop, kind: dropout, p: 0.3}\n"
    "  - {name: add1, kind: add, from: [relu1, drop]}\n"
    "  - {name: conv3, kind: conv2d, out: 5, kernel: 1}\n"
    "  - {name: gelu, kind: gelu}\n"
    "  - {name: cat, kind: concat, from: [relu1, gelu, add1]}\n"
    "  - {name: bn2, kind: batchnorm, deferred: true}\n"
    "  - {name: tanh, kind: tanh}\n"
    "  - {name: pool, kind: maxpool, kernel: 3, stride: 2}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: fc1, kind: dense, out: 7}\n"
    "  - {name: silu, kind: silu}\n"
    "  - {name: fc2, kind: dense, out: 3}\n";

/* Relus that a dense or conv2d layer can do, unless the cut lies between. */
static const char fusing[] =
    "input: [2, 9, 9]\n"
    "layers:\n"
    "  - {name: conv1, kind: conv2d, out: 6, kernel: 3, pad: 1}\n"
    "  - {name: relu1, kind: relu}\n"
    "  - {name: conv2, kind: conv2d, out: 6, kernel: 3, pad: 1, groups: 3, bias: false}\n"
    "  - {name: relu2, kind: relu}\n"
    "  - {name: conv3, kind: conv2d, out: 6, kernel: 3, pad: 1}\n"
    "  - {name: relu3, kind: relu}\n"
    "  - {name: add, kind: add, from: [conv3, relu3]}\n"
    "  - {name: pool, kind: maxpool, kernel: 3}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: fc1, kind: dense, out: 7}\n"
    "  - {name: relu4, kind: relu}\n"
    "  - {name: fc2, kind: dense, out: 3}\n"
    "  - {name: relu5, kind: relu}\n";

static const char job_format[] =
    "sample: [2, 9, 9]\nclasses: 3\nseed: 3\nbatch: 10\nmicrobatch: %u\nepoch_samples: 23\n"
    "steps: 5\nloss: cross-entropy\noptimizer: {kind: %s, lr: 0.05, weight_decay: 0.01}\n"
    "lr_schedule: cosine\nschedule: %s\n";

enum { FLOATS = 1 << 16 };

typedef struct {
    const char *schedule, *optimizer;
    uint32_t micro;
    rp_gemm_choice gemm;
    const char *model; /* NULL: the one with everything */
} test_case;

static size_t train_stages(const test_case *c, const char *cut, uint32_t stages, float *weights,
                           double *loss) {
    char job[1024];
    test_ring ring;
    (void)snprintf(job, sizeof job, job_format, c->micro, c->optimizer, c->schedule);
    test_ring_open(&ring, c->gemm, c->model ? c->model : model, job, cut, stages);
    test_ring_run(&ring);
    size_t count = test_ring_weights(&ring, weights, FLOATS);
    *loss = ring.loss;
    test_ring_close(&ring);
    return count;
}

static void compare_tensors(const test_case *c) {
    static const struct {
        uint32_t stages;
        const char *cut;
    } cuts[] = {
        {2, "[add1]"},
        {3, "[conv2, cat]"},
        {4, "[relu1, conv3, flat]"},
        {5, "[bn1, drop, gelu, fc2]"},
        {16, "[bn1, relu1, conv2, drop, add1, conv3, gelu, cat, bn2, tanh, pool, flat, fc1, silu, "
             "fc2]"},
    };
    static float one[FLOATS];
    static float many[FLOATS];
    double loss_one;
    double loss_many;
    size_t count = train_stages(c, "[]", 1, one, &loss_one);
    assert_true(count > 500);
    for (size_t i = 0; i < count; i++) {
        assert_true(expect_finite_bits((double)one[i]));
    }
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        memset(many, 0, sizeof many);
        assert_int_equal(train_stages(c, cuts[i].cut, cuts[i].stages, many, &loss_many), count);
        assert_memory_equal(one, many, count * sizeof *one);
        assert_memory_equal(&loss_one, &loss_many, sizeof loss_one);
    }
}

static void gpipe_does_not_depend_on_the_cut(void **state) {
    (void)state;
    compare_tensors(&(test_case){"gpipe", "sgd, momentum: 0.9", 3, RP_GEMM_PANEL, NULL});
}

static void anchors_do_not_depend_on_the_cut(void **state) {
    (void)state;
    compare_tensors(&(test_case){"gpipe\nanchor: 0.5", "adam", 3, RP_GEMM_PANEL, NULL});
    compare_tensors(
        &(test_case){"1f1b\nanchor: {mu: 0.5, drift: true}", "sgd", 4, RP_GEMM_PANEL, NULL});
}

static void one_f_one_b_does_not_depend_on_the_cut(void **state) {
    (void)state;
    compare_tensors(&(test_case){"1f1b", "adam", 4, RP_GEMM_PANEL, NULL});
}

static void zero_bubble_does_not_depend_on_the_cut(void **state) {
    (void)state;
    compare_tensors(&(test_case){"zb-h1", "adamw", 2, RP_GEMM_PANEL, NULL});
}

static void clblast_does_not_depend_on_the_cut(void **state) {
    (void)state;
    compare_tensors(&(test_case){"1f1b", "rmsprop", 10, RP_GEMM_CLBLAST, NULL});
}

static void zero_bubble_equals_1f1b(void **state) {
    (void)state;
    static float a[FLOATS];
    static float b[FLOATS];
    double loss_a;
    double loss_b;
    test_case c = {"1f1b", "sgd", 3, RP_GEMM_PANEL, NULL};
    size_t count = train_stages(&c, "[conv2, cat]", 3, a, &loss_a);
    c.schedule = "zb-h1";
    assert_int_equal(train_stages(&c, "[conv2, cat]", 3, b, &loss_b), count);
    assert_memory_equal(a, b, count * sizeof *a);
}

static void fused_relus_are_the_same_bits(void **state) {
    (void)state;
    static float one[FLOATS];
    static float two[FLOATS];
    double loss_one;
    double loss_two;
    for (int gemm = 0; gemm < 2; gemm++) {
        const test_case c = {"1f1b", "sgd", 4, gemm ? RP_GEMM_CLBLAST : RP_GEMM_PANEL, fusing};
        const size_t count = train_stages(&c, "[]", 1, one, &loss_one);
        /* cut between every layer and its relu: none is fused */
        assert_int_equal(train_stages(&c, "[relu1, relu2, relu3, relu4, relu5]", 6, two, &loss_two),
                         count);
        assert_memory_equal(one, two, count * sizeof *one);
        assert_memory_equal(&loss_one, &loss_two, sizeof loss_one);
    }
}

static void counts_what_it_fuses(void **state) {
    (void)state;
    rp_arena arena;
    rp_job job;
    char text[1024];
    rp_arena_init(&arena, "test", 0);
    (void)snprintf(text, sizeof text, job_format, 4, "sgd", "1f1b");
    expect_ok(test_parse(&arena, fusing, text, "[]", 1, 0, &job));
    assert_int_equal(job.fused, 4); /* not relu3: conv3 has another reader */
    expect_ok(test_parse(&arena, fusing, text, "[relu1, relu4]", 3, 0, &job));
    assert_int_equal(job.fused, 2);
    (void)snprintf(text, sizeof text, job_format, 4, "sgd", "zb-h1");
    expect_ok(test_parse(&arena, fusing, text, "[]", 1, 0, &job));
    assert_int_equal(job.fused, 0);
    rp_arena_finish(&arena);
}

/* Sequences: three inputs of one layer, which cross cuts, and one packed input. */
static const char attending[] =
    "input: [9, 8]\n"
    "layers:\n"
    "  - {name: q, kind: layernorm}\n"
    "  - {name: k, kind: layernorm}\n"
    "  - {name: v, kind: layernorm}\n"
    "  - {name: att1, kind: attention, heads: 2, causal: true, dropout: 0.2, from: [q, k, v]}\n"
    "  - {name: add, kind: add, from: [q, att1]}\n"
    "  - {name: ln, kind: layernorm}\n"
    "  - {name: att2, kind: attention, heads: 2, kv_heads: 1, dropout: 0.1, rotary: {}}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: fc, kind: dense, out: 3}\n";

static size_t attend_stages(const char *cut, uint32_t stages, uint32_t micro, const char *recompute,
                            float *weights) {
    char job[512];
    test_ring ring;
    (void)snprintf(job, sizeof job,
                   "sample: [9, 8]\nclasses: 3\nseed: 3\nbatch: 10\nmicrobatch: %u\n"
                   "epoch_samples: 23\nsteps: 5\nloss: cross-entropy\n"
                   "optimizer: {kind: sgd, lr: 0.1}\nschedule: 1f1b\nrecompute: %s\n",
                   micro, recompute);
    test_ring_open(&ring, RP_GEMM_PANEL, attending, job, cut, stages);
    test_ring_run(&ring);
    const size_t count = test_ring_weights(&ring, weights, FLOATS);
    test_ring_close(&ring);
    return count;
}

/* The same bits with any cut, and with recomputation. Another microbatch only changes the order of
 * sums over samples, not the masks of dropout. */
static void attention_does_not_depend_on_the_cut(void **state) {
    (void)state;
    static const struct {
        const char *cut;
        uint32_t stages;
        const char *recompute;
    } cuts[] = {
        {"[att2]", 2, "none"},
        {"[k, add, flat]", 4, "all"},
        {"[att1]", 2, "[att1, att2]"},
        {"[k, v, att1, add, ln, att2, flat, fc]", 9, "none"},
    };
    static float one[FLOATS];
    static float many[FLOATS];
    const size_t count = attend_stages("[]", 1, 3, "none", one);
    assert_true(count > 500);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        memset(many, 0, sizeof many);
        assert_int_equal(attend_stages(cuts[i].cut, cuts[i].stages, 3, cuts[i].recompute, many),
                         count);
        assert_memory_equal(one, many, count * sizeof *one);
    }
    assert_int_equal(attend_stages("[k, add, flat]", 4, 4, "none", many), count);
    expect_close_all(many, one, count, 1e-5, 1e-5);
}

/* The alarm rings: another seed gives other weights. */
static void another_seed_is_seen(void **state) {
    (void)state;
    static float a[FLOATS];
    static float b[FLOATS];
    double loss;
    test_case c = {"gpipe", "sgd", 3, RP_GEMM_PANEL, NULL};
    size_t count = train_stages(&c, "[]", 1, a, &loss);
    c.micro = 5; /* batch statistics of other groups */
    assert_int_equal(train_stages(&c, "[]", 1, b, &loss), count);
    assert_memory_not_equal(a, b, count * sizeof *a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpipe_does_not_depend_on_the_cut),
        cmocka_unit_test(anchors_do_not_depend_on_the_cut),
        cmocka_unit_test(one_f_one_b_does_not_depend_on_the_cut),
        cmocka_unit_test(zero_bubble_does_not_depend_on_the_cut),
        cmocka_unit_test(clblast_does_not_depend_on_the_cut),
        cmocka_unit_test(zero_bubble_equals_1f1b),
        cmocka_unit_test(fused_relus_are_the_same_bits),
        cmocka_unit_test(counts_what_it_fuses),
        cmocka_unit_test(attention_does_not_depend_on_the_cut),
        cmocka_unit_test(another_seed_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
