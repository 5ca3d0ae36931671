/* What people read of a plan and a profile. */
#include "open_run.h"

#include "planning/planfile.h"
#include "planning/tables.h"

static char text[4096];

static int open_run(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    read_run(&run, "schedule: 1f1b\noptimizer: {kind: sgd, lr: 0.1}\n");
    return 0;
}

static void read_back(FILE *file) {
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
}

static void expect_word(const char *word) {
    if (!strstr(text, word)) {
        fail_msg("'%s' is not in\n%s", word, text);
    }
}

static void a_line_a_stage(void **state) {
    (void)state;
    static const char *const names[] = {"left", "right"};
    const uint32_t first[] = {0, 1, 3};
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    const rp_planfile_board board = {.name = "a CPU", .device_bytes = 3 << 20};
    const double seconds[] = {0.001, 0.002, 0.0005, 0.0005, 0.0002, 0.0003};
    rp_plan *plan;
    FILE *file = tmpfile();
    assert_non_null(file);
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    rp_plan_table(file, plan);
    read_back(file);
    expect_word("2 stages on 2 boards");
    assert_null(strstr(text, "share")); /* nothing has been measured */
    rp_planfile_note_board(plan, 1, &board);
    rp_planfile_note_seconds(plan, seconds);
    file = tmpfile();
    assert_non_null(file);
    rp_plan_table(file, plan);
    read_back(file);
    expect_word("left");
    expect_word("right");
    expect_word("3.0 MiB");
    expect_word("100 %");
    expect_word(" 50 %"); /* 1.5 ms beside 3 ms */
    expect_word("wait for stage 0: the boards compute at most 75 %");
    expect_word("inputs    1.1 KiB uint8");
    expect_word("0 - 1       0.2 KiB f32       0.2 KiB f32");
}

/* Two boards for the first stage of two: both names, and the most that either needs. */
static void a_shared_stage_names_all_boards(void **state) {
    (void)state;
    static const char *const names[] = {"left", "right"};
    static const rp_planfile_board said[][3] = {{{"left", 2, 3, 8 << 20, 4 << 20, 90},
                                                 {"middle", 5, 1, 6 << 20, 7 << 20, 80},
                                                 {.name = "right"}},
                                                {{"left", 1, 1, 1 << 20, 1 << 20, 10},
                                                 {"middle", 1, 2, 2 << 20, 1 << 20, 20},
                                                 {.name = "right"}}};
    const uint32_t first[] = {0, 1, 3};
    const rp_cut cut = {.stage_count = 2, .first = first};
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    rp_plan *plan;
    FILE *file = tmpfile();
    assert_non_null(file);
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    rp_plan_node node[] = {
        {.name = "left", .executor = "opencl", .hold_first = 0, .hold_count = 1},
        {.name = "the one in the middle", .executor = "opencl", .hold_first = 1, .hold_count = 1},
        {.name = "right", .executor = "opencl", .hold_first = 2, .hold_count = 1}};
    rp_plan_hold hold[] = {{.node = 0, .share = {0, 0.5}},
                           {.node = 1, .share = {0.5, 1}},
                           {.node = 2, .stage = 1, .share = {0, 1}}};
    plan->node = node;
    plan->hold = hold;
    plan->node_count = plan->hold_count = 3;
    for (uint32_t i = 0; i < 2; i++) { /* again, as after another assignment: what was is gone */
        for (uint32_t k = 0; k < 3; k++) {
            rp_planfile_note_board(plan, k, &said[i][k]);
        }
        const rp_plan_measured *at = &plan->stage[0].measured;
        assert_string_equal(at->board, i == 0 ? "left" : "middle");
        assert_int_equal(at->slots, i == 0 ? 5 : 1);
        assert_int_equal(at->weight_copies, i == 0 ? 3 : 2);
        assert_int_equal(at->device_bytes, (i == 0 ? 8 : 2) << 20);
        assert_int_equal(at->weight_bytes, (i == 0 ? 7 : 1) << 20);
        assert_int_equal(at->resident_bytes, i == 0 ? 90 : 20);
    }
    assert_string_equal(plan->stage[1].measured.board, "right");
    rp_plan_table(file, plan);
    read_back(file);
    expect_word("stage  board                        layers ");
    expect_word("    0  left, the one in the middle  fc1 ");
    expect_word("    1  right                        fc2 .. fc3 (2) ");
}

/* Stages of these seconds, one on each of three boards. */
static void plan_three(const double seconds[6]) {
    static const char *const names[] = {"a", "b", "c"};
    const uint32_t first[] = {0, 1, 2, 3};
    const rp_cut cut = {.stage_count = 3, .first = first};
    run.boards = run.stages = 3;
    const rp_planfile chosen = {.run = &run, .cut = &cut, .board = names};
    rp_plan *plan;
    FILE *file = tmpfile();
    assert_non_null(file);
    expect_ok(rp_planfile_make(&arena, &chosen, &plan));
    rp_planfile_note_seconds(plan, seconds);
    rp_plan_table(file, plan);
    read_back(file);
}

static void fewer_boards_that_would_do_are_named(void **state) {
    (void)state;
    plan_three((const double[]){0.001, 0.002, 0.0005, 0.0005, 0.0002, 0.0003});
    expect_word("with `ring.boards: 2` no stage is longer"); /* 3 ms, and 1 and 0.5 together */
    plan_three((const double[]){0.001, 0.002, 0.001, 0.001, 0.001, 0.0005});
    assert_null(strstr(text, "Fewer boards")); /* 2 and 1.5 are more than 3 */
    plan_three((const double[]){0.0001, 0.0002, 0.001, 0.002, 0.0001, 0.0002});
    assert_null(strstr(text, "Fewer boards")); /* not neighbours */
}

static void a_line_a_layer(void **state) {
    (void)state;
    const double seconds[] = {0.0001, 0.0001, 0.002, 0.004, 1.5, 0.5};
    rp_profile profile;
    FILE *file = tmpfile();
    assert_non_null(file);
    expect_ok(rp_profile_open(&arena, &run, 2, &profile));
    profile.board[0].name = "left";
    profile.board[0].device = "a CPU";
    profile.board[1].name = "right";
    expect_ok(rp_profile_take(&arena, &profile, 0, seconds, 6));
    rp_profile_take_like(&profile, 1, 0);
    rp_profile_show(file, &run, &profile);
    read_back(file);
    for (uint32_t i = 0; i < run.model->layer_count; i++) {
        expect_word(run.model->layer[i].name);
    }
    expect_word("board left: a CPU; also used for right");
    expect_word("100.0 us");
    expect_word("2.00 ms");
    expect_word("1.50 s");
    expect_word("99.7 %");
    expect_word("100.0 %");
    expect_word("left to right");
    expect_word("right to left");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_a_stage, open_run, close_run),
        cmocka_unit_test_setup_teardown(a_shared_stage_names_all_boards, open_run, close_run),
        cmocka_unit_test_setup_teardown(fewer_boards_that_would_do_are_named, open_run, close_run),
        cmocka_unit_test_setup_teardown(a_line_a_layer, open_run, close_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
