/* What does not fit into a board's memory computes forwards again, where that helps. */
#include "folder.h"

#include "planning/planfile.h"

static rp_runfile run;

static const char model[] = "input: data\n"
                            "layers:\n"
                            "  - {name: c1, kind: conv2d, out: 8, kernel: 3, pad: 1}\n"
                            "  - {name: t1, kind: tanh}\n"
                            "  - {name: c2, kind: conv2d, out: 8, kernel: 3, pad: 1}\n"
                            "  - {name: t2, kind: tanh}\n"
                            "  - {name: c3, kind: conv2d, out: 8, kernel: 3, pad: 1}\n"
                            "  - {name: t3, kind: tanh}\n"
                            "  - {name: flat, kind: flatten}\n"
                            "  - {name: fc, kind: dense, out: classes}\n";

static void read_limited(const char *schedule, const char *more, const char *memory_mb) {
    char text[1024];
    (void)unlink(in_folder("model.yaml"));
    (void)unlink(in_folder("run.yaml"));
    append("model.yaml", model, sizeof model - 1);
    const int used = snprintf(text, sizeof text,
                              "model: %s/model.yaml\n"
                              "data: {set: glyphs, train: 64, test: 24, size: 12}\n"
                              "ring: {boards: 2, memory_mb: %s}\n"
                              "train: {epochs: 2, batch: 32, microbatch: 2, seed: 1}\n"
                              "loss: cross-entropy\nschedule: %s\n"
                              "optimizer: {kind: sgd, lr: 0.1}\n%s",
                              folder, memory_mb, schedule, more);
    append("run.yaml", text, (size_t)used);
    (void)snprintf(text, sizeof text, "%s/run.yaml", folder);
    expect_ok(rp_runfile_read(&arena, text, NULL, 0, &run));
}

static rp_err make(rp_plan **out) {
    static const char *const names[] = {"0", "1"};
    const uint32_t first[] = {0, 6, 8};
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    return rp_planfile_make(&arena, &chosen, out);
}

static int clean(void **state) {
    rp_runfile_close(&run);
    (void)unlink(in_folder("model.yaml"));
    (void)unlink(in_folder("run.yaml"));
    return teardown(state);
}

/* 16 slots of three tensors of 8 x 12 x 12 floats and 2 samples take 0.44 MB. */
static void what_fits_keeps_all(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "", "2");
    expect_ok(make(&plan));
    assert_false(plan->stage[0].recompute || plan->stage[1].recompute);
    assert_null(plan->stage[0].memory_why);
}

static void what_does_not_is_computed_again(void **state) {
    (void)state;
    rp_plan *plan;
    rp_plan *read;
    char *text;
    read_limited("gpipe", "", "[0.3, 0]");
    expect_ok(make(&plan));
    assert_true(plan->stage[0].recompute);
    assert_false(plan->stage[1].recompute); /* its board has no limit */
    assert_non_null(strstr(plan->stage[0].memory_why, "in the place of"));
    assert_int_equal(plan->node[0].memory_bytes, 300000);
    expect_ok(rp_plan_check(plan, run.model));
    expect_ok(rp_plan_text(&arena, plan, &text));
    expect_ok(rp_plan_parse(&arena, text, strlen(text), "plan.json", &read));
    assert_true(rp_plan_same(plan, read));
}

static void what_the_file_says_counts(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "recompute: [t1, 1]\n", "0");
    expect_ok(make(&plan));
    assert_true(plan->stage[0].recompute && plan->stage[1].recompute);
    assert_int_equal(plan->stage[0].group_count, 1);
    assert_string_equal(plan->stage[0].group[0], "t1");
    assert_int_equal(plan->stage[1].group_count, 0);
    rp_runfile_close(&run);
    read_limited("gpipe", "offload: [0]\n", "[0.3, 0]"); /* three stashes fit */
    expect_ok(make(&plan));
    assert_string_equal(plan->stage[0].offload, "host");
    assert_string_equal(plan->stage[1].offload, "none");
    assert_false(plan->stage[0].recompute);
    expect_ok(rp_plan_check(plan, run.model));
    rp_runfile_close(&run);
    read_limited("gpipe", "recompute: none\n", "0.3"); /* the board will refuse it */
    expect_ok(make(&plan));
    assert_false(plan->stage[0].recompute);
}

static void what_never_fits_is_refused_with_numbers(void **state) {
    (void)state;
    rp_plan *plan;
    read_limited("gpipe", "", "0.05");
    expect_err(make(&plan), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "board 0 needs"));
    assert_non_null(strstr(rp_err_message(), "with forwards computed again, and may use 0.05"));
    rp_runfile_close(&run);
    read_limited("pipeoptim", "", "0.05");
    expect_err(make(&plan), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "recompute is not for schedule pipeoptim"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_fits_keeps_all, setup, clean),
        cmocka_unit_test_setup_teardown(what_does_not_is_computed_again, setup, clean),
        cmocka_unit_test_setup_teardown(what_the_file_says_counts, setup, clean),
        cmocka_unit_test_setup_teardown(what_never_fits_is_refused_with_numbers, setup, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
