#include "folder.h"

#include "runs/follow.h"

static void add_step(const char *name, int step, double time_s) {
    char line[128];
    const int used = snprintf(
        line, sizeof line, "{\"step\":%d,\"epoch\":0,\"loss\":1,\"time_s\":%.1f}\n", step, time_s);
    append(name, line, (size_t)used);
}

static void expect_step(rp_follow *follow, uint64_t step) {
    rp_story story;
    assert_true(rp_follow_next(follow, &story));
    assert_int_equal(story.step, step);
}

static void expect_nothing(rp_follow *follow) {
    rp_story story;
    assert_false(rp_follow_next(follow, &story));
}

static void lines_come_when_they_are_whole(void **state) {
    (void)state;
    char path[600];
    (void)snprintf(path, sizeof path, "%s", in_folder("log.jsonl"));
    rp_follow follow = {.path = path};
    expect_nothing(&follow);
    add_step("log.jsonl", 1, 1);
    expect_step(&follow, 1);
    append("log.jsonl", "{\"step\":2,", 10);
    expect_nothing(&follow);
    append("log.jsonl", "\"epoch\":0,\"time_s\":2}\n", 22);
    expect_step(&follow, 2);
    append("log.jsonl", "no line of ours\n", 16);
    static char longer[10000]; /* no line of ours is so long */
    memset(longer, 'x', sizeof longer);
    append("log.jsonl", longer, sizeof longer);
    expect_nothing(&follow);
    append("log.jsonl", "x\n", 2);
    add_step("log.jsonl", 3, 3);
    expect_step(&follow, 3);
    expect_nothing(&follow);
    rp_follow_close(&follow);
    rp_follow_close(&follow);
}

/* The run goes back to step 1: a new file has its lines up to there. */
static void what_was_told_is_not_told_again(void **state) {
    (void)state;
    char path[600];
    (void)snprintf(path, sizeof path, "%s", in_folder("log.jsonl"));
    rp_follow follow = {.path = path};
    for (int step = 1; step <= 3; step++) {
        add_step("log.jsonl", step, step);
        expect_step(&follow, (uint64_t)step);
    }
    add_step("new", 1, 1);
    assert_int_equal(rename(in_folder("new"), path), 0);
    expect_nothing(&follow);
    add_step("log.jsonl", 2, 5.5);
    expect_step(&follow, 2);
    assert_int_equal(truncate(path, 0), 0);
    expect_nothing(&follow);
    add_step("log.jsonl", 1, 1);
    add_step("log.jsonl", 3, 6);
    expect_step(&follow, 3);
    expect_nothing(&follow);
    rp_follow_close(&follow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_come_when_they_are_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_told_is_not_told_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
