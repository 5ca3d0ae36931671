#include "greet/explain.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "expect.h"

/* A socket that is bound to a port of this machine's; `listens`: and takes connections. */
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

static void it_says_address_interface_and_what_came(void **state) {
    (void)state;
    char endpoint[64];
    char text[RP_EXPLAIN_BYTES];
    int fd = open_socket(false, endpoint);
    assert_int_equal(rp_explain_address(endpoint, text, sizeof text), RP_EXPLAINED_AWAY);
    assert_non_null(strstr(text, "127.0.0.1, tried through lo (127.0.0.1): the "
                                 "machine is there, and nothing listens at port "));
    (void)close(fd);
    fd = open_socket(true, endpoint);
    assert_int_equal(rp_explain_address(endpoint, text, sizeof text), RP_EXPLAINED_CONNECTS);
    assert_non_null(strstr(text, "something listens at port "));
    (void)close(fd);
}

static void an_address_that_is_none(void **state) {
    (void)state;
    char text[RP_EXPLAIN_BYTES];
    assert_int_equal(rp_explain_address("tcp://left", text, sizeof text), RP_EXPLAINED_NO_NAME);
    assert_string_equal(text, "'tcp://left' is not tcp://HOST:PORT");
    const rp_explained found =
        rp_explain_address("tcp://no-such-name.invalid:1", text, sizeof text);
    assert_non_null(strstr(text, "the name 'no-such-name.invalid' is not known here"));
    assert_int_equal(found, strstr(text, "emporary") /* without a name server it may come */
                                ? RP_EXPLAINED_AWAY
                                : RP_EXPLAINED_NO_NAME);
    assert_int_equal(rp_explain_address("tcp://no-such-board.local:1", text, sizeof text),
                     RP_EXPLAINED_AWAY); /* it may be off now */
    assert_non_null(strstr(text, "avahi-daemon"));
}

/* Text that does not fit is cut, never written beyond. */
static void a_short_room_is_enough(void **state) {
    (void)state;
    char text[24];
    memset(text, 'x', sizeof text);
    (void)rp_explain_address("tcp://127.0.0.1:1", text, 16);
    assert_int_equal(strlen(text), 15);
    assert_int_equal(text[16], 'x');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_address_interface_and_what_came),
        cmocka_unit_test(an_address_that_is_none),
        cmocka_unit_test(a_short_room_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
