#include "folder.h"

#include <math.h>

#include "record/sink_metrics.h"

static const char step_1[] = "{\"step\":1,\"epoch\":0,\"loss\":2.25,\"lr\":0.05,\"samples_per_s\":"
                             "1000.5,\"time_s\":0.125}\n";
static const char step_2[] =
    "{\"step\":2,\"epoch\":0,\"loss\":null,\"lr\":0.05,\"samples_per_s\":null,\"time_s\":0.25}\n";
static const char eval_2[] = "{\"event\":\"eval\",\"step\":2,\"loss\":0.5,\"accuracy\":0.875,"
                             "\"samples\":10000,\"time_s\":3.0,\"split\":\"validation\"}\n";
static const char event_3[] =
    "{\"event\":\"data\",\"step\":3,\"time_s\":4.0,\"text\":\"\\\"gr\xc3\xbc\xc3\x9f\\\"\","
    "\"kind\":\"hint_data\",\"note\":\"\\\"gr\xc3\xbc\xc3\x9f\\\"\"}\n";

extern const rp_sink_kind rp_sink_metrics; /* of the registry */

static rp_err write_event(void *log, const rp_run_event *event, double time_s) {
    char text[RP_WORDS_BYTES];
    return rp_sink_metrics.on_event(
        log, &(rp_sink_event){event, rp_words_write(event, text, sizeof text), time_s});
}

static rp_err write_note(void *log) {
    return write_event(
        log,
        &(rp_run_event){.kind = RP_EVENT_HINT_DATA, .step = 3, .note = "\"gr\xc3\xbc\xc3\x9f\""},
        4);
}

static void write_some(void *log) {
    const rp_sink_step steps[] = {
        {.step = 0, .loss = 2.25, .lr = 0.05, .samples_per_s = 1000.5, .time_s = 0.125},
        {.step = 1, .loss = NAN, .lr = 0.05, .samples_per_s = INFINITY, .time_s = 0.25}};
    const rp_sink_eval eval = {.split = "validation",
                               .step = 2,
                               .loss = 0.5,
                               .accuracy = 0.875,
                               .samples = 10000,
                               .time_s = 3};
    expect_ok(rp_sink_metrics.on_step(log, &steps[0]));
    expect_ok(rp_sink_metrics.on_step(log, &steps[1]));
    expect_ok(rp_sink_metrics.on_eval(log, &eval));
    expect_ok(write_note(log));
}

static void a_line_each_and_at_once(void **state) {
    (void)state;
    void *metrics = NULL;
    char want[1024];
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 0, RP_TARGETS_SINGLE, &metrics));
    write_some(metrics);
    (void)snprintf(want, sizeof want, "%s%s%s%s", step_1, step_2, eval_2, event_3);
    assert_string_equal(slurp("log.jsonl", NULL), want); /* before close */
    const rp_sink_eval values = {
        .split = "test", .step = 4, .loss = 0.5, .accuracy = -1, .samples = 10, .time_s = 3};
    expect_ok(rp_sink_metrics.on_eval(metrics, &values));
    assert_null(strstr(strstr(slurp("log.jsonl", NULL), "\"step\":4"), "accuracy"));
    const rp_run_event bad = {.kind = RP_EVENT_HINT, .step = 4, .note = "\xff"};
    expect_ok(write_event(metrics, &bad, 4)); /* facts are escaped */
    assert_non_null(strstr(slurp("log.jsonl", NULL), "\"text\":\"\\\\xff\""));
    expect_err(rp_sink_metrics.on_event(metrics, &(rp_sink_event){&bad, "\xff", 4}), RP_ERR_FORMAT);
    expect_ok(rp_sink_metrics.close(metrics, NULL));
}

static void resuming_takes_lines_back(void **state) {
    (void)state;
    void *metrics = NULL;
    char want[1024];
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 0, RP_TARGETS_SINGLE, &metrics));
    write_some(metrics);
    expect_ok(rp_sink_metrics.close(metrics, NULL));
    append("log.jsonl", "{\"step\":4,\"ep", 13); /* torn */
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 2, RP_TARGETS_SINGLE, &metrics));
    expect_ok(write_note(metrics));
    expect_ok(rp_sink_metrics.close(metrics, NULL));
    (void)snprintf(want, sizeof want, "%s%s%s%s", step_1, step_2, eval_2, event_3);
    assert_string_equal(slurp("log.jsonl", NULL), want);
    assert_int_equal(access(in_folder("log.jsonl.tmp"), F_OK), -1);
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 1, RP_TARGETS_SINGLE, &metrics));
    expect_ok(rp_sink_metrics.close(metrics, NULL));
    assert_string_equal(slurp("log.jsonl", NULL), step_1);
    /* Nothing to go on with: begins. */
    expect_ok(rp_metrics_open(&arena, in_folder("new.jsonl"), 5, RP_TARGETS_SINGLE, &metrics));
    expect_ok(rp_sink_metrics.close(metrics, NULL));
}

static const char fault[] = "{\"event\":\"damaged\",\"step\":7,\"time_s\":9.0,\"text\":\"it broke; "
                            "the checkpoint of step 7 "
                            "is used\",\"kind\":\"damaged\",\"error\":\"it broke\"}\n";

/* What happened stays where it is, also of steps that are trained again, and from the start. */
static void faults_stay(void **state) {
    (void)state;
    static const uint64_t firsts[] = {2, 0};
    void *metrics = NULL;
    char want[1024];
    for (size_t i = 0; i < 2; i++) {
        (void)remove(in_folder("log.jsonl"));
        expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 0, RP_TARGETS_SINGLE, &metrics));
        write_some(metrics);
        const rp_run_event events[] = {
            {.kind = RP_EVENT_HINT, .step = 2, .note = "every start says it"},
            {.kind = RP_EVENT_DAMAGED, .step = 7, .error = "it broke"}};
        expect_ok(write_event(metrics, &events[0], 5));
        expect_ok(write_event(metrics, &events[1], 9));
        expect_ok(rp_sink_metrics.close(metrics, NULL));
        expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), firsts[i], RP_TARGETS_SINGLE,
                                  &metrics));
        expect_ok(write_note(metrics));
        expect_ok(rp_sink_metrics.close(metrics, NULL));
        (void)snprintf(want, sizeof want, "%s%s%s%s%s", i ? "" : step_1, i ? "" : step_2,
                       i ? "" : eval_2, fault, event_3);
        assert_string_equal(slurp("log.jsonl", NULL), want);
    }
}

/* Steps, evaluations and predictions of former versions counted from 0. */
static void former_numbers_are_renewed(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"{\"event\":\"advance\",\"step\":0,\"text\":\"a\"}\n", NULL},
        {"{\"step\":0,\"loss\":3.0}\n", "{\"step\":1,\"loss\":3.0}\n"},
        {"{\"event\":\"skipped\",\"step\":0,\"text\":\"b\"}\n",
         "{\"event\":\"skipped\",\"step\":1,\"text\":\"b\"}\n"},
        {"{\"step\":1,\"loss\":2.0}\n", "{\"step\":2,\"loss\":2.0}\n"},
        {"{\"event\":\"eval\",\"step\":1}\n", "{\"event\":\"eval\",\"step\":2}\n"},
        {"{\"event\":\"best\",\"step\":2}\n", NULL}, /* counted as now */
        {"{\"event\":\"fault\",\"step\":1}\n", "{\"event\":\"fault\",\"step\":2}\n"},
        {"{\"step\":2,\"loss\":1.0}\n", ""},
    };
    void *metrics = NULL;
    char want[1024] = "";
    (void)remove(in_folder("log.jsonl"));
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *renewed = lines[i][1] ? lines[i][1] : lines[i][0];
        append("log.jsonl", lines[i][0], strlen(lines[i][0]));
        (void)snprintf(want + strlen(want), sizeof want - strlen(want), "%s", renewed);
    }
    for (int times = 0; times < 2; times++) { /* the second finds numbers of now */
        expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 2, RP_TARGETS_SINGLE, &metrics));
        expect_ok(rp_sink_metrics.close(metrics, NULL));
        assert_string_equal(slurp("log.jsonl", NULL), want);
    }
}

/* While the file is open: lines of later steps go, what was a fault stays, and it is written on. */
static void going_back_takes_lines_back(void **state) {
    (void)state;
    void *metrics = NULL;
    char want[1024];
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 0, RP_TARGETS_SINGLE, &metrics));
    write_some(metrics);
    const rp_run_event events[] = {{.kind = RP_EVENT_DAMAGED, .step = 7, .error = "it broke"},
                                   {.kind = RP_EVENT_HINT_DATA, .step = 2, .note = "gone"}};
    expect_ok(write_event(metrics, &events[0], 9));
    expect_ok(write_event(metrics, &events[1], 9));
    expect_ok(rp_sink_metrics.rewind(metrics, 1));
    expect_ok(write_note(metrics));
    (void)snprintf(want, sizeof want, "%s%s%s", step_1, fault, event_3);
    assert_string_equal(slurp("log.jsonl", NULL), want);
    expect_ok(rp_sink_metrics.close(metrics, NULL));
}

static void bad_targets(void **state) {
    (void)state;
    void *metrics = NULL;
    expect_err(rp_metrics_open(&arena, in_folder("none/log.jsonl"), 0, RP_TARGETS_SINGLE, &metrics),
               RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "none/log.jsonl"));
    if (access("/dev/full", W_OK) == 0) {
        expect_ok(rp_metrics_open(&arena, "/dev/full", 0, RP_TARGETS_SINGLE, &metrics));
        expect_err(write_note(metrics), RP_ERR_IO);
        assert_string_equal(rp_err_message(),
                            "/dev/full: cannot be written: No space left on device");
        (void)!rp_sink_metrics.close(metrics, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_each_and_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(resuming_takes_lines_back, setup, teardown),
        cmocka_unit_test_setup_teardown(faults_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(former_numbers_are_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(going_back_takes_lines_back, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_targets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
