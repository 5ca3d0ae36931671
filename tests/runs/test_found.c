#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "runs/found.h"
#include "runs/owner.h"

static rp_runs runs;

static void make(const char *path) {
    assert_int_equal(mkdir(in_folder(path), 0700), 0);
}

static void remove_run(const char *path) {
    char name[400];
    (void)snprintf(name, sizeof name, "%s/identity.json", path);
    (void)unlink(in_folder(name));
    assert_int_equal(rmdir(in_folder(path)), 0);
}

static void make_run(const char *path) {
    char name[400];
    make(path);
    (void)snprintf(name, sizeof name, "%s/identity.json", path);
    append(name, "{}", 2);
}

static void folders_below(void **state) {
    (void)state;
    char name[400];
    runs = (rp_runs){.count = 0};
    expect_err(rp_runs_below(&arena, folder, &runs), RP_ERR_USAGE);
    expect_err(rp_runs_below(&arena, in_folder("none"), &runs), RP_ERR_USAGE);
    make_run("b");
    make("lab");
    make_run("lab/a");
    make_run("lab/a/inside"); /* of a run: that is no other one */
    make_run(".hidden");
    append("file", "x", 1);
    expect_err(rp_runs_below(&arena, in_folder("file"), &runs), RP_ERR_USAGE);
    assert_int_equal(symlink(folder, in_folder("circle")), 0);
    (void)snprintf(name, sizeof name, "%s/", folder);
    expect_ok(rp_runs_below(&arena, name, &runs));
    assert_int_equal(runs.count, 2);
    assert_string_equal(runs.folder[0], in_folder("b"));
    assert_string_equal(runs.folder[1], in_folder("lab/a"));
    expect_ok(rp_runs_below(&arena, in_folder("b"), &runs)); /* it is there already */
    assert_int_equal(runs.count, 2);
    assert_false(runs.more);
    remove_run("lab/a/inside");
    remove_run("lab/a");
    remove_run("lab");
    remove_run(".hidden");
    remove_run("b");
}

static void those_at_work(void **state) {
    (void)state;
    bool found = false;
    runs = (rp_runs){.count = 0};
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    expect_ok(rp_owner_write(folder));
    expect_ok(rp_runs_at_work(&arena, &runs));
    for (uint32_t i = 0; i < runs.count; i++) {
        found |= strcmp(runs.folder[i], folder) == 0;
    }
    assert_true(found);
    rp_owner_remove(folder);
    runs = (rp_runs){.count = 0};
    expect_ok(rp_runs_at_work(&arena, &runs));
    for (uint32_t i = 0; i < runs.count; i++) {
        assert_string_not_equal(runs.folder[i], folder);
    }
    (void)close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_below, setup, teardown),
        cmocka_unit_test_setup_teardown(those_at_work, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
