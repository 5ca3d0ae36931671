#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "expect.h"
#include "transport/reach.h"

/* A socket of the loopback, and "tcp://127.0.0.1:PORT" of it. */
static int open_door(bool listens, char *endpoint, size_t bytes) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof own;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(listens ? listen(fd, 1) : 0, 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    (void)snprintf(endpoint, bytes, "tcp://127.0.0.1:%u", ntohs(own.sin_port));
    return fd;
}

static void what_listens_is_reached(void **state) {
    (void)state;
    char endpoint[64];
    char why[256] = "?";
    const int fd = open_door(true, endpoint, sizeof endpoint);
    assert_int_equal(rp_reach_try(endpoint, 1000, why, sizeof why), RP_REACH_LISTENS);
    assert_string_equal(why, "");
    (void)close(fd);
}

static void a_closed_port_and_a_wrong_name_are_told_apart(void **state) {
    (void)state;
    char endpoint[64];
    char why[256];
    const int fd = open_door(false, endpoint, sizeof endpoint);
    assert_int_equal(rp_reach_try(endpoint, 1000, why, sizeof why), RP_REACH_CLOSED);
    assert_non_null(strstr(why, "nothing listens at port"));
    (void)close(fd);
    assert_int_equal(rp_reach_try("tcp://no-such-host.invalid:7900", 1000, why, sizeof why),
                     RP_REACH_UNKNOWN);
    assert_non_null(strstr(why, "the name 'no-such-host.invalid' is not known here"));
    assert_int_equal(rp_reach_try("7900", 1000, why, sizeof why), RP_REACH_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_listens_is_reached),
        cmocka_unit_test(a_closed_port_and_a_wrong_name_are_told_apart),
    };
    return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
