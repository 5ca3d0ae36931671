#include "folder.h"

#include <math.h>

#include "record/sink_metrics.h"

static const char step_0[] = "{\"step\":0,\"epoch\":0,\"loss\":2.25,\"lr\":0.05,\"samples_per_s\":"
                             "1000.5,\"time_s\":0.125}\n";
static const char step_1[] =
    "{\"step\":1,\"epoch\":0,\"loss\":null,\"lr\":0.05,\"samples_per_s\":null,\"time_s\":0.25}\n";
static const char eval_1[] = "{\"event\":\"eval\",\"step\":1,\"loss\":0.5,\"accuracy\":0.875,"
                             "\"samples\":10000,\"time_s\":3.0,\"split\":\"validation\"}\n";
static const char event_2[] =
    "{\"event\":\"check\\\"point\",\"step\":2,\"time_s\":4.0,\"text\":\"gr\xc3\xbc\xc3\x9f\\n\"}\n";

static void write_some(rp_metrics *metrics) {
    expect_ok(rp_metrics_write_step(
        metrics,
        &(rp_metrics_step){
            .step = 0, .loss = 2.25, .lr = 0.05, .samples_per_s = 1000.5, .time_s = 0.125}));
    expect_ok(rp_metrics_write_step(
        metrics,
        &(rp_metrics_step){
            .step = 1, .loss = NAN, .lr = 0.05, .samples_per_s = INFINITY, .time_s = 0.25}));
    expect_ok(rp_metrics_write_eval(metrics, "validation", 1, 0.5, 0.875, 10000, 3));
    expect_ok(rp_metrics_write_event(metrics, "check\"point", 2, 4, "gr\xc3\xbc\xc3\x9f\n"));
}

static void a_line_each_and_at_once(void **state) {
    (void)state;
    rp_metrics *metrics = NULL;
    char want[1024];
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 0, &metrics));
    write_some(metrics);
    (void)snprintf(want, sizeof want, "%s%s%s%s", step_0, step_1, eval_1, event_2);
    assert_string_equal(slurp("log.jsonl", NULL), want); /* before close */
    expect_ok(rp_metrics_write_eval(metrics, "test", 3, 0.5, -1, 10, 3));
    assert_null(strstr(strstr(slurp("log.jsonl", NULL), "\"step\":3"), "accuracy"));
    expect_err(rp_metrics_write_event(metrics, "\xff", 2, 4, ""), RP_ERR_FORMAT);
    expect_ok(rp_metrics_close(&metrics));
    expect_ok(rp_metrics_close(&metrics));
}

static void resuming_takes_lines_back(void **state) {
    (void)state;
    rp_metrics *metrics = NULL;
    char want[1024];
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 0, &metrics));
    write_some(metrics);
    expect_ok(rp_metrics_close(&metrics));
    append("log.jsonl", "{\"step\":3,\"ep", 13); /* torn */
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 2, &metrics));
    expect_ok(rp_metrics_write_event(metrics, "check\"point", 2, 4, "gr\xc3\xbc\xc3\x9f\n"));
    expect_ok(rp_metrics_close(&metrics));
    (void)snprintf(want, sizeof want, "%s%s%s%s", step_0, step_1, eval_1, event_2);
    assert_string_equal(slurp("log.jsonl", NULL), want);
    assert_int_equal(access(in_folder("log.jsonl.tmp"), F_OK), -1);
    expect_ok(rp_metrics_open(&arena, in_folder("log.jsonl"), 1, &metrics));
    expect_ok(rp_metrics_close(&metrics));
    assert_string_equal(slurp("log.jsonl", NULL), step_0);
    /* Nothing to go on with: begins. */
    expect_ok(rp_metrics_open(&arena, in_folder("new.jsonl"), 5, &metrics));
    expect_ok(rp_metrics_close(&metrics));
}

static void bad_targets(void **state) {
    (void)state;
    rp_metrics *metrics = NULL;
    expect_err(rp_metrics_open(&arena, in_folder("none/log.jsonl"), 0, &metrics), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "none/log.jsonl"));
    if (access("/dev/full", W_OK) == 0) {
        expect_ok(rp_metrics_open(&arena, "/dev/full", 0, &metrics));
        expect_err(rp_metrics_write_event(metrics, "a", 0, 0, ""), RP_ERR_IO);
        assert_string_equal(rp_err_message(),
                            "/dev/full: can not be written: No space left on device");
        (void)!rp_metrics_close(&metrics);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_each_and_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(resuming_takes_lines_back, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_targets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
