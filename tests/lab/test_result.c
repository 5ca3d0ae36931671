#include "folder.h"

#include <math.h>

#include "lab/result.h"

static const char summary[] =
    "{\"version\": 1, \"status\": \"finished\", \"model\": \"mlp\", \"schedule\": \"gpipe\","
    " \"stages\": 2, \"epochs\": 2, \"steps\": 8, \"samples\": 512, \"seconds\": 2.5,"
    " \"train\": {\"loss\": 0.5}, \"eval\": {\"loss\": 0.75, \"accuracy\": 0.875, \"samples\": 64},"
    " \"samples_per_s\": 1000, \"bubble\": 0.25, \"stage\": ["
    "{\"board\": \"cpu\", \"layers\": [\"fc1\", \"relu1\"], \"busy_s\": 1, \"idle_s\": 3,"
    " \"weight_bytes\": 100, \"device_bytes_max\": 4096, \"weight_versions_max\": 2,"
    " \"in_flight_max\": 4, \"gap_max\": 1},"
    "{\"board\": \"cpu\", \"layers\": [\"fc2\"], \"gap_max\": 0}]}\n";

static rp_lab_result read_run(const char *summary_text, const char *log, const char *said) {
    rp_lab_result result;
    if (summary_text) {
        write_text("run/summary.json", summary_text);
    }
    if (log) {
        write_text("run/log.jsonl", log);
    }
    if (said) {
        write_text("run.log", said);
    }
    expect_ok(rp_lab_result_read(&arena, in_folder("run"), in_folder("run.log"), &result));
    return result;
}

/* Eight steps of two epochs, counted from `first`; an evaluation after each. */
static void put_log(char *text, size_t bytes, int first, const char *loss_of_5) {
    size_t used = 0;
    for (int step = 0; step < 8; step++) {
        char loss[16];
        (void)snprintf(loss, sizeof loss, "%g", 2 - 0.25 * step);
        used +=
            (size_t)snprintf(text + used, bytes - used,
                             "{\"step\":%d,\"epoch\":%d,\"loss\":%s,\"lr\":0.1,\"time_s\":%d}\n",
                             first + step, step / 4, step == 5 ? loss_of_5 : loss, step);
        if (step % 4 == 3) {
            used += (size_t)snprintf(text + used, bytes - used,
                                     "{\"event\":\"eval\",\"step\":%d,\"loss\":%g,\"accuracy\":0.5,"
                                     "\"samples\":64,\"time_s\":%d.5}\n",
                                     first + step, 1.0 / (step + 1), step);
        }
    }
}

/* Counted from 1, or as former versions did. */
static void check_finished(int first) {
    char log[4096];
    put_log(log, sizeof log, first, "0.75");
    rp_lab_result r = read_run(summary, log, "12:00 host run: error: of an earlier attempt\n");
    assert_int_equal(r.status, RP_LAB_FINISHED);
    assert_true(!r.diverged && r.classes && r.ended_s > 0);
    expect_close(r.accuracy, 0.875, 0, 0);
    expect_close(r.eval_loss, 0.75, 0, 0);
    expect_close(r.train_loss, 0.5, 0, 0);
    assert_int_equal(r.stage_count, 2);
    assert_string_equal(r.stage[0].first_layer, "fc1");
    assert_string_equal(r.stage[0].last_layer, "relu1");
    expect_close(r.stage[0].device_bytes_max, 4096, 0, 0);
    expect_close(r.stage[0].weight_versions_max, 2, 0, 0);
    assert_true(isnan(r.stage[1].device_bytes_max)); /* not said */
    expect_close(rp_lab_result_number(&r, "bubble"), 0.25, 0, 0);
    expect_close(rp_lab_result_number(&r, "eval.samples"), 64, 0, 0);
    expect_close(rp_lab_result_number(&r, "stage.1.gap_max"), 0, 0, 0);
    assert_true(isnan(rp_lab_result_number(&r, "stage.1.busy_s")));
    assert_true(isnan(rp_lab_result_number(&r, "eval")));
    assert_int_equal(r.eval_count, 2);
    expect_close(r.eval[0].epoch, 1, 0, 0);
    expect_close(r.eval[1].epoch, 2, 0, 0);
    expect_close(r.eval[1].loss, 0.125, 0, 0);
    expect_close(r.eval[1].time_s, 7.5, 0, 0);
    expect_close(r.first_step_s, 0, 0, 0);
    assert_int_equal(r.bin_count, 8); /* few steps: one a bin */
    expect_close(r.bin_loss[6], 0.5, 0, 0);
    assert_int_equal(r.prediction_count, 0);
    assert_true(isnan(rp_lab_result_gain(&r)));
}

static void a_finished_run(void **state) {
    (void)state;
    check_finished(1);
    check_finished(0);
}

/* Tuning and curves look at the validation part where there is one. */
static void a_validation_part(void **state) {
    (void)state;
    const char log[] =
        "{\"step\":0,\"epoch\":0,\"loss\":1}\n"
        "{\"event\":\"eval\",\"step\":0,\"loss\":0.5,\"accuracy\":0.25,\"split\":\"validation\"}\n"
        "{\"event\":\"eval\",\"step\":0,\"loss\":4,\"accuracy\":0.125,\"split\":\"test\"}\n";
    rp_lab_result r = read_run("{\"status\": \"finished\", \"steps\": 1, \"epochs\": 1,"
                               " \"train\": {\"loss\": 1}, \"eval\": {\"loss\": 4,"
                               " \"accuracy\": 0.125}, \"validation\": {\"loss\": 0.5,"
                               " \"accuracy\": 0.25, \"samples\": 8}}",
                               log, NULL);
    assert_true(r.validated && r.classes && !r.diverged);
    expect_close(r.accuracy, 0.125, 0, 0);
    expect_close(r.validation_accuracy, 0.25, 0, 0);
    expect_close(r.validation_loss, 0.5, 0, 0);
    assert_int_equal(r.eval_count, 1);
    expect_close(r.eval[0].loss, 0.5, 0, 0);
    r = read_run("{\"status\": \"finished\", \"train\": {\"loss\": 1},"
                 " \"validation\": {\"loss\": null}}",
                 log, NULL);
    assert_true(r.diverged);
    r = read_run("{\"status\": \"finished\", \"train\": {\"loss\": 1}, \"eval\": {\"loss\": 4}}",
                 log, NULL);
    assert_true(!r.validated && r.eval_count == 1);
    expect_close(r.eval[0].loss, 4, 0, 0);
}

static void many_steps_are_binned(void **state) {
    (void)state;
    char *log;
    size_t used = 0;
    enum { STEPS = 1000, BYTES = STEPS * 48 };
    expect_ok(RP_ARENA_NEW(&arena, BYTES, &log));
    for (int step = 0; step < STEPS; step++) {
        used += (size_t)snprintf(log + used, BYTES - used,
                                 "{\"step\":%d,\"epoch\":0,\"loss\":%s}\n", step,
                                 step == 7  ? "null"
                                 : step % 2 ? "1"
                                            : "3");
    }
    rp_lab_result r = read_run("{\"status\": \"finished\", \"steps\": 1000, \"epochs\": 1,"
                               " \"train\": {\"loss\": 2}}",
                               log, NULL);
    assert_int_equal(r.status, RP_LAB_FINISHED);
    expect_close(r.bin_steps, 5, 0, 0);
    assert_int_equal(r.bin_count, 200);
    expect_close(r.bin_loss[0], 11.0 / 5, 1e-12, 0);
    assert_true(isnan(r.bin_loss[1])); /* has step 7 */
    expect_close(r.bin_loss[2], 11.0 / 5, 1e-12, 0);
}

static void not_finite_is_diverged(void **state) {
    (void)state;
    char log[4096];
    put_log(log, sizeof log, 1, "null");
    const char *const wrong[] = {
        "{\"status\": \"finished\", \"train\": {\"loss\": null}}",
        "{\"status\": \"finished\", \"train\": {\"loss\": 1}, \"eval\": {\"loss\": null,"
        " \"accuracy\": 0.1}}",
        "{\"status\": \"finished\", \"train\": {\"loss\": 1}, \"eval\": {\"loss\": 1,"
        " \"accuracy\": null}}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rp_lab_result r = read_run(wrong[i], log, NULL);
        assert_int_equal(r.status, RP_LAB_FINISHED);
        assert_true(r.diverged);
    }
    rp_lab_result r = read_run(summary, log, NULL);
    assert_false(r.diverged); /* it has recovered from one step */
    assert_true(isnan(r.bin_loss[5]));
    r = read_run("{\"status\": \"finished\", \"train\": {\"loss\": 1}}", log, NULL);
    assert_false(r.diverged || r.classes); /* no test set */
}

static void predictions(void **state) {
    (void)state;
    const char log[] = "{\"step\":0,\"epoch\":0,\"loss\":1}\n"
                       "{\"event\":\"prediction\",\"step\":0,\"stage\":0,\"gap\":3,\"error\":1,"
                       "\"stale_error\":4,\"time_s\":1}\n"
                       "{\"event\":\"prediction\",\"step\":1,\"stage\":0,\"gap\":1,\"error\":3,"
                       "\"stale_error\":4,\"time_s\":1}\n"
                       "{\"event\":\"prediction\",\"step\":1,\"stage\":1,\"gap\":0,\"error\":1,"
                       "\"stale_error\":0,\"time_s\":1}\n"
                       "{\"event\":\"prediction\",\"step\":1,\"stage\":2,\"gap\":0,\"error\":1,"
                       "\"stale_error\":5,\"time_s\":1}\n"
                       "{\"event\":\"prediction\",\"step\":1,\"stage\":999999,\"gap\":0}\n"
                       "{\"event\":\"prediction\",\"step\":-1,\"stage\":0,\"gap\":0}\n"
                       "{\"event\":\"something new\",\"step\":1}\n";
    rp_lab_result r = read_run(summary, log, NULL);
    assert_int_equal(r.status, RP_LAB_FINISHED);
    assert_int_equal(r.prediction_count, 3);
    const rp_lab_prediction *p = &r.prediction[0];
    assert_int_equal(p->stage, 0);
    assert_int_equal(p->lines, 2);
    expect_close(p->gap_max, 3, 0, 0);
    expect_close(p->error_mean, 2, 0, 0);
    expect_close(p->error[1], 3, 0, 0);
    assert_true(isnan(p->error[2]));
    expect_close(rp_lab_result_gain(&r), 3, 0, 0); /* not stage 1, where nothing was to come */
}

/* The earliest step, wherever its line is; a time that is none does not count. */
static void time_begins_at_the_first_step(void **state) {
    (void)state;
    rp_lab_result r = read_run(summary,
                               "{\"step\":0,\"epoch\":0,\"loss\":1,\"time_s\":null}\n"
                               "{\"event\":\"checkpoint\",\"step\":0,\"time_s\":1}\n"
                               "{\"step\":1,\"epoch\":0,\"loss\":1,\"time_s\":31.5}\n"
                               "{\"step\":2,\"epoch\":0,\"loss\":1,\"time_s\":32}\n",
                               NULL);
    expect_close(r.first_step_s, 31.5, 0, 0);
    r = read_run(summary, "{\"step\":0,\"loss\":1}\n", NULL);
    assert_true(isnan(r.first_step_s));
}

static void runs_that_are_not_finished(void **state) {
    (void)state;
    rp_lab_result r = read_run(NULL, NULL, NULL);
    assert_int_equal(r.status, RP_LAB_OPEN);
    r = read_run(NULL, "{\"step\":0}\n", "starting the agents\n");
    assert_int_equal(r.status, RP_LAB_OPEN); /* killed with us */
    r = read_run(NULL, NULL, "12:00:01 host run: error: agent 1 was killed\ngo on with: ...\n");
    assert_int_equal(r.status, RP_LAB_FAILED);
    assert_string_equal(r.note, "agent 1 was killed");
    r = read_run(NULL, NULL, "ringpipe: agent 2 was killed\nringpipe: warning: slow\nx\n");
    assert_int_equal(r.status, RP_LAB_FAILED);
    assert_string_equal(r.note, "agent 2 was killed");
    r = read_run(NULL, NULL, "ringpipe: note: fetching\nringpipe: warning: error: slow\n");
    assert_int_equal(r.status, RP_LAB_OPEN);
    r = read_run(NULL, NULL, "ringpipe: interrupted after step 5\n");
    assert_int_equal(r.status, RP_LAB_INTERRUPTED);
    r = read_run("{\"status\": \"interrupted\", \"note\": \"interrupted after step 3\"}", NULL, "");
    assert_int_equal(r.status, RP_LAB_INTERRUPTED);
    r = read_run(NULL, NULL, "x run: error: interrupted after step 5\n");
    assert_int_equal(r.status, RP_LAB_INTERRUPTED);
    r = read_run("{\"status\": \"failed\", \"note\": \"a board is silent\"}", NULL, "");
    assert_int_equal(r.status, RP_LAB_FAILED);
    assert_string_equal(r.note, "a board is silent");
}

static void broken_files(void **state) {
    (void)state;
    const char *const summaries[] = {"", "{", "[]", "{\"status\": 3}", "\xff", "{\"a\":1,\"a\":1}"};
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++) {
        rp_lab_result r = read_run(summaries[i], "{\"step\":0}\n", NULL);
        assert_int_equal(r.status, RP_LAB_FAILED);
    }
    const char *const logs[] = {"{\"step\":0,\"ep", "nonsense\n", "{\"step\":0}\n\xff\n"};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        rp_lab_result r = read_run(summary, logs[i], NULL);
        assert_int_equal(r.status, RP_LAB_FAILED);
        assert_non_null(strstr(r.note, "log.jsonl"));
    }
    rp_lab_result r = read_run("{\"status\": \"finished\", \"steps\": -5, \"stage\": 7,"
                               " \"train\": {\"loss\": 1}}",
                               "{\"step\":9007199254740992}\n{\"step\":\"x\"}\n[1]\n", NULL);
    assert_int_equal(r.status, RP_LAB_FINISHED);
    assert_int_equal(r.stage_count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_finished_run, setup, teardown),
        cmocka_unit_test_setup_teardown(a_validation_part, setup, teardown),
        cmocka_unit_test_setup_teardown(time_begins_at_the_first_step, setup, teardown),
        cmocka_unit_test_setup_teardown(many_steps_are_binned, setup, teardown),
        cmocka_unit_test_setup_teardown(not_finite_is_diverged, setup, teardown),
        cmocka_unit_test_setup_teardown(predictions, setup, teardown),
        cmocka_unit_test_setup_teardown(runs_that_are_not_finished, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_files, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
