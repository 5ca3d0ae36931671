#include "folder.h"

#include <jansson.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "runs/owner.h"

static json_t *load(void) {
    size_t bytes;
    const char *text = slurp("controller.json", &bytes);
    json_t *root = json_loadb(text, bytes, 0, NULL);
    assert_non_null(root);
    return root;
}

static void change(const char *key, json_t *value) {
    json_t *root = load();
    assert_int_equal(json_object_set_new(root, key, value), 0);
    assert_int_equal(json_dump_file(root, in_folder("controller.json"), 0), 0);
    json_decref(root);
}

static rp_owner_life life(void) {
    rp_owner owner;
    rp_owner_read(folder, &owner);
    return owner.life;
}

static void this_process_is_at_work(void **state) {
    (void)state;
    rp_owner owner;
    rp_owner_read(folder, &owner);
    assert_int_equal(owner.life, RP_OWNER_NONE);
    expect_ok(rp_owner_write(folder));
    rp_owner_read(folder, &owner);
    assert_int_equal(owner.life, RP_OWNER_ALIVE);
    assert_int_equal(owner.pid, getpid());
    assert_true(owner.made_ns > INT64_C(1600000000000000000));
    assert_true(rp_owner_is_alive(&owner));
    rp_owner_remove(folder);
    assert_int_equal(life(), RP_OWNER_NONE);
    expect_err(rp_owner_write(in_folder("nowhere")), RP_ERR_IO);
}

/* Another process has its number now; the machine was switched off; another machine. */
static void who_is_gone_is_not_at_work(void **state) {
    (void)state;
    char host[256] = "";
    expect_ok(rp_owner_write(folder));
    change("start", json_integer(1));
    assert_int_equal(life(), RP_OWNER_DEAD);
    expect_ok(rp_owner_write(folder));
    change("boot", json_string("another"));
    assert_int_equal(life(), RP_OWNER_DEAD);
    change("host", json_string("not this one"));
    assert_int_equal(life(), RP_OWNER_ELSEWHERE);
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    expect_ok(rp_owner_write(folder));
    change("namespace", json_string("pid:[1]"));
    assert_int_equal(life(), RP_OWNER_ELSEWHERE);
}

/* Also before somebody has asked for its exit code. */
static void a_killed_process_is_dead(void **state) {
    (void)state;
    rp_owner owner;
    int out[2];
    char byte;
    assert_int_equal(pipe(out), 0);
    const pid_t child = fork();
    if (child == 0) {
        const rp_err err = rp_owner_write(folder);
        (void)!write(out[1], err == RP_OK ? "+" : "-", 1);
        pause();
        _exit(0);
    }
    assert_int_equal(read(out[0], &byte, 1), 1);
    assert_int_equal(byte, '+');
    rp_owner_read(folder, &owner);
    assert_int_equal(owner.life, RP_OWNER_ALIVE);
    assert_int_equal(owner.pid, child);
    siginfo_t facts;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &facts, WEXITED | WNOWAIT), 0);
    assert_false(rp_owner_is_alive(&owner)); /* a zombie */
    assert_int_equal(life(), RP_OWNER_DEAD);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(life(), RP_OWNER_DEAD);
    (void)close(out[0]);
    (void)close(out[1]);
}

static void what_is_no_owner_is_nobody(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "{\"pid\": 0, \"start\": 5, \"host\": \"a\"}",
                                        "{}",
                                        "{\"pid\": \"1\", \"start\": 5, \"host\": \"a\"}",
                                        "{\"pid\": 1, \"start\": -5, \"host\": \"a\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        append("controller.json", texts[i], strlen(texts[i]));
        assert_int_equal(life(), RP_OWNER_NONE);
        assert_int_equal(unlink(in_folder("controller.json")), 0);
    }
    expect_ok(rp_owner_write(folder)); /* a good one, behind a link, and a longer one */
    char other[600];
    (void)snprintf(other, sizeof other, "%s", in_folder("other.json"));
    assert_int_equal(rename(in_folder("controller.json"), other), 0);
    assert_int_equal(symlink(other, in_folder("controller.json")), 0);
    assert_int_equal(life(), RP_OWNER_NONE);
    assert_int_equal(unlink(in_folder("controller.json")), 0);
    expect_ok(rp_owner_write(folder));
    static char blanks[5000];
    memset(blanks, ' ', sizeof blanks);
    append("controller.json", blanks, sizeof blanks);
    assert_int_equal(life(), RP_OWNER_NONE);
}

/* Whatever is done to it does not concern the original's process. */
static void the_copy_of_a_folder_has_no_owner(void **state) {
    (void)state;
    char copy[128];
    char file[160];
    char moved[128];
    rp_owner owner;
    expect_ok(rp_owner_write(folder));
    (void)snprintf(copy, sizeof copy, "%s-copy", folder);
    assert_int_equal(mkdir(copy, 0700), 0);
    (void)snprintf(file, sizeof file, "%s/controller.json", copy);
    const char *text = slurp("controller.json", NULL);
    FILE *to = fopen(file, "w");
    assert_non_null(to);
    assert_true(fputs(text, to) >= 0);
    assert_int_equal(fclose(to), 0);
    rp_owner_read(copy, &owner);
    assert_int_equal(owner.life, RP_OWNER_DEAD);
    assert_int_equal(life(), RP_OWNER_ALIVE);
    (void)snprintf(moved, sizeof moved, "%s-moved", folder);
    assert_int_equal(rename(folder, moved), 0); /* it is the same folder */
    rp_owner_read(moved, &owner);
    assert_int_equal(owner.life, RP_OWNER_ALIVE);
    assert_int_equal(rename(moved, folder), 0);
    assert_int_equal(unlink(file) + rmdir(copy), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(this_process_is_at_work, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_gone_is_not_at_work, setup, teardown),
        cmocka_unit_test_setup_teardown(a_killed_process_is_dead, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_owner_is_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(the_copy_of_a_folder_has_no_owner, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
