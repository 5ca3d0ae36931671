/* Addresses of this machine are probed together. */
#include "greet/probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "expect.h"

static int open_socket(bool listens, char endpoint[64]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_true(!listens || listen(fd, 1) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    (void)snprintf(endpoint, 64, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    return fd;
}

static void addresses_are_told_apart(void **state) {
    const rp_clock clock = rp_clock_real();
    char open[64];
    char closed[64];
    uint32_t waits = 0;
    (void)state;
    const int listening = open_socket(true, open);
    const int bound = open_socket(false, closed);
    rp_probe probe[] = {{.endpoint = open},
                        {.endpoint = NULL},
                        {.endpoint = closed},
                        {.endpoint = "tcp://no-such-name.invalid:7000"}};
    expect_ok(rp_probe_all(&clock, probe, 4, 4 * RP_NS_PER_S, &waits));
    assert_int_equal(probe[0].state, RP_PROBE_OPEN);
    assert_string_equal(probe[0].numeric, open);
    assert_int_equal(probe[1].state, RP_PROBE_UNTRIED);
    assert_int_equal(probe[2].state, RP_PROBE_REFUSED);
    assert_int_equal(probe[3].state, RP_PROBE_NO_NAME);
    assert_true(waits <= 1); /* for a name server that does not answer */
    (void)close(listening);
    (void)close(bound);
}

static void none_at_all_is_no_error(void **state) {
    const rp_clock clock = rp_clock_real();
    uint32_t waits = 0;
    (void)state;
    expect_ok(rp_probe_all(&clock, NULL, 0, RP_NS_PER_S, &waits));
    assert_int_equal(waits, 0);
    assert_int_equal(rp_probe_room(1, 1), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_told_apart),
        cmocka_unit_test(none_at_all_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
