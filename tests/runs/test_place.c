/* The folder of a new run: nothing that was there before is written over. */
#include "folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "runs/place.h"

static rp_err check(void) {
    return rp_run_place_check(&arena, folder);
}

static void files_of_others_are_left_alone(void **state) {
    (void)state;
    static const char *const names[] = {"weights.safetensors", "summary.json", "model.yaml",
                                        "data.json",           "plan.json",    "trace.json",
                                        "log.jsonl",           "agent-0.log",  "lane-1",
                                        "best.safetensors",    "about.json",   "lanes.json"};
    expect_ok(check());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        append(names[i], "mine", 4);
        expect_err(check(), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), names[i]));
        assert_int_equal(remove(in_folder(names[i])), 0);
    }
    assert_int_equal(symlink("nowhere", in_folder("checkpoint")), 0);
    expect_err(check(), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "checkpoint exists already"));
    assert_int_equal(unlink(in_folder("checkpoint")), 0);
    append("train.csv", "a,b\n", 4);
    append("weights.safetensors.old", "mine", 4);
    append("log.jsonl", "", 0);
    expect_ok(check());
}

static void a_run_that_was_killed_before_it_began_is_made_again(void **state) {
    (void)state;
    append("log.jsonl", "{}\n", 3);
    append("identity.json", "{}", 2);
    expect_ok(check());
    append("run.yaml", "model: mlp\n", 11);
    expect_err(check(), RP_ERR_USAGE);
    assert_non_null(
        strstr(rp_err_message(), "contains a run already; continue it with `ringpipe resume "));
}

static void runs_of_one_second_have_folders_of_their_own(void **state) {
    (void)state;
    enum { RUNS = 30 };
    char *run[RUNS];
    uint32_t numbered = 0;
    assert_int_equal(chdir(folder), 0);
    for (uint32_t i = 0; i < RUNS; i++) {
        struct stat facts;
        expect_ok(rp_run_place_make(&arena, "models/net.yaml", "gpipe", &run[i]));
        assert_true(stat(run[i], &facts) == 0 && S_ISDIR(facts.st_mode));
        for (uint32_t k = 0; k < i; k++) {
            assert_string_not_equal(run[i], run[k]);
        }
        assert_int_equal(strncmp(run[i], "runs/", 5), 0);
        assert_non_null(strstr(run[i], "-net.yaml-gpipe"));
        const char *number = strstr(run[i], "-gpipe-");
        numbered += number && strtol(number + 7, NULL, 10) >= 2;
    }
    assert_true(numbered >= RUNS / 2); /* unless a second takes ever so long */
    for (uint32_t i = 0; i < RUNS; i++) {
        assert_int_equal(rmdir(run[i]), 0);
    }
    assert_int_equal(rmdir("runs"), 0);
    assert_int_equal(chdir("/"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_of_others_are_left_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_was_killed_before_it_began_is_made_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(runs_of_one_second_have_folders_of_their_own, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
