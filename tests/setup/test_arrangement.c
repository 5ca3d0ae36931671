/* What a ring runs with, through the header of the room: no controller and no links. */
#include "arranged.h"
#include "measure/losses.h"

static void expect_boards(uint32_t boards, const char *order) {
    char text[64];
    size_t used = 0;
    for (uint32_t k = 0; k < run->boards + run->spares; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", k ? " " : "",
                                 run->roster[k].name);
    }
    assert_int_equal(run->boards, boards);
    assert_string_equal(text, order);
}

static void boards_leave_and_come(void **state) {
    (void)state;
    open_ring("schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\n", NULL);
    expect_boards(3, "b0 b1 b2 b3");
    rp_arrangement_remove_board(setup_of_run, 1);
    expect_boards(2, "b0 b2 b3 b1");
    assert_int_equal(rp_arrangement_return_board(setup_of_run, 3), 1); /* to its place */
    expect_boards(3, "b0 b1 b2 b3");
    assert_true(rp_arrangement_take_spare(setup_of_run, 0)); /* b0 is the last spare */
    expect_boards(3, "b3 b1 b2 b0");
    rp_arrangement_demote_board(setup_of_run, 2); /* the first spare */
    expect_boards(2, "b3 b1 b2 b0");
    rp_arrangement_drop_spare(setup_of_run);
    assert_int_equal(run->spares, 1);
    assert_ptr_equal(run, rp_arrangement_run(setup_of_run));
}

static void what_varies_is_in_the_run_file(void **state) {
    (void)state;
    open_ring("schedule: {kind: ea-pipe, advance: auto}\noptimizer: {kind: sgd, lr: 0.1}\n", NULL);
    assert_int_equal(run->input_codec, RP_CODEC_UINT8);
    rp_arrangement_lower_inputs(setup_of_run);
    assert_int_equal(run->input_codec, RP_CODEC_F32);
    rp_arrangement_begin_at(setup_of_run, 3);
    rp_arrangement_set_lines(setup_of_run, 0.5);
    assert_int_equal(run->step_first, 3);
    assert_true(run->hops.since_s == 0.5);
    rp_method wanted = run->method;
    rp_method_set_advance(&wanted, run->stages, 2);
    assert_false(rp_arrangement_has_advance(setup_of_run));
    rp_arrangement_take_advance(setup_of_run, &(rp_advance_choice){.advance = 2});
    assert_true(rp_arrangement_has_advance(setup_of_run));
    assert_int_equal(run->method.advance, 2);
    assert_int_equal(run->method.replicas, wanted.replicas);
    assert_true(run->method.alpha == wanted.alpha);
    rp_arrangement_reduce_advance(setup_of_run);
    assert_int_equal(run->method.advance, 1);
    assert_int_equal(run->step_first, 3); /* each change keeps the others */
}

/* The microbatch is open, and nothing is measured: run.yaml gets the run file's. The plan has a
 * stage for each board, in their order. */
static void a_plan_is_made_of_what_was_chosen(void **state) {
    (void)state;
    open_ring("schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\n", "cut=[fc2, fc3]");
    assert_true(run->micro_auto);
    assert_true(rp_arrangement_has_cut(setup_of_run)); /* the run file's */
    expect_ok(rp_arrangement_choose(setup_of_run));
    assert_false(run->micro_auto);
    char micro[16];
    (void)snprintf(micro, sizeof micro, "%u", run->micro);
    const rp_node *written = rp_node_find(rp_node_find(run->root, "train"), "microbatch");
    assert_string_equal(rp_node_text(written), micro);

    assert_null(rp_arrangement_plan(setup_of_run));
    expect_ok(rp_arrangement_make_plan(setup_of_run));
    const rp_plan *plan = rp_arrangement_plan(setup_of_run);
    assert_int_equal(plan->node_count, BOARDS);
    assert_string_equal(plan->node[2].name, "b2");
    assert_int_equal(plan->micro, run->micro);
    assert_int_equal(rp_arrangement_plan_cut(setup_of_run)->first[2], 2);
    assert_int_equal(rp_arrangement_first_stage(setup_of_run, 1), 1);
    assert_non_null(strstr(rp_arrangement_plan_text(setup_of_run), "b1"));
    assert_null(rp_arrangement_given(setup_of_run));
    rp_arrangement_drop_plan(setup_of_run);
    assert_null(rp_arrangement_plan(setup_of_run));

    rp_arrangement_remove_board(setup_of_run, 0); /* the cut is of three stages */
    rp_split_count_stages(setup_of_run, false);
    assert_int_equal(run->stages, 2);
    assert_false(rp_arrangement_has_cut(setup_of_run));
}

/* A checkpoint's codecs, advance and cut: nothing needs to be measured again. */
static void a_run_goes_on_with_what_its_checkpoint_has(void **state) {
    static const rp_codec codec[2][2] = {{RP_CODEC_F16, RP_CODEC_INT8},
                                         {RP_CODEC_F32, RP_CODEC_BF16}};
    static const uint32_t first[] = {0, 1, 2, 3};
    (void)state;
    open_ring("schedule: {kind: pipeoptim, advance: auto}\noptimizer: {kind: sgd, lr: 0.1}\n"
              "links: {codec: auto}\n",
              NULL);
    assert_true(rp_arrangement_needs_profile(setup_of_run));
    assert_true(rp_codecs_may_change(setup_of_run));
    position.step = 5;
    position.setup = rp_setup_of(run);
    position.setup.cut = (rp_cut){.stage_count = 3, .first = first};
    position.setup.codec = codec;
    position.setup.codec_stages = 3;
    position.setup.advance = 3;
    expect_ok(rp_arrangement_resume(setup_of_run));
    assert_memory_equal(run->codec, codec, sizeof codec);
    assert_int_equal(run->method.advance, 3);
    assert_false(rp_codecs_may_change(setup_of_run));
    assert_true(rp_arrangement_needs_profile(setup_of_run)); /* advance: auto looks at links */
    position.setup.codec_stages = position.setup.cut.stage_count = 0;
    position.setup.codec = NULL;
}

/* Codecs of another number of stages are not taken. */
static void codecs_of_other_stages_are_left(void **state) {
    static const rp_codec codec[1][2] = {{RP_CODEC_F16, RP_CODEC_INT8}};
    static const uint32_t first[] = {0, 1, 3};
    (void)state;
    open_ring("schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\nlinks: {codec: auto}\n", NULL);
    position.setup = rp_setup_of(run);
    position.setup.cut = (rp_cut){.stage_count = 2, .first = first};
    position.setup.codec = codec;
    position.setup.codec_stages = 2;
    expect_ok(rp_arrangement_resume(setup_of_run));
    assert_null(run->codec);
    assert_true(rp_codecs_may_change(setup_of_run));
}

static void open_record(void) {
    static char out[512]; /* borrowed by the folder */
    (void)snprintf(out, sizeof out, "%s", in_folder("out"));
    const rp_folder_choice choice = {
        .out = out, .model = "m", .schedule = "gpipe", .temporary = true};
    expect_ok(rp_folder_choose(run_folder, &choice));
    const rp_record_run record = {.model = "m",
                                  .schedule = "gpipe",
                                  .shape = rp_runfile_sched_shape(run, 0),
                                  .folder = rp_folder_paths_of(run_folder)->folder,
                                  .clock = &test_clock};
    expect_ok(rp_folder_open_record(run_folder, &record, &(rp_record_totals){0}));
}

/* The activations of the first stage have lost half of their energy. */
static void lose_much(void) {
    const rp_Finished end = {.loss_count = 1, .loss = {{.stage = 0, .lost = 1, .all = 2}}};
    expect_ok(rp_losses_take(measure, rp_arrangement_plan(setup_of_run), 0, &end));
    expect_ok(rp_arrangement_note_losses(setup_of_run));
}

/* A board is lost before the pipes are empty: the same loss asks for the milder codec again. */
static void a_way_back_drops_codecs_that_wait(void **state) {
    static const rp_codec codec[2][2] = {{RP_CODEC_INT8, RP_CODEC_INT8},
                                         {RP_CODEC_INT8, RP_CODEC_INT8}};
    static const uint32_t first[] = {0, 1, 2, 3};
    (void)state;
    open_ring("schedule: gpipe\noptimizer: {kind: sgd, lr: 0.1}\nlinks: {codec: auto}\n",
              "cut=[fc2, fc3]");
    position.setup = rp_setup_of(run);
    position.setup.cut = (rp_cut){.stage_count = 3, .first = first};
    position.setup.codec = codec;
    position.setup.codec_stages = 3;
    expect_ok(rp_arrangement_resume(setup_of_run));
    expect_ok(rp_arrangement_make_plan(setup_of_run));
    expect_ok(rp_losses_open(measure, rp_arrangement_plan(setup_of_run)));
    open_record();
    lose_much();
    assert_true(rp_arrangement_waits_for_codecs(setup_of_run));
    rp_arrangement_go_back(setup_of_run);
    assert_false(rp_arrangement_waits_for_codecs(setup_of_run));
    lose_much();
    assert_true(rp_arrangement_waits_for_codecs(setup_of_run));
    rp_arrangement_take_next_codecs(setup_of_run);
    assert_int_equal(run->codec[0][0], RP_CODEC_F16);
    assert_int_equal(run->codec[0][1], RP_CODEC_INT8);
    expect_ok(
        rp_folder_close_record(run_folder, &(rp_record_end){.status = "finished", .note = ""}));
    rp_folder_leave(run_folder);
    position.setup.codec_stages = position.setup.cut.stage_count = 0;
    position.setup.codec = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(boards_leave_and_come, setup, close_ring),
        cmocka_unit_test_setup_teardown(what_varies_is_in_the_run_file, setup, close_ring),
        cmocka_unit_test_setup_teardown(a_plan_is_made_of_what_was_chosen, setup, close_ring),
        cmocka_unit_test_setup_teardown(a_run_goes_on_with_what_its_checkpoint_has, setup,
                                        close_ring),
        cmocka_unit_test_setup_teardown(codecs_of_other_stages_are_left, setup, close_ring),
        cmocka_unit_test_setup_teardown(a_way_back_drops_codecs_that_wait, setup, close_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
