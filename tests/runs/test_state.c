#include "folder.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "runs/state.h"

static const char plan[] = "{\"model\": \"mlp\", \"schedule\": \"gpipe\", \"steps\": 40,"
                           "\"nodes\": [{}, {}, {}]}";

/* Ten steps of half a second, and between two of them an outage of a minute. */
static void write_log(void) {
    (void)unlink(in_folder("log.jsonl"));
    for (int step = 1; step <= 10; step++) {
        char line[200];
        const int used = snprintf(line, sizeof line,
                                  "{\"step\":%d,\"epoch\":0,\"loss\":%d.5,\"lr\":1,"
                                  "\"samples_per_s\":99.5,\"time_s\":%.1f}\n",
                                  step, step, step * 0.5 + (step > 6 ? 60 : 0));
        append("log.jsonl", line, (size_t)used);
    }
}

static rp_run_state read_state(void) {
    rp_run_state state;
    expect_ok(rp_run_state_read(&arena, folder, &state));
    return state;
}

static const char *tell(void) {
    const rp_run_state state = read_state();
    char *text;
    expect_ok(rp_run_state_tell(&arena, "a b", &state, &text));
    return text;
}

static void a_run_at_work(void **state) {
    (void)state;
    expect_ok(rp_owner_write(folder));
    assert_int_equal(read_state().condition, RP_RUN_STARTING);
    assert_string_equal(tell(), "starting");
    write_text("run.yaml", "");
    write_text("plan.json", plan);
    assert_string_equal(tell(), "starting: step 0 of 40");
    write_log();
    const rp_run_state now = read_state();
    assert_int_equal(now.condition, RP_RUN_TRAINING);
    assert_string_equal(now.model, "mlp");
    assert_string_equal(now.schedule, "gpipe");
    assert_int_equal(now.step, 10);
    assert_int_equal(now.steps, 40);
    assert_int_equal(now.boards, 3);
    assert_true(now.loss == 10.5);
    assert_true(now.samples_per_s == 99.5);
    assert_true(now.left_s > 14.999 && now.left_s < 15.001);
    assert_string_equal(tell(), "training: step 10 of 40, 99.5 samples/s, 0:15 left");
    static const char fault[] = "{\"event\":\"fault\",\"step\":10,\"time_s\":66,\"text\":\"x\"}\n"
                                "{\"event\":\"hint\",\"step\":10,\"time_s\":66,\"text\":\"x\"}\n";
    append("log.jsonl", fault, sizeof fault - 1);
    assert_int_equal(read_state().condition, RP_RUN_RECOVERING);
    static const char back[] =
        "{\"event\":\"recovered\",\"step\":8,\"time_s\":67,\"text\":\"x\"}\n";
    append("log.jsonl", back, sizeof back - 1);
    assert_int_equal(read_state().condition, RP_RUN_TRAINING);
    /* Resumed: the log is of before. */
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, in_folder("log.jsonl"), old, 0), 0);
    assert_string_equal(tell(), "starting: step 10 of 40");
}

static void a_run_that_has_ended(void **state) {
    (void)state;
    write_text("identity.json", "{}");
    assert_string_equal(tell(), "not begun; to start it, repeat the command that made 'a b'");
    write_text("run.yaml", "");
    write_text("plan.json", plan);
    write_log();
    assert_string_equal(tell(), "killed: step 10 of 40; continue it with `ringpipe resume 'a b'`");
    write_text("summary.json", "{\"status\": \"finished\", \"samples_per_s\": 1234.4}");
    assert_string_equal(tell(), "finished: step 10 of 40, 1234 samples/s");
    assert_true(isnan(read_state().left_s));
    write_text("summary.json", "{\"status\": \"failed\", \"samples_per_s\": null}");
    assert_string_equal(tell(), "failed: step 10 of 40; continue it with `ringpipe resume 'a b'`");
    write_text("summary.json", "{\"status\": \"interrupted\"}");
    assert_int_equal(read_state().condition, RP_RUN_INTERRUPTED);
    write_text("summary.json", "{\"status\": ");
    assert_int_equal(read_state().condition, RP_RUN_KILLED);
    /* Resumed and killed: the summary is of before. */
    write_text("summary.json", "{\"status\": \"finished\"}");
    write_text("controller.json", "{\"pid\": 1, \"start\": 1, \"host\": \"h\", \"boot\": \"b\"}");
    assert_int_equal(read_state().condition, RP_RUN_ELSEWHERE);
    assert_string_equal(tell(), "elsewhere (on h): step 10 of 40, 99.5 samples/s, 0:15 left");
}

static void a_dead_controller_was_killed(void **state) {
    (void)state;
    char text[200];
    char boot[64] = "";
    char space[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    assert_non_null(file);
    assert_non_null(fgets(boot, sizeof boot, file));
    assert_int_equal(fclose(file), 0);
    boot[strcspn(boot, "\n")] = '\0';
    assert_true(readlink("/proc/self/ns/pid", space, sizeof space - 1) > 0);
    (void)snprintf(text, sizeof text,
                   "{\"pid\": %d, \"start\": 1, \"host\": \"h\", \"boot\": \"%s\", "
                   "\"namespace\": \"%s\"}",
                   getpid(), boot, space);
    write_text("controller.json", text);
    assert_int_equal(read_state().condition, RP_RUN_NOT_BEGUN);
    write_text("run.yaml", "");
    write_text("plan.json", plan);
    write_text("summary.json", "{\"status\": \"finished\"}");
    write_log();
    assert_string_equal(tell(), "killed: step 10 of 40; continue it with `ringpipe resume 'a b'`");
}

static void what_is_no_run(void **state) {
    (void)state;
    rp_run_state now;
    expect_err(rp_run_state_read(&arena, folder, &now), RP_ERR_USAGE);
    expect_err(rp_run_state_read(&arena, in_folder("none"), &now), RP_ERR_USAGE);
    assert_false(rp_run_is_folder(folder));
    write_text("run.yaml", ""); /* as a person has it beside other files */
    assert_false(rp_run_is_folder(folder));
    write_text("plan.json", "[");
    write_text("log.jsonl", "{\"step\":3,\"loss\":\"a\"}\n{\"step\":1e9}\n[\n{\"step\":4");
    now = read_state();
    assert_int_equal(now.step, 3);
    assert_int_equal(now.steps, 0);
    assert_true(isnan(now.loss));
    assert_string_equal(now.model, "");
    assert_string_equal(tell(), "killed; continue it with `ringpipe resume 'a b'`");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_at_work, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_has_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dead_controller_was_killed, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
