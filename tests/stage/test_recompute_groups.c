/* Forwards that are computed again: the bits of a run that keeps everything, with less memory. */
#include "agent/ring.h"

#include "stage/stage_own.h"

/* Batch statistics of both kinds, dropout, skips over groups, layers in place at both ends of one,
 * a flatten that shares its input's memory, what a pooling saves. */
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
    "  - {name: bn2, kind: batchnorm%s}\n"
    "  - {name: tanh, kind: tanh}\n"
    "  - {name: pool, kind: maxpool, kernel: 3, stride: 2}\n"
    "  - {name: drop2, kind: dropout, p: 0.2}\n"
    "  - {name: flat, kind: flatten}\n"
    "  - {name: relu2, kind: relu}\n"
    "  - {name: fc1, kind: dense, out: 7}\n"
    "  - {name: silu, kind: silu}\n"
    "  - {name: fc2, kind: dense, out: 3}\n";

static const char job_format[] =
    "sample: [2, 9, 9]\nclasses: 3\nseed: 3\nbatch: 10\nmicrobatch: %u\nepoch_samples: 23\n"
    "steps: 6\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.05, momentum: 0.9}\n"
    "schedule: %s\nrecompute: %s\n";

enum { FLOATS = 1 << 14 };

typedef struct {
    const char *schedule;
    uint32_t micro;
    bool flushed;
} test_case;

static const test_case cases[] = {{"gpipe", 3, true},
                                  {"1f1b", 4, true},
                                  {"zb-h1", 2, true},
                                  {"async", 10, false},
                                  {"pipedream", 10, false},
                                  {"{kind: pipedream, vertical_sync: true}", 10, false},
                                  {"pipedream-2bw", 5, false},
                                  {"ea-pipe", 10, false},
                                  {"{kind: avgpipe, advance: 1}", 5, false}};

static size_t train(const test_case *c, const char *recompute, const char *cut, uint32_t stages,
                    float *weights, double *loss) {
    char layers[2048];
    char job[1024];
    test_ring ring;
    (void)snprintf(layers, sizeof layers, model, c->flushed ? ", deferred: true" : "");
    (void)snprintf(job, sizeof job, job_format, c->micro, c->schedule, recompute);
    test_ring_open(&ring, RP_GEMM_PANEL, layers, job, cut, stages);
    test_ring_run(&ring);
    const size_t count = test_ring_weights(&ring, weights, FLOATS);
    *loss = ring.loss;
    test_ring_close(&ring);
    return count;
}

/* Running statistics are among the tensors, and the last of the six steps see a dropout that a
 * wrong mask of an earlier one would have changed. */
static void bits_are_those_of_a_run_that_keeps_all(void **state) {
    (void)state;
    static const char *const ways[] = {"all", "blocks", "[1, 2]",
                                       "[relu1, drop, gelu, tanh, flat, fc2]"};
    static float want[FLOATS];
    static float got[FLOATS];
    double loss[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(want, 0, sizeof want);
        const size_t count = train(&cases[i], "none", "[conv2, bn2]", 3, want, &loss[0]);
        assert_true(count > 500);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            memset(got, 0, sizeof got);
            assert_int_equal(train(&cases[i], ways[w], "[conv2, bn2]", 3, got, &loss[1]), count);
            assert_memory_equal(want, got, count * sizeof *want);
            assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
        }
    }
}

static void one_stage_in_many_groups(void **state) {
    (void)state;
    static float want[FLOATS];
    static float got[FLOATS];
    double loss[2];
    const size_t count = train(&cases[0], "none", "[]", 1, want, &loss[0]);
    static const char every_layer[] =
        "[bn1, relu1, conv2, drop, add1, conv3, gelu, cat, bn2, tanh, pool, drop2, flat, relu2, "
        "fc1, silu, fc2]";
    static const char *const ways[] = {"all", "blocks", "[add1]", every_layer};
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        assert_int_equal(train(&cases[0], ways[w], "[]", 1, got, &loss[1]), count);
        assert_memory_equal(want, got, count * sizeof *want);
        assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct {
    rp_arena arena;
    rp_job job;
    rp_layout *layout;
} made;

static void make_layout(made *m, const char *schedule, const char *recompute, const char *cut,
                        uint32_t stages, uint32_t stage) {
    char layers[2048];
    char text[1024];
    (void)snprintf(layers, sizeof layers, model, "");
    (void)snprintf(text, sizeof text, job_format, 1, schedule, recompute);
    rp_arena_init(&m->arena, "test", 0);
    expect_ok(test_parse(&m->arena, layers, text, cut, stages, stage, &m->job));
    expect_ok(rp_layout_make(&m->arena, &m->job, RP_GEMM_PANEL, 64, &m->layout));
}

static void a_slot_holds_what_enters_groups(void **state) {
    (void)state;
    made plain, one, three;
    make_layout(&plain, "gpipe", "none", "[conv2, bn2]", 3, 1);
    make_layout(&one, "gpipe", "[1]", "[conv2, bn2]", 3, 1);
    make_layout(&three, "gpipe", "[conv3, cat]", "[conv2, bn2]", 3, 1);
    assert_int_equal(plain.layout->group_count, 0);
    assert_int_equal(plain.layout->group_bytes, 0);
    assert_int_equal(one.layout->group_count, 1);
    assert_int_equal(three.layout->group_count, 3);
    const size_t tensor = rp_darena_round(5 * 81 * sizeof(float), 64);
    assert_int_equal(one.layout->slot_bytes, tensor);       /* relu1 */
    assert_int_equal(three.layout->slot_bytes, 3 * tensor); /* add1 and gelu, too */
    assert_int_equal(plain.layout->slot_bytes, 3 * tensor); /* relu1, add1, conv3 */
    assert_true(three.layout->group_bytes < one.layout->group_bytes);
    assert_true(one.layout->total_bytes < plain.layout->total_bytes); /* of ten slots */
    assert_int_equal(one.layout->slots, plain.layout->slots);
    assert_int_equal(three.layout->group[1].recompute_end, three.layout->group[1].first + 1);
    rp_arena_finish(&plain.arena);
    rp_arena_finish(&one.arena);
    rp_arena_finish(&three.arena);
}

/* Where backwards see other weights, those of the forward stay until it has been repeated. */
static void weights_of_the_forward_stay(void **state) {
    (void)state;
    made plain, again;
    make_layout(&plain, "async", "none", "[conv2, bn2]", 3, 0);
    make_layout(&again, "async", "all", "[conv2, bn2]", 3, 0);
    assert_int_equal(plain.layout->copies.versions, 1);
    assert_true(again.layout->copies.versions > 1);
    rp_arena_finish(&plain.arena);
    rp_arena_finish(&again.arena);
}

static void wrong_ones_are_refused(void **state) {
    (void)state;
    static const char *const wrong[][3] = {
        {"pipeoptim", "all", "schedule pipeoptim: its forwards see predicted weights"},
        {"{kind: umpipe, forward: [1, 1, 2], backward: [1, 1, 5]}", "[2]", "other samples"},
        {"gpipe", "[3]", "expected a stage, from 0 to 2, or a layer of the model, found '3'"},
        {"gpipe", "[conv9]", "found 'conv9'"},
        {"gpipe", "some", "expected none, all, blocks, auto, or a list"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char layers[2048];
        char text[1024];
        rp_arena arena;
        rp_job job;
        (void)snprintf(layers, sizeof layers, model, "");
        (void)snprintf(text, sizeof text, job_format, 1, wrong[i][0], wrong[i][1]);
        rp_arena_init(&arena, "test", 0);
        expect_err(test_parse(&arena, layers, text, "[conv2, fc1]", 3, 2, &job), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), wrong[i][2]));
        rp_arena_finish(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_holds_what_enters_groups),
        cmocka_unit_test(weights_of_the_forward_stay),
        cmocka_unit_test(wrong_ones_are_refused),
        cmocka_unit_test(one_stage_in_many_groups),
        cmocka_unit_test(bits_are_those_of_a_run_that_keeps_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
