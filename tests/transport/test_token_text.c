#include <sys/stat.h>

#include "folder.h"
#include "transport/token_text.h"

static void write_token(const char *text, mode_t mode) {
    assert_int_equal(chmod(write_text("token", text), mode), 0);
}

static rp_err read_back(const char **out) {
    char option[520];
    (void)snprintf(option, sizeof option, "@%s", in_folder("token"));
    return rp_token_text(&arena, "--enrol", option, out);
}

static void a_file_has_the_text(void **state) {
    (void)state;
    static const char *const good[] = {"rpt1abc@10.0.0.2:7900", "rpt1abc@10.0.0.2:7900\n",
                                       "rpt1abc@10.0.0.2:7900\r\n"};
    const char *out;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        write_token(good[i], 0600);
        expect_ok(read_back(&out));
        assert_string_equal(out, "rpt1abc@10.0.0.2:7900");
    }
    expect_ok(rp_token_text(&arena, "--enrol", "rpt1abc@desk:1", &out));
    assert_string_equal(out, "rpt1abc@desk:1");
}

static void expect_refused(rp_err err, rp_err wanted, const char *said) {
    expect_err(err, wanted);
    assert_non_null(strstr(rp_err_message(), "--enrol: "));
    assert_null(strstr(rp_err_message(), "secret"));
    if (!strstr(rp_err_message(), said)) {
        fail_msg("got '%s', expected '%s'", rp_err_message(), said);
    }
}

static void a_file_that_is_wrong_is_named(void **state) {
    (void)state;
    char large[RP_TOKEN_TEXT_MAX + 2];
    const char *out;
    write_token("secret\n", 0640);
    expect_refused(read_back(&out), RP_ERR_REFUSED, "has mode 640");
    write_token("secret\n", 0604);
    expect_refused(read_back(&out), RP_ERR_REFUSED, "chmod 600");
    write_token("", 0600);
    expect_refused(read_back(&out), RP_ERR_USAGE, "has 0 bytes");
    memset(large, 's', sizeof large);
    large[sizeof large - 1] = '\0';
    write_token(large, 0600);
    expect_refused(read_back(&out), RP_ERR_USAGE, "has 513 bytes, expected one line of 1 to 512");
    write_token("secret\nsecret\n", 0600);
    expect_refused(read_back(&out), RP_ERR_USAGE, "expected one line");
    write_token("\nsecret\n", 0600);
    expect_refused(read_back(&out), RP_ERR_USAGE, "expected one line");
    (void)unlink(in_folder("token"));
    expect_refused(read_back(&out), RP_ERR_USAGE, "No such file");
    assert_int_equal(mkfifo(in_folder("token"), 0600), 0); /* which nobody writes: no wait */
    expect_refused(read_back(&out), RP_ERR_USAGE, "expected a regular file");
    (void)unlink(in_folder("token"));
    expect_refused(rp_token_text(&arena, "--enrol", "@/", &out), RP_ERR_USAGE, "regular file");
}

static void an_argument_is_overwritten(void **state) {
    (void)state;
    char token[] = "rpt1abc@desk:1";
    char file[] = "@/etc/ringpipe/token";
    rp_token_hide(token);
    assert_string_equal(token, "xxxxxxxxxxxxxx");
    rp_token_hide(file);
    assert_string_equal(file, "@/etc/ringpipe/token");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_has_the_text, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_is_wrong_is_named, setup, teardown),
        cmocka_unit_test(an_argument_is_overwritten),
    };
    return cmocka_run_group_tests_name("token_text", tests, NULL, NULL);
}
