/* The folder of a run: chosen and locked once, written so that run.yaml comes last, and what the
 * log of a resumed run says has changed. */
#include "events.h"

#include "folder/folder.h"
#include "planning/planfile.h"
#include "run_of.h"

static char place[80]; /* of the run's folder, in the test's */

static int begin(void **state) {
    const int failed = setup(state);
    (void)snprintf(place, sizeof place, "%s/out", folder);
    return failed;
}

static rp_folder *opened(void) {
    rp_folder *out;
    expect_ok(rp_folder_open(&arena, &out));
    return out;
}

static rp_err choose(rp_folder *of, bool resume) {
    return rp_folder_choose(of, &(rp_folder_choice){.resume = resume ? place : NULL,
                                                    .out = resume ? NULL : place,
                                                    .model = "model",
                                                    .schedule = "gpipe",
                                                    .temporary = true});
}

static bool is_there(const char *name) {
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", place, name);
    return access(path, F_OK) == 0;
}

static rp_plan *plan_of(const rp_runfile *run) {
    static const uint32_t first[] = {0, 1, 3};
    static const char *const names[] = {"0", "1"};
    const rp_cut cut = {.stage_count = 2, .first = first};
    rp_plan *plan;
    expect_ok(
        rp_planfile_make(&arena, &(rp_planfile){.run = run, .cut = &cut, .board = names}, &plan));
    return plan;
}

static void one_controller_has_it_at_a_time(void **state) {
    (void)state;
    rp_folder *first = opened();
    rp_folder *second = opened();
    assert_null(rp_folder_paths_of(first)->folder);
    expect_ok(choose(first, false));
    assert_string_equal(rp_folder_paths_of(first)->folder, place);
    assert_true(is_there("."));
    expect_err(choose(second, false), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "another ringpipe trains in this folder"));
    rp_folder_leave(first);
    rp_folder_leave(second);
    expect_ok(choose(opened(), false));
}

static void the_end_of_a_process_frees_it(void **state) {
    (void)state;
    rp_folder *crashed = opened();
    rp_folder *next = opened();
    expect_ok(choose(crashed, false));
    rp_folder_unlock(crashed);
    expect_ok(choose(next, false));
    rp_folder_leave(next);
}

static void a_folder_without_a_run_is_not_resumed(void **state) {
    (void)state;
    expect_err(choose(opened(), true), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "no run to resume"));
    assert_false(is_there("."));
}

static void a_process_is_named_as_its_owner(void **state) {
    (void)state;
    rp_folder *own = opened();
    expect_ok(rp_folder_choose(
        own, &(rp_folder_choice){.out = place, .model = "model", .schedule = "gpipe"}));
    assert_true(is_there("controller.json"));
    rp_folder_leave(own);
    assert_false(is_there("controller.json"));
}

static void open_record(rp_folder *of, const rp_runfile *run) {
    const rp_record_run about = {.model = "model",
                                 .schedule = "gpipe",
                                 .shape = rp_runfile_sched_shape(run, 0),
                                 .stages = 2,
                                 .folder = place,
                                 .temporary = true};
    expect_ok(rp_folder_open_record(of, &about, &(rp_record_totals){0}));
    assert_non_null(rp_folder_record(of));
    assert_null(rp_folder_transfers(of)); /* nobody reads the trace of a temporary folder */
}

static void write_whole(rp_folder *of, const rp_runfile *run, bool resumed) {
    const rp_about about = {.plan = "made"};
    expect_ok(rp_folder_write(
        of, &(rp_folder_contents){
                .run = run, .plan = plan_of(run), .about = &about, .resumed = resumed, .step = 5}));
}

#define SGD(lr) "schedule: gpipe\ncut: auto\noptimizer: {kind: sgd, lr: " lr "}\n"

static void what_a_resumed_run_changes_is_logged(void **state) {
    (void)state;
    rp_runfile run, other;
    char change[200];
    rp_folder *first = opened();
    rp_folder *again = opened();
    read_run(&run, SGD("0.1"));
    expect_ok(choose(first, false));
    open_record(first, &run);
    write_whole(first, &run, false);
    assert_true(is_there("run.yaml") && is_there("model.yaml") && is_there("plan.json") &&
                is_there("data.json") && is_there("about.json"));
    expect_ok(rp_folder_close_record(first, &(rp_record_end){.status = "interrupted", .note = ""}));
    rp_folder_leave(first);

    read_run(&other, SGD("0.2"));
    expect_ok(choose(again, true));
    open_record(again, &other);
    expect_ok(rp_folder_find_change(again, &other, change, sizeof change));
    assert_non_null(strstr(change, "optimizer.lr"));
    write_whole(again, &other, true);
    expect_ok(rp_folder_find_change(again, &other, change, sizeof change));
    assert_string_equal(change, ""); /* run.yaml has it now */
    expect_ok(rp_folder_close_record(again, &(rp_record_end){.status = "interrupted", .note = ""}));
    rp_folder_leave(again);
    expect_events(1, .kind = RP_EVENT_RESUMED, .step = 5, .changes = "optimizer.lr");
    expect_events(0, .kind = RP_EVENT_DATA_CHANGED);
    rp_runfile_close(&run);
    rp_runfile_close(&other);
}

/* Puts the characters of a text into the place of the run's data. */
static void take_text(rp_runfile *run, const char *text) {
    char keys[200];
    rp_node *node;
    write_text("input.txt", text);
    (void)snprintf(keys, sizeof keys, "{set: text, path: %s/input.txt, tokens: chars, time: 1}",
                   folder);
    expect_ok(rp_config_read_text(&arena, keys, strlen(keys), "data", &node));
    rp_data_close(&run->data);
    expect_ok(rp_data_open(&arena, &run->data, node, NULL, true, 7));
}

static void another_vocabulary_is_not_resumed(void **state) {
    (void)state;
    rp_runfile run;
    rp_folder *first = opened();
    rp_folder *again = opened();
    read_run(&run, SGD("0.1"));
    take_text(&run, "abcabcabcabcabcabcabcabc");
    expect_ok(choose(first, false));
    open_record(first, &run);
    write_whole(first, &run, false);
    expect_ok(rp_folder_close_record(first, &(rp_record_end){.status = "interrupted", .note = ""}));
    rp_folder_leave(first);

    take_text(&run, "abdabdabdabdabdabdabdabdabd");
    expect_ok(choose(again, true));
    open_record(again, &run);
    expect_err(rp_folder_check_data(again, &run), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "token 2 is 'd', but 'c' in "));
    take_text(&run, "cabcabcabcabcabcabcabcabcab"); /* another text of these characters */
    expect_ok(rp_folder_check_data(again, &run));
    write_whole(again, &run, true);
    expect_events(1, .kind = RP_EVENT_DATA_CHANGED, .step = 5, .keys = "samples");
    expect_ok(rp_folder_close_record(again, &(rp_record_end){.status = "interrupted", .note = ""}));
    rp_folder_leave(again);
    rp_runfile_close(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_controller_has_it_at_a_time, begin, teardown),
        cmocka_unit_test_setup_teardown(the_end_of_a_process_frees_it, begin, teardown),
        cmocka_unit_test_setup_teardown(a_folder_without_a_run_is_not_resumed, begin, teardown),
        cmocka_unit_test_setup_teardown(a_process_is_named_as_its_owner, begin, teardown),
        cmocka_unit_test_setup_teardown(what_a_resumed_run_changes_is_logged, begin, teardown),
        cmocka_unit_test_setup_teardown(another_vocabulary_is_not_resumed, begin, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
