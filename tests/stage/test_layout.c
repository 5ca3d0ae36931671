#include "ring.h"

static const char model[] = "input: [2, 8, 8]\nlayers:\n"
                            "  - {name: conv, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: bn, kind: batchnorm}\n"
                            "  - {name: relu, kind: relu}\n"
                            "  - {name: conv2, kind: conv2d, out: 4, kernel: 3, pad: 1}\n"
                            "  - {name: add, kind: add, from: [relu, conv2]}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc, kind: dense, out: 3}\n";
static const char job_format[] =
    "sample: [2, 8, 8]\nclasses: 3\nseed: 1\nbatch: 16\nmicrobatch: 2\nepoch_samples: 32\n"
    "steps: 4\nloss: cross-entropy\noptimizer: {kind: adam, lr: 0.1}\nschedule: %s\n";

typedef struct {
    rp_arena arena;
    rp_job job;
    rp_layout *layout;
} made;

static void make(made *m, const char *schedule, const char *cut, uint32_t stages, uint32_t stage) {
    char text[1024];
    (void)snprintf(text, sizeof text, job_format, schedule);
    rp_arena_init(&m->arena, "test", 0);
    expect_ok(test_parse(&m->arena, model, text, cut, stages, stage, &m->job));
    expect_ok(rp_layout_make(&m->arena, &m->job, RP_GEMM_PANEL, 64, &m->layout));
}

static const rp_layout_tensor *tensor_named(const made *m, const char *name) {
    uint32_t layer = rp_model_find(m->job.model, name);
    return &m->layout->tensor[m->layout->tensor_of[layer]];
}

static void in_place_layers_share_storage(void **state) {
    (void)state;
    made m;
    make(&m, "gpipe", "[]", 1, 0);
    /* bn keeps its input, relu its output: bn's output is overwritten by relu's */
    assert_int_equal(tensor_named(&m, "bn")->storage, tensor_named(&m, "relu")->storage);
    assert_int_not_equal(tensor_named(&m, "conv")->storage, tensor_named(&m, "bn")->storage);
    assert_true(m.layout->value.storage[tensor_named(&m, "conv")->storage].kept);
    assert_true(m.layout->value.storage[tensor_named(&m, "relu")->storage].kept);
    /* the loss reads the output in backward */
    assert_true(m.layout->value.storage[tensor_named(&m, "fc")->storage].kept);
    assert_int_equal(m.layout->slots, 8); /* gpipe holds the whole step */
    assert_int_equal(m.layout->state_count, 2);
    rp_arena_finish(&m.arena);
}

static void slots_follow_the_schedule(void **state) {
    (void)state;
    made m;
    make(&m, "1f1b", "[conv2, flat]", 3, 0);
    assert_int_equal(m.layout->slots, 3);
    assert_int_equal(m.layout->debts, 0);
    assert_int_equal(m.layout->output_count, 1); /* relu's, read by conv2 and add */
    rp_arena_finish(&m.arena);
    make(&m, "1f1b", "[conv2, flat]", 3, 2);
    assert_int_equal(m.layout->slots, 1);
    rp_arena_finish(&m.arena);
    make(&m, "1f1b", "[add, flat]", 3, 1);
    rp_crossing lower = rp_layout_crossing(m.layout, false, true);
    assert_int_equal(lower.count, 2); /* relu passes by conv2 */
    rp_arena_finish(&m.arena);
    make(&m, "zb-h1", "[conv2, flat]", 3, 1);
    assert_true(m.layout->debts >= 1);
    assert_true(m.layout->debt_bytes > 0);
    rp_arena_finish(&m.arena);
}

static void what_does_not_fit_is_refused_with_numbers(void **state) {
    (void)state;
    made m;
    make(&m, "gpipe", "[]", 1, 0);
    expect_ok(rp_layout_check(m.layout, &m.job, m.layout->total_bytes));
    expect_err(rp_layout_check(m.layout, &m.job, m.layout->total_bytes - 1), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "8 slots"));
    assert_non_null(strstr(rp_err_message(), "conv"));
    rp_arena_finish(&m.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_place_layers_share_storage),
        cmocka_unit_test(slots_follow_the_schedule),
        cmocka_unit_test(what_does_not_fit_is_refused_with_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
