#include "folder.h"

#include <math.h>

#include "record/summary.h"

static const char *const layers[] = {"conv1", "relu1"};
static const rp_summary_stage stages[] = {{.board = "pocl-cpu",
                                           .layers = layers,
                                           .layer_count = 2,
                                           .busy_s = 1.5,
                                           .idle_s = 0.5,
                                           .weight_bytes = 5000000000,
                                           .device_bytes_max = 7,
                                           .flash_bytes = 8,
                                           .energy_j = 12.5,
                                           .weight_versions_max = 1,
                                           .probe_copies = 2,
                                           .in_flight_max = 4}};
static const rp_summary_link links[] = {
    {.from = 0, .to = 1, .bytes = 9, .busy_s = 0.25, .utilisation = 0.125, .codec = "f16 int8"}};
static const rp_summary_recovery recoveries[] = {
    {.board = 2, .detect_s = 1, .replan_s = 2, .restore_s = 3, .replay_microbatches = 4}};
static const rp_summary whole = {.status = "finished",
                                 .model = "vgg11",
                                 .schedule = "gpipe",
                                 .stages = 2,
                                 .epochs = 5,
                                 .steps = 2345,
                                 .samples = 300000,
                                 .seconds = 61.25,
                                 .train_loss = 0.3125,
                                 .classes = true,
                                 .eval = {.known = true,
                                          .loss = 0.375,
                                          .accuracy = 0.873,
                                          .mean_iou = (double)NAN,
                                          .samples = 10000,
                                          .counted = 10000},
                                 .best = {5, "accuracy", "test", 0.875, "best.safetensors"},
                                 .samples_per_s = 4901.5,
                                 .energy_j_per_sample = 0.25,
                                 .stage = stages,
                                 .stage_count = 1,
                                 .link = links,
                                 .link_count = 1,
                                 .bubble = 0.12,
                                 .microbatches = 9380,
                                 .ledger = {.known = true, .samples = 299999, .digest = 0xab},
                                 .recovery = recoveries,
                                 .recovery_count = 1,
                                 .boards_left = 2,
                                 .boards_joined = 1};
static const char whole_text[] =
    "{\"version\": 1, \"status\": \"finished\", \"model\": \"vgg11\", \"schedule\": \"gpipe\", "
    "\"stages\": 2, \"epochs\": 5, \"steps\": 2345, \"samples\": 300000, \"seconds\": 61.25, "
    "\"train\": {\"loss\": 0.3125}, \"eval\": {\"loss\": 0.375, \"accuracy\": 0.873, \"samples\": "
    "10000}, \"best\": {\"step\": 5, \"metric\": \"accuracy\", \"split\": \"test\", "
    "\"value\": 0.875, \"path\": \"best.safetensors\"}, \"samples_per_s\": 4901.5, "
    "\"energy_j_per_sample\": 0.25, \"stage\": [{\"board\": \"pocl-cpu\", \"layers\": "
    "[\"conv1\", \"relu1\"], \"busy_s\": 1.5, \"idle_s\": 0.5, \"weight_bytes\": 5000000000, "
    "\"device_bytes_max\": 7, \"flash_bytes\": 8, \"energy_j\": 12.5, \"weight_versions_max\": 1, "
    "\"probe_copies\": 2, \"in_flight_max\": 4, \"gap_max\": 0}], \"link\": [{\"from\": 0, "
    "\"to\": 1, \"bytes\": 9, \"busy_s\": 0.25, \"utilisation\": 0.125, "
    "\"codec\": \"f16 int8\"}], \"wire\": [], "
    "\"bubble\": 0.12, \"ledger\": {\"microbatches\": 9380, \"lost\": 0, \"repeated\": 0, "
    "\"samples\": 299999, \"digest\": \"00000000000000ab\"}, "
    "\"recovery\": [{\"board\": 2, \"detect_s\": 1.0, \"replan_s\": 2.0, \"restore_s\": 3.0, "
    "\"replay_microbatches\": 4}], \"boards_left\": 2, \"boards_joined\": 1}\n";

static void printed_in_one_line(void **state) {
    (void)state;
    FILE *file = fopen(in_folder("out"), "w");
    expect_ok(rp_summary_print(&whole, file));
    fclose(file);
    assert_string_equal(slurp("out", NULL), whole_text);
}

static void boards_with_several_stages(void **state) {
    (void)state;
    static const uint32_t held[] = {0, 2};
    const rp_summary_stage board = {
        .board = "b", .layers = layers, .layer_count = 2, .stages = held, .stage_count = 2};
    rp_summary summary = whole;
    summary.stage = &board;
    summary.stages = 4;
    summary.boards = 2;
    FILE *file = fopen(in_folder("out"), "w");
    expect_ok(rp_summary_print(&summary, file));
    fclose(file);
    const char *text = slurp("out", NULL);
    assert_non_null(strstr(text, "\"stages\": 4, \"boards\": 2, \"epochs\""));
    assert_non_null(strstr(text, "\"relu1\"], \"stages\": [0, 2], \"busy_s\""));
}

/* Blanks and line ends between the words do not count. */
static void expect_same_words(const char *a, const char *b) {
    for (;;) {
        a += strspn(a, " \n");
        b += strspn(b, " \n");
        if (*a != *b) {
            fail_msg("'%.40s' is not '%.40s'", a, b);
        }
        if (*a == '\0') {
            return;
        }
        a++;
        b++;
    }
}

static void written_whole_or_not(void **state) {
    (void)state;
    expect_ok(rp_summary_write(&whole, in_folder("summary.json")));
    expect_same_words(slurp("summary.json", NULL), whole_text);
    rp_summary broken = whole;
    broken.model = "\xff";
    expect_err(rp_summary_write(&broken, in_folder("summary.json")), RP_ERR_FORMAT);
    expect_same_words(slurp("summary.json", NULL), whole_text);
    assert_int_equal(access(in_folder("summary.json.tmp"), F_OK), -1);
    expect_err(rp_summary_write(&whole, in_folder("none/summary.json")), RP_ERR_IO);
}

static void what_is_not_known_is_left_out(void **state) {
    (void)state;
    rp_summary partly = whole;
    partly.eval.known = false;
    partly.train_loss = NAN;
    partly.note = "stopped";
    partly.recovery_count = partly.stage_count = partly.link_count = 0;
    expect_ok(rp_summary_write(&partly, in_folder("summary.json")));
    const char *text = slurp("summary.json", NULL);
    assert_null(strstr(text, "\"eval\""));
    assert_non_null(strstr(text, "\"loss\": null"));
    assert_non_null(strstr(text, "\"note\": \"stopped\""));
    assert_non_null(strstr(text, "\"stage\": []"));
    partly.best.path = NULL;
    expect_ok(rp_summary_write(&partly, in_folder("summary.json")));
    assert_non_null(strstr(slurp("summary.json", NULL), "\"path\": null"));
    partly.eval.known = true;
    partly.classes = false;
    partly.best.step = 0;
    expect_ok(rp_summary_write(&partly, in_folder("summary.json")));
    assert_null(strstr(slurp("summary.json", NULL), "accuracy"));
    assert_null(strstr(slurp("summary.json", NULL), "best"));
}

/* The validation part stands beside the test part; another part is named. */
static void parts_of_the_data(void **state) {
    (void)state;
    char text[4096];
    rp_summary both = whole;
    both.validation = (rp_summary_score){.known = true,
                                         .loss = 0.25,
                                         .accuracy = 0.75,
                                         .mean_iou = (double)NAN,
                                         .samples = 500,
                                         .counted = 500};
    both.eval_split = "test";
    FILE *file = fmemopen(text, sizeof text, "w");
    expect_ok(rp_summary_print(&both, file));
    (void)fclose(file);
    assert_non_null(strstr(text, "\"eval\": {\"loss\": 0.375, \"accuracy\": 0.873, "
                                 "\"samples\": 10000}, \"validation\": {\"loss\": 0.25, "
                                 "\"accuracy\": 0.75, \"samples\": 500}, "));
    both.validation.known = false;
    both.eval_split = "train";
    file = fmemopen(text, sizeof text, "w");
    expect_ok(rp_summary_print(&both, file));
    (void)fclose(file);
    assert_non_null(strstr(text, "\"samples\": 10000, \"split\": \"train\"}"));
    assert_null(strstr(text, "validation"));
}

static const rp_summary_wire wires[] = {{.kind = "hop",
                                         .from = 0,
                                         .to = 1,
                                         .bytes = 1000,
                                         .rate_mbit = 8,
                                         .busy_s = 0.5,
                                         .utilisation = 0.25,
                                         .delay_ms = {1.5, 2.5},
                                         .resent = 3,
                                         .resets = 2,
                                         .codec = "f16",
                                         .l2_error = 0.125},
                                        {.kind = "control",
                                         .from = UINT32_MAX,
                                         .to = 1,
                                         .bytes = 7,
                                         .rate_mbit = (double)NAN,
                                         .busy_s = (double)NAN,
                                         .utilisation = (double)NAN,
                                         .l2_error = (double)NAN}};

static const char wires_text[] =
    "\"wire\": [{\"kind\": \"hop\", \"from\": 0, \"to\": 1, \"bytes\": 1000, \"rate_mbit\": 8.0, "
    "\"busy_s\": 0.5, \"utilisation\": 0.25, \"delay_p50_ms\": 1.5, \"delay_p95_ms\": 2.5, "
    "\"resent\": 3, \"resets\": 2, \"codec\": \"f16\", \"l2_error\": 0.125}, {\"kind\": "
    "\"control\", \"from\": "
    "\"host\", "
    "\"to\": 1, \"bytes\": 7, \"rate_mbit\": null, \"busy_s\": null, \"utilisation\": null, "
    "\"delay_p50_ms\": null, \"delay_p95_ms\": null, \"resent\": 0, \"resets\": 0}]";

static void every_wire_has_its_row(void **state) {
    (void)state;
    rp_summary with = whole;
    char text[8192] = "";
    with.wire = wires;
    with.wire_count = 2;
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    expect_ok(rp_summary_print(&with, file));
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, wires_text));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(printed_in_one_line, setup, teardown),
        cmocka_unit_test(every_wire_has_its_row),
        cmocka_unit_test_setup_teardown(boards_with_several_stages, setup, teardown),
        cmocka_unit_test_setup_teardown(written_whole_or_not, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_known_is_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_the_data, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
