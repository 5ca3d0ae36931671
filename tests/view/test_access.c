#include "folder.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "view/access.h"

static const struct sockaddr *address_of(const char *text) {
    static rp_view_listen listen;
    expect_ok(rp_view_listen_parse(text, &listen));
    return (const struct sockaddr *)&listen.address;
}

static void addresses_to_listen_on(void **state) {
    static const char *const bad[] = {"",
                                      "7180",
                                      "127.0.0.1",
                                      "127.0.0.1:",
                                      "1.2.3:80",
                                      "127.0.0.1:70000",
                                      "[::1]",
                                      "::1:80",
                                      "[::1:80",
                                      "example.org:80",
                                      "127.0.0.1:8x",
                                      "127.0.0.1:123456",
                                      "[127.0.0.1:80"};
    rp_view_listen listen;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(rp_view_listen_parse(bad[i], &listen), RP_ERR_USAGE);
        assert_non_null(strstr(rp_err_message(), "--listen"));
    }
    expect_ok(rp_view_listen_parse("127.0.0.1:7180", &listen));
    assert_true(listen.is_loopback);
    assert_int_equal(ntohs(((struct sockaddr_in *)&listen.address)->sin_port), 7180);
    expect_ok(rp_view_listen_parse("localhost:0", &listen));
    assert_true(listen.is_loopback);
    expect_ok(rp_view_listen_parse("[::1]:7180", &listen));
    assert_true(listen.is_loopback);
    expect_ok(rp_view_listen_parse("[::ffff:127.0.0.2]:80", &listen));
    assert_true(listen.is_loopback);
    expect_ok(rp_view_listen_parse("[::ffff:10.0.0.2]:80", &listen));
    assert_false(listen.is_loopback);
    expect_ok(rp_view_listen_parse("0.0.0.0:7180", &listen));
    assert_false(listen.is_loopback);
    expect_ok(rp_view_listen_parse("[::]:7180", &listen));
    assert_false(listen.is_loopback);
}

static void a_host_header_names_this_end(void **state) {
    (void)state;
    const struct sockaddr *own = address_of("127.0.0.1:7180");
    assert_true(rp_view_host_is_own("127.0.0.1:7180", own, "pc"));
    assert_true(rp_view_host_is_own("LocalHost:7180", own, "pc"));
    static const char *const foreign[] = {"evil.example:7180",
                                          "127.0.0.1",
                                          "127.0.0.1:7181",
                                          "127.0.0.2:7180",
                                          "[::1]:7180",
                                          "",
                                          "localhost.evil.example:7180",
                                          "pc:7180",
                                          "127.0.0.1:7180:7180"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        assert_false(rp_view_host_is_own(foreign[i], own, "pc"));
    }
    assert_false(rp_view_host_is_own(NULL, own, "pc"));
    own = address_of("192.0.2.7:80");
    assert_true(rp_view_host_is_own("192.0.2.7", own, "pc"));
    assert_true(rp_view_host_is_own("192.0.2.7:80", own, "pc"));
    assert_true(rp_view_host_is_own("PC", own, "pc"));
    assert_false(rp_view_host_is_own("localhost", own, "pc"));
    assert_false(rp_view_host_is_own("other", own, ""));
    own = address_of("[::ffff:192.0.2.7]:7180"); /* a socket for both versions */
    assert_true(rp_view_host_is_own("192.0.2.7:7180", own, "pc"));
    assert_false(rp_view_host_is_own("192.0.2.8:7180", own, "pc"));
}

static const char *token_file(const char *text, mode_t mode) {
    const char *path = write_text("token", text);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static void tokens(void **state) {
    char token[RP_VIEW_TOKEN_MAX + 1];
    char text[400];
    (void)state;
    expect_ok(rp_view_token_read(token_file("0123456789abcdef\n", 0600), token));
    assert_string_equal(token, "0123456789abcdef");
    assert_true(rp_view_token_is(token, "0123456789abcdef"));
    assert_false(rp_view_token_is(token, "0123456789abcdeF"));
    assert_false(rp_view_token_is(token, "0123456789abcdef0123456789abcdef"));
    assert_false(rp_view_token_is(token, "0123456789abcde"));
    assert_false(rp_view_token_is(token, ""));
    assert_false(rp_view_token_is(token, NULL));
    assert_false(rp_view_token_is("", ""));
    expect_err(rp_view_token_read(token_file("0123456789abcdef\n", 0640), token), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "600"));
    expect_err(rp_view_token_read(token_file("short\n", 0600), token), RP_ERR_USAGE);
    expect_err(rp_view_token_read(token_file("0123456789 abcdef\n", 0600), token), RP_ERR_USAGE);
    expect_err(rp_view_token_read(in_folder("missing"), token), RP_ERR_USAGE);
    expect_err(rp_view_token_read(folder, token), RP_ERR_USAGE);
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    expect_err(rp_view_token_read(token_file(text, 0600), token), RP_ERR_USAGE);
    text[RP_VIEW_TOKEN_MAX] = '\0';
    expect_ok(rp_view_token_read(token_file(text, 0600), token));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_to_listen_on),
        cmocka_unit_test(a_host_header_names_this_end),
        cmocka_unit_test(tokens),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
