#include "expect.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/notify.h"

static char folder[] = "/tmp/rp-test-notify-XXXXXX";
static char path[64];
static int manager = -1;

/* A service manager's end; `name` is a path or @NAME. */
static void listen_at(const char *name) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", name);
    at.sun_path[0] = name[0] == '@' ? '\0' : name[0];
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(manager >= 0);
    const size_t bytes = offsetof(struct sockaddr_un, sun_path) + strlen(name);
    assert_int_equal(bind(manager, (const struct sockaddr *)&at, (socklen_t)bytes), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
}

/* The next datagram, "" when there is none. */
static const char *heard(void) {
    static char text[600];
    const ssize_t bytes = recv(manager, text, sizeof text - 1, 0);
    text[bytes > 0 ? bytes : 0] = '\0';
    return text;
}

static int end(void **state) {
    (void)state;
    if (manager >= 0) {
        (void)close(manager);
        manager = -1;
    }
    (void)unlink(path);
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    return 0;
}

static void nobody_is_told(void **state) {
    (void)state;
    rp_notify notify;
    expect_ok(rp_notify_open(&notify));
    rp_notify_ready(&notify, "x");
    rp_notify_alive(&notify, 1);
    rp_notify_stopping(&notify);
    rp_notify_close(&notify);
}

static void what_a_manager_hears(void **state) {
    (void)state;
    rp_notify notify;
    listen_at(path);
    assert_int_equal(setenv("WATCHDOG_USEC", "30000000", 1), 0);
    expect_ok(rp_notify_open(&notify));
    assert_string_equal(heard(), "");
    rp_notify_ready(&notify, "listening tcp://0.0.0.0:7000");
    assert_string_equal(heard(), "READY=1\nSTATUS=listening tcp://0.0.0.0:7000\n");
    /* Twice in what the manager waits. */
    const int64_t s = 1000000000;
    rp_notify_alive(&notify, 100 * s);
    assert_string_equal(heard(), "WATCHDOG=1\n");
    rp_notify_alive(&notify, 115 * s - 1);
    assert_string_equal(heard(), "");
    rp_notify_alive(&notify, 115 * s);
    assert_string_equal(heard(), "WATCHDOG=1\n");
    assert_string_equal(heard(), "");
    rp_notify_stopping(&notify);
    assert_string_equal(heard(), "STOPPING=1\n");
    rp_notify_close(&notify);
}

/* A name without a file, no watchdog, or one of another process. */
static void other_managers(void **state) {
    (void)state;
    char name[64], pid[24];
    rp_notify notify;
    (void)snprintf(name, sizeof name, "@rp-test-notify-%ld", (long)getpid());
    listen_at(name);
    expect_ok(rp_notify_open(&notify));
    rp_notify_ready(&notify, "");
    assert_string_equal(heard(), "READY=1\nSTATUS=\n");
    rp_notify_alive(&notify, INT64_MAX / 2);
    assert_string_equal(heard(), "");
    rp_notify_close(&notify);
    assert_int_equal(setenv("WATCHDOG_USEC", "1000", 1), 0);
    for (int own = 0; own < 2; own++) {
        (void)snprintf(pid, sizeof pid, "%ld", (long)getpid() + 1 - own);
        assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
        expect_ok(rp_notify_open(&notify));
        rp_notify_alive(&notify, INT64_MAX / 2);
        assert_string_equal(heard(), own ? "WATCHDOG=1\n" : "");
        rp_notify_close(&notify);
    }
}

/* A manager that does not read never holds the program up. */
static void a_manager_that_sleeps(void **state) {
    (void)state;
    rp_notify notify;
    listen_at(path);
    expect_ok(rp_notify_open(&notify));
    for (int i = 0; i < 10000; i++) {
        rp_notify_ready(&notify, "listening");
    }
    rp_notify_close(&notify);
}

static void what_is_refused(void **state) {
    (void)state;
    rp_notify notify;
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    const char *const names[] = {"relative", longer};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(setenv("NOTIFY_SOCKET", names[i], 1), 0);
        expect_err(rp_notify_open(&notify), RP_ERR_USAGE);
    }
    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0); /* nobody there */
    expect_err(rp_notify_open(&notify), RP_ERR_IO);
    rp_notify_close(&notify);
    listen_at(path);
    const char *const times[] = {"", "0", "-1", "1s", "99999999999999999999"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        assert_int_equal(setenv("WATCHDOG_USEC", times[i], 1), 0);
        expect_err(rp_notify_open(&notify), RP_ERR_USAGE);
        rp_notify_close(&notify);
    }
}

static int begin(void **state) {
    (void)state;
    if (!mkdtemp(folder)) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/socket", folder);
    return end(NULL);
}

static int finish(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nobody_is_told, end),
        cmocka_unit_test_teardown(what_a_manager_hears, end),
        cmocka_unit_test_teardown(other_managers, end),
        cmocka_unit_test_teardown(a_manager_that_sleeps, end),
        cmocka_unit_test_teardown(what_is_refused, end),
    };
    return cmocka_run_group_tests(tests, begin, finish);
}
