#include "folder.h"

#include <math.h>

#include "base/log.h"
#include "record/sink.h"

extern const rp_sink_kind rp_sink_result;

static const rp_summary finished = {.status = "finished",
                                    .model = "lenet",
                                    .schedule = "1f1b",
                                    .stages = 2,
                                    .steps = 4,
                                    .samples = 256,
                                    .seconds = 1.25,
                                    .train_loss = 2.5,
                                    .classes = true,
                                    .eval = {.known = true,
                                             .loss = 0.5,
                                             .accuracy = 0.875,
                                             .mean_iou = (double)NAN,
                                             .samples = 64,
                                             .counted = 64},
                                    .samples_per_s = 1000,
                                    .bubble = 0.25};

/* What the sink writes for `summary`. */
static const char *result_of(const rp_summary *summary, rp_format format, const char *of_folder) {
    FILE *file = fopen(in_folder("out"), "w");
    assert_non_null(file);
    const rp_sink_run run = {.result = file, .format = format, .folder = of_folder};
    void *sink = NULL;
    expect_ok(rp_sink_result.open(&arena, &run, &sink));
    assert_non_null(sink);
    expect_ok(rp_sink_result.close(sink, summary));
    assert_int_equal(fclose(file), 0);
    return slurp("out", NULL);
}

static void text_for_a_person(void **state) {
    (void)state;
    rp_summary summary = finished;
    assert_string_equal(result_of(&summary, RP_FORMAT_TEXT, "runs/x"),
                        "finished: lenet on 2 stages, schedule 1f1b, 4 steps, 1.2 s\n"
                        "train loss 2.5000, 1000 samples/s, bubble 25 %\n"
                        "test loss 0.5000, accuracy 87.50 % of 64\n"
                        "everything is in runs/x\n");
    summary.validation = (rp_summary_score){.known = true,
                                            .loss = 0.25,
                                            .accuracy = 0.5,
                                            .mean_iou = (double)NAN,
                                            .samples = 32,
                                            .counted = 32};
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL),
                           "validation loss 0.2500, accuracy 50.00 % of 32\n"
                           "test loss 0.5000, accuracy 87.50 % of 64\n"));
    summary.validation.known = false;
    summary.eval_split = "train";
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL), "\ntrain loss 0.5000, acc"));
    summary.eval_split = NULL;
    summary.classes = false;
    summary.samples = 0; /* an evaluation only */
    assert_string_equal(result_of(&summary, RP_FORMAT_TEXT, NULL),
                        "finished: lenet on 2 stages, schedule 1f1b, 4 steps, 1.2 s\n"
                        "test loss 0.5 of 64\n");
    summary.classes = true;
    summary.samples = 256;
    summary.train_loss = -NAN;
    summary.eval.loss = INFINITY;
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL),
                           "\ntrain loss not finite, 1000 samples/s, bubble 25 %\n"
                           "test loss not finite, accuracy 87.50 % of 64\n"));
}

static void boards_of_several_stages(void **state) {
    (void)state;
    rp_summary summary = finished;
    summary.boards = 2; /* one stage each */
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL), "on 2 stages, schedule"));
    summary.stages = 4;
    assert_non_null(
        strstr(result_of(&summary, RP_FORMAT_TEXT, NULL), "on 4 stages of 2 boards, schedule"));
}

static void ways_back_are_counted(void **state) {
    (void)state;
    static const rp_summary_recovery told[2] = {{.replay_microbatches = 3},
                                                {.replay_microbatches = 4}};
    rp_summary summary = finished;
    summary.recovery = told;
    summary.recovery_count = 2;
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, "runs/x"),
                           " of 64\nfaults: went back 2 times, 7 microbatches were done again\n"
                           "everything is in runs/x\n"));
    summary.recovery_count = 1;
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL), "went back 1 time, 3 micro"));
    summary.boards_left = 2;
    summary.boards_joined = 1;
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL),
                           "done again\nboards: 2 left the ring, 1 joined it again\n"));
}

/* The wire that the run waits for is named; one that is busy for less, or of unknown rate, is not,
 * nor one that no step waits for. */
static void a_wire_that_limits_is_named(void **state) {
    (void)state;
    rp_summary_wire wire[3] = {
        {.kind = "control", .from = 0, .to = UINT32_MAX, .rate_mbit = 1, .utilisation = 1},
        {.kind = "hop", .from = 0, .to = 1, .rate_mbit = 10, .utilisation = 0.8125},
        {.kind = "feed", .from = UINT32_MAX, .to = 0, .rate_mbit = 2.5, .utilisation = 0.97}};
    rp_summary summary = finished;
    summary.wire = wire;
    summary.wire_count = 3;
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL),
                           "bubble 25 %\nlimited by the wire from the host to board 0: 2.5 Mbit/s, "
                           "busy 97 % of the time; links.inputs sends fewer bytes\ntest loss"));
    wire[2].codec = "uint8";
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL), "97 % of the time\ntest"));
    wire[2].utilisation = NAN;
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL),
                           "limited by the wire from board 0 to board 1: 10 Mbit/s, busy 81 % of "
                           "the time; links.codec sends fewer bytes\n"));
    wire[1].codec = "int8"; /* it is in force: no advice */
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL), "busy 81 % of the time\n"));
    wire[1].utilisation = 0.79;
    assert_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL), "limited"));
}

/* With --verbose: a row for each, and a dash for what is not known. */
static void every_wire_on_request(void **state) {
    (void)state;
    const rp_summary_wire wire[2] = {{.kind = "feed",
                                      .from = UINT32_MAX,
                                      .to = 1,
                                      .bytes = 3 << 19,
                                      .rate_mbit = 10,
                                      .utilisation = 0.25,
                                      .delay_ms = {12.5, 50},
                                      .resent = 7,
                                      .resets = 2,
                                      .codec = "uint8"},
                                     {.kind = "control",
                                      .from = 1,
                                      .to = UINT32_MAX,
                                      .rate_mbit = (double)NAN,
                                      .utilisation = (double)NAN}};
    rp_summary summary = finished;
    summary.wire = wire;
    summary.wire_count = 2;
    assert_null(strstr(result_of(&summary, RP_FORMAT_TEXT, NULL), "uint8"));
    rp_log_setup(RP_LOG_DEBUG, "test");
    const char *text = result_of(&summary, RP_FORMAT_TEXT, NULL);
    rp_log_setup(RP_LOG_INFO, "test");
    assert_non_null(strstr(text, "feed     host 1          1.5        10        25      12.5"
                                 "        50         7         2  uint8\n"));
    assert_non_null(strstr(text, "control  1    host         0         -         -         -"
                                 "         -         0         0  \n"));
}

static void a_failed_run(void **state) {
    (void)state;
    rp_summary summary = finished;
    summary.status = "failed";
    summary.eval.known = false;
    assert_string_equal(result_of(&summary, RP_FORMAT_TEXT, NULL),
                        "failed: lenet on 2 stages, schedule 1f1b, 4 steps, 1.2 s\n"
                        "train loss 2.5000, 1000 samples/s\n");
    summary.samples = 0;
    assert_string_equal(result_of(&summary, RP_FORMAT_TEXT, NULL), "");
    assert_non_null(strstr(result_of(&summary, RP_FORMAT_JSON, NULL), "\"status\": \"failed\""));
    assert_string_equal(result_of(NULL, RP_FORMAT_JSON, NULL), "");
}

static void one_line_of_json(void **state) {
    (void)state;
    const char *text = result_of(&finished, RP_FORMAT_JSON, "runs/x");
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    assert_non_null(strstr(text, "\"samples_per_s\": 1000.0"));
}

static void nobody_asks(void **state) {
    (void)state;
    const rp_sink_run run = {.result = NULL};
    void *sink = NULL;
    expect_ok(rp_sink_result.open(&arena, &run, &sink));
    assert_null(sink);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_for_a_person, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_of_several_stages, setup, teardown),
        cmocka_unit_test_setup_teardown(ways_back_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wire_that_limits_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(every_wire_on_request, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_run, setup, teardown),
        cmocka_unit_test_setup_teardown(one_line_of_json, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_asks, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
