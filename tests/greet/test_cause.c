/* Causes of a silence, in words. */
#include "greet/cause.h"

#include "expect.h"

static void a_holder_is_put_into_words(void **state) {
    (void)state;
    static const struct {
        rp_Ordered said;
        bool hopeless;
        const char *text;
    } cases[] = {
        {{.run = 7, .origin = "desk: runs/first", .address = "10.0.0.2:4011", .silent_ms = 40},
         true,
         "is busy: it is held by desk: runs/first (10.0.0.2:4011) with run 0000000000000007; "
         "wait "},
        {{.run = 7, .address = "10.0.0.2:4011", .silent_ms = 40},
         true,
         "is busy: it is held by a host (10.0.0.2:4011) with run 0000000000000007; wait "},
        {{.run = 7, .origin = "desk", .address = "10.0.0.2:4011", .silent_ms = 12000},
         false,
         "of desk (10.0.0.2:4011), which it has not heard for 12 s"},
        {{.run = 7},
         false,
         "is busy: it keeps run 0000000000000007 of a host"}, /* older software */
        {{.address = "10.0.0.2:4011", .silent_ms = 40}, false, "which has no run there"},
        {{.run = 0}, false, "answers, and is free"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_cause cause;
        rp_cause_of_holder(&cases[i].said, &cause);
        assert_int_equal(cause.hopeless, cases[i].hopeless);
        assert_int_equal(cause.run, cases[i].said.run);
        assert_int_equal(cause.err == RP_OK, i == 5);
        assert_non_null(strstr(cause.text, cases[i].text));
    }
}

static void a_silent_board_of_a_run_is_put_into_words(void **state) {
    static const struct {
        rp_silent_why why;
        rp_err err;
        const char *text;
    } cases[] = {
        {RP_SILENT_REFUSES, RP_ERR_REFUSED, "board left at tcp://l:1 refused the handshake: "},
        {RP_SILENT_BROKEN_OFF, RP_ERR_REFUSED, "left at tcp://l:1: every handshake is broken off"},
        {RP_SILENT_UNANSWERED, RP_ERR_FAULT, "left at tcp://l:1: its machine accepts the "},
    };
    rp_keypair keys;
    (void)state;
    expect_ok(rp_keys_make(&keys));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(rp_cause_fail_silent(cases[i].why, "left", "tcp://l:1", keys.public_text),
                         cases[i].err);
        assert_non_null(strstr(rp_err_message(), cases[i].text));
    }
}

static void a_board_that_is_not_met_is_put_into_words(void **state) {
    static const struct {
        rp_greet_state came;
        bool hopeless;
        const char *text;
    } cases[] = {
        {RP_GREET_REFUSED, true, "the handshake was refused: the board does not trust "},
        {RP_GREET_OLD, false, "is there, but its software is too old for questions"},
        {RP_GREET_NOT_DIALLED, false, "has not dialled tcp://h:1: does "},
        {RP_GREET_MUTE, false, "accepts the connection at tcp://127.0.0.1:1 with the right key"},
        {RP_GREET_SILENT, false, "nothing answers at tcp://127.0.0.1:1: 127.0.0.1, tried through"},
    };
    rp_keypair keys;
    rp_cause cause;
    (void)state;
    expect_ok(rp_keys_make(&keys));
    const rp_roster_entry board = {
        .name = "left", .endpoint = "tcp://127.0.0.1:1", .public_text = keys.public_text};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rp_cause_of_silence(&board, "tcp://h:1", cases[i].came, &cause);
        assert_int_equal(cause.hopeless, cases[i].hopeless);
        assert_int_equal(cause.err, cases[i].hopeless ? RP_ERR_REFUSED : RP_ERR_FAULT);
        assert_non_null(strstr(cause.text, cases[i].text));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_holder_is_put_into_words),
        cmocka_unit_test(a_silent_board_of_a_run_is_put_into_words),
        cmocka_unit_test(a_board_that_is_not_met_is_put_into_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
