#include "run_folder.h"

static void say(const char *line) {
    append("log.jsonl", line, strlen(line));
}

static rp_view_log fresh_log(void) {
    rp_view_log log = {.known = false};
    rp_view_log_begin(&log.totals);
    (void)unlink(in_folder("log.jsonl"));
    return log;
}

static void totals_of_a_log(void **state) {
    rp_view_log log = fresh_log();
    const char *path = in_folder("log.jsonl");
    (void)state;
    assert_false(rp_view_log_update(&log, path)); /* it does not exist yet */
    add_steps(1, 25);
    say("{\"event\":\"eval\",\"step\":25,\"loss\":0.5,\"accuracy\":0.75,\"split\":\"test\"}\n"
        "{\"event\":\"fault\",\"step\":25,\"time_s\":12,\"text\":\"x\",\"fault_class\":\"board\"}\n"
        "{\"event\":\"recovered\",\"step\":20,\"time_s\":13,\"text\":\"y\"}\n"
        "not JSON\n{\"step\":26,\"loss\":");
    assert_true(rp_view_log_update(&log, path));
    assert_int_equal(log.totals.lines, 29);
    assert_int_equal(log.totals.step, 25);
    assert_int_equal(log.totals.epoch, 1);
    assert_true(log.totals.loss > 0.399 && log.totals.loss < 0.401);
    assert_int_equal(log.totals.score_count, 1);
    assert_true(log.totals.score[0].accuracy == 0.75);
    assert_int_equal(log.totals.recovery_count, 1);
    assert_string_equal(log.totals.recovery[0].cause, "board");
    assert_false(rp_view_log_update(&log, path)); /* half a line is no news */
    say("null,\"epoch\":1}\n");
    assert_true(rp_view_log_update(&log, path));
    assert_int_equal(log.totals.lines, 30);
    assert_int_equal(log.totals.step, 26);
    assert_true(isnan(log.totals.loss)); /* it was not finite */
    assert_int_equal(log.generation, 0);
}

static void a_log_that_is_rewritten_starts_again(void **state) {
    rp_view_log log = fresh_log();
    const char *path = in_folder("log.jsonl");
    (void)state;
    add_steps(1, 30);
    assert_true(rp_view_log_update(&log, path));
    assert_int_equal(rename(path, in_folder("old")), 0);
    add_steps(1, 20);
    assert_true(rp_view_log_update(&log, path));
    assert_int_equal(log.generation, 1);
    assert_int_equal(log.totals.lines, 20);
    assert_int_equal(log.totals.step, 20);
    assert_int_equal(truncate(path, 100), 0);
    assert_true(rp_view_log_update(&log, path));
    assert_int_equal(log.generation, 2);
    assert_int_equal(log.totals.lines, 1);
}

static void a_link_and_a_line_that_is_too_long_are_ignored(void **state) {
    static char noise[100000];
    rp_view_log log = fresh_log();
    const char *path = in_folder("log.jsonl");
    (void)state;
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_false(rp_view_log_update(&log, path));
    assert_int_equal(unlink(path), 0);
    add_steps(1, 3);
    memset(noise, 'x', sizeof noise);
    append("log.jsonl", noise, sizeof noise);
    say("\n");
    add_steps(4, 6);
    assert_true(rp_view_log_update(&log, path));
    assert_int_equal(log.totals.step, 6);
}

static void many_causes_and_splits_are_bounded(void **state) {
    rp_view_log_totals totals;
    (void)state;
    rp_view_log_begin(&totals);
    for (uint32_t i = 0; i < 40; i++) {
        char line[200];
        int used = snprintf(line, sizeof line,
                            "{\"event\":\"fault\",\"fault_class\":\"c%u\",\"step\":1}", i);
        rp_view_log_take(&totals, line, (size_t)used);
        used = snprintf(line, sizeof line, "{\"event\":\"recovered\",\"step\":1}");
        rp_view_log_take(&totals, line, (size_t)used);
        used = snprintf(line, sizeof line,
                        "{\"event\":\"eval\",\"split\":\"s%u\",\"loss\":1e999,\"step\":1}", i);
        rp_view_log_take(&totals, line, (size_t)used);
        used = snprintf(line, sizeof line, "{\"event\":\"eval\",\"split\":\"s%u\",\"step\":1}", i);
        rp_view_log_take(&totals, line, (size_t)used);
    }
    assert_int_equal(totals.recovery_count, RP_VIEW_CAUSES);
    assert_int_equal(totals.score_count, RP_VIEW_SPLITS);
    assert_true(isnan(totals.score[0].loss));
    assert_int_equal(totals.lines, 160);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_of_a_log),
        cmocka_unit_test(a_log_that_is_rewritten_starts_again),
        cmocka_unit_test(a_link_and_a_line_that_is_too_long_are_ignored),
        cmocka_unit_test(many_causes_and_splits_are_bounded),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
