#include "expect.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

static const int nothing[3] = {-1, -1, -1};

static rp_child start_shell(const char *script, const int fd[3], int kept) {
    const char *const word[] = {"sh", "-c", script, NULL};
    rp_child child = {0};
    expect_ok(rp_child_start(&child, "/bin/sh", word, fd, kept));
    return child;
}

static int end_of(rp_child *child) {
    const struct timespec nap = {.tv_nsec = 5000000};
    int code = -1;
    for (int i = 0; i < 4000 && !rp_child_reap(child, &code); i++) {
        (void)nanosleep(&nap, NULL);
    }
    assert_int_equal(child->pid, 0);
    return code;
}

static void it_has_its_descriptors(void **state) {
    (void)state;
    int pipe_fd[2];
    int kept[2];
    char text[64] = "";
    char script[64];
    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    assert_int_equal(pipe2(kept, O_CLOEXEC), 0);
    (void)snprintf(script, sizeof script, "cat; echo out; echo kept >&%d; exit 5", kept[1]);
    rp_child child = start_shell(script, (const int[3]){-1, pipe_fd[1], -1}, kept[1]);
    assert_int_equal(end_of(&child), 5);
    assert_int_equal(child.killed_by, 0);
    assert_int_equal(read(pipe_fd[0], text, sizeof text), 4);
    assert_string_equal(text, "out\n");
    assert_int_equal(read(kept[0], text, sizeof text), 5);
    assert_int_equal(fcntl(kept[1], F_GETFD), FD_CLOEXEC); /* here it is as it was */
    for (int i = 0; i < 2; i++) {
        (void)close(pipe_fd[i]);
        (void)close(kept[i]);
    }
}

/* One that does not listen is told twice, then killed; what it is told by itself takes its time. */
static void it_is_told_to_end(void **state) {
    (void)state;
    int ready[2];
    int code;
    char text[4];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    rp_child child = start_shell("trap '' INT; echo; while :; do sleep 0.01; done",
                                 (const int[3]){-1, ready[1], -1}, -1);
    assert_int_equal(read(ready[0], text, sizeof text), 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    rp_child_press(&child, 1000 * RP_NS_PER_S);
    assert_int_equal(child.told, 0);
    rp_child_tell(&child, 1);
    rp_child_press(&child, 100 * RP_NS_PER_S);
    assert_int_equal(child.told, 1);
    rp_child_press(&child, 121 * RP_NS_PER_S);
    assert_int_equal(child.told, 2);
    rp_child_press(&child, 140 * RP_NS_PER_S);
    assert_int_equal(child.told, 2);
    assert_false(rp_child_reap(&child, &code));
    rp_child_press(&child, 142 * RP_NS_PER_S);
    assert_int_equal(end_of(&child), 128 + SIGKILL);
    assert_int_equal(child.killed_by, SIGKILL);
    rp_child_tell(&child, 1); /* nobody is told */
    assert_false(rp_child_reap(&child, &code));
}

static void it_is_killed(void **state) {
    (void)state;
    rp_child child = start_shell("sleep 60", nothing, -1);
    rp_child_kill(&child);
    assert_int_equal(child.pid, 0);
    rp_child_kill(&child);
    const char *const word[] = {"none", NULL};
    expect_ok(rp_child_start(&child, "/none", word, nothing, -1));
    assert_int_equal(end_of(&child), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_its_descriptors),
        cmocka_unit_test(it_is_told_to_end),
        cmocka_unit_test(it_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
