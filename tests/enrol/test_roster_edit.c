#include "enrol/roster_edit.h"
#include "folder.h"
#include "transport/keytext.h"

#define LEFT "rpk1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0sjldd5f"
#define RIGHT "rpk1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqmtx05s"

/* Z85, as rosters of before have keys. */
#define THIRD "'%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0'"

static const char zero_key[] = "0000000000000000000000000000000000000000";

static rp_err put(const char *name, const char *endpoint, const char *key) {
    const rp_roster_entry board = {.name = name,
                                   .endpoint = endpoint,
                                   .dials = !endpoint[0],
                                   .public_text = key,
                                   .profile = "pocl-cpu"};
    return rp_roster_put(in_folder("lab.yaml"), &board);
}

static rp_err remove_one(const char *name) {
    return rp_roster_remove(in_folder("lab.yaml"), &name, 1);
}

static void expect_text(const char *text) {
    assert_string_equal(slurp("lab.yaml", NULL), text);
    assert_int_equal(access(in_folder("lab.yaml.tmp"), F_OK), -1);
}

static void a_file_is_made(void **state) {
    (void)state;
    rp_roster_entry *boards;
    uint32_t count;
    expect_ok(put("right", "", zero_key));
    expect_text("boards:\n"
                "  - {name: \"right\", address: \"dials\", key: " RIGHT ", board: \"pocl-cpu\"}\n");
    expect_ok(rp_roster_read(&arena, in_folder("lab.yaml"), &boards, &count));
    assert_int_equal(count, 1);
    assert_true(boards[0].dials);
}

static const char kept[] = "# my lab\n"
                           "boards:   # in the order of the ring\n"
                           "- name: left   # by the window\n"
                           "  address: tcp://10.0.0.7:7000\n"
                           "  # its key\n"
                           "  key: " LEFT "\n";
static const char behind[] = "\n"
                             "# who may command them\n"
                             "hosts:\n"
                             "  - {name: desk, key: " RIGHT "}\n";

static void all_else_stays_as_it_was(void **state) {
    (void)state;
    char text[4096];
    char wanted[4096];
    (void)snprintf(text, sizeof text, "%s%s", kept, behind);
    write_text("lab.yaml", text);
    expect_ok(put("right", "tcp://10.0.0.8:7000", zero_key));
    (void)snprintf(wanted, sizeof wanted,
                   "%s- {name: \"right\", address: \"tcp://10.0.0.8:7000\", key: " RIGHT
                   ", board: \"pocl-cpu\"}\n%s",
                   kept, behind);
    expect_text(wanted);
    expect_ok(remove_one("right"));
    expect_text(text);
}

static void a_board_takes_the_place_of_its_name(void **state) {
    (void)state;
    char text[4096];
    (void)snprintf(text, sizeof text, "%s- {name: right, address: dials, key: " RIGHT "}\n%s", kept,
                   behind);
    write_text("lab.yaml", text);
    expect_ok(put("left", "tcp://10.0.0.9:7000", "%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0"));
    const char *now = slurp("lab.yaml", NULL);
    assert_non_null(strstr(now,
                           "# my lab\nboards:   # in the order of the ring\n- {name: \"left\", "
                           "address: \"tcp://10.0.0.9:7000\""));
    assert_null(strstr(now, "10.0.0.7"));
    assert_null(strstr(now, "by the window"));
    assert_non_null(strstr(now, "}\n- {name: right"));
}

static void a_last_line_without_an_end_gets_one(void **state) {
    (void)state;
    write_text("lab.yaml", "boards:\n  - {name: left, address: dials, key: " LEFT "}");
    expect_ok(put("right", "", zero_key));
    expect_text("boards:\n  - {name: left, address: dials, key: " LEFT "}\n"
                "  - {name: \"right\", address: \"dials\", key: " RIGHT ", board: \"pocl-cpu\"}\n");
}

static void expect_refused(rp_err err, const char *said) {
    expect_err(err, RP_ERR_USAGE);
    if (!strstr(rp_err_message(), said)) {
        fail_msg("got '%s', expected '%s'", rp_err_message(), said);
    }
}

static void what_is_refused_leaves_the_file(void **state) {
    (void)state;
    static const char brackets[] = "boards: [{name: left, address: dials, key: " LEFT "}]\n";
    static const char one[] = "boards:\n  - {name: left, address: 'tcp://a:7000', key: " LEFT "}\n";
    write_text("lab.yaml", brackets);
    expect_refused(put("right", "", zero_key), "one board in each line");
    expect_text(brackets);
    write_text("lab.yaml", one);
    expect_refused(put("right", "tcp://a:7000", zero_key), "have the same");
    expect_text(one);
    expect_refused(remove_one("right"), "unknown board 'right'");
    expect_refused(remove_one("left"), "has at least one");
    expect_text(one);
    write_text("lab.yaml", "boards: 3\n");
    expect_refused(put("right", "", zero_key), "expected a list");
}

static const char grouped[] = "groups:\n"
                              "  rack-a: {board: rk3588}\n"
                              "  rack-b: {board: jetson-nano}\n";

/* What people have said of a board outlives its keys. */
static void a_board_keeps_its_group_and_labels(void **state) {
    (void)state;
    char text[4096];
    rp_roster_entry right = {.name = "right",
                             .endpoint = "tcp://10.0.0.8:7000",
                             .public_text = zero_key,
                             .group = "rack-b"};
    write_text("lab.yaml", grouped);
    expect_ok(rp_roster_put(in_folder("lab.yaml"), &right));
    (void)snprintf(text, sizeof text,
                   "%sboards:\n  - {name: \"right\", address: \"tcp://10.0.0.8:7000\", key: " RIGHT
                   ", group: \"rack-b\"}\n",
                   grouped);
    expect_text(text);
    (void)snprintf(
        text, sizeof text,
        "%sboards:\n  - name: right\n    group: rack-a\n    labels: {shelf: 3, x: 'no'}\n"
        "    address: dials\n    key: " LEFT "\n",
        grouped);
    write_text("lab.yaml", text);
    expect_ok(put("right", "tcp://10.0.0.8:7000", zero_key));
    (void)snprintf(text, sizeof text,
                   "%sboards:\n  - {name: \"right\", address: \"tcp://10.0.0.8:7000\", key: " RIGHT
                   ", board: \"pocl-cpu\", group: \"rack-a\", labels: {\"shelf\": \"3\", "
                   "\"x\": \"no\"}}\n",
                   grouped);
    expect_text(text);
    write_text("lab.yaml", "groups: {rack-b: {address: 'tcp://{name}.lab:7000'}}\n");
    expect_ok(rp_roster_put(in_folder("lab.yaml"), &right));
    expect_text("groups: {rack-b: {address: 'tcp://{name}.lab:7000'}}\n"
                "boards:\n  - {name: \"right\", key: " RIGHT ", group: \"rack-b\"}\n");
    write_text("lab.yaml", text);
    right.group = "rack-c";
    expect_refused(rp_roster_put(in_folder("lab.yaml"), &right), "unknown group 'rack-c'");
    expect_text(text);
}

/* Whatever a text has in it, it is one text to who reads the file. */
static void texts_are_quoted(void **state) {
    (void)state;
    static const char hostile[] = "x\", address: \"tcp://evil:1";
    const rp_roster_entry right = {.name = "right",
                                   .endpoint = "tcp://10.0.0.8:7000",
                                   .public_text = zero_key,
                                   .profile = hostile};
    rp_roster_entry *boards;
    uint32_t count;
    expect_ok(rp_roster_check_put(in_folder("lab.yaml"), &right));
    assert_int_equal(access(in_folder("lab.yaml"), F_OK), -1); /* it only looks */
    expect_ok(rp_roster_put(in_folder("lab.yaml"), &right));
    expect_ok(rp_roster_read(&arena, in_folder("lab.yaml"), &boards, &count));
    assert_int_equal(count, 1);
    assert_string_equal(boards[0].profile, hostile);
    assert_string_equal(boards[0].endpoint, "tcp://10.0.0.8:7000");
}

static void several_go_at_once_or_none(void **state) {
    (void)state;
    static const char all[] = "boards:\n"
                              "  - {name: a, address: 'tcp://a:7000', key: " LEFT "}\n"
                              "  # the middle\n"
                              "  - name: b\n    address: tcp://b:7000\n    key: " RIGHT "\n"
                              "  - {name: c, address: 'tcp://c:7000', key: " THIRD "}\n"
                              "hosts: []\n";
    static const char left[] = "boards:\n"
                               "  # the middle\n"
                               "  - name: b\n    address: tcp://b:7000\n    key: " RIGHT "\n"
                               "hosts: []\n";
    const char *names[] = {"c", "a", "c"};
    const char *wrong[] = {"a", "d"};
    const char *every[] = {"a", "b", "c"};
    write_text("lab.yaml", all);
    expect_refused(rp_roster_remove(in_folder("lab.yaml"), wrong, 2), "unknown board 'd'");
    expect_refused(rp_roster_remove(in_folder("lab.yaml"), every, 3), "has at least one");
    expect_text(all);
    expect_ok(rp_roster_remove(in_folder("lab.yaml"), names, 3));
    expect_text(left);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_made, setup, teardown),
        cmocka_unit_test_setup_teardown(all_else_stays_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_takes_the_place_of_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(a_last_line_without_an_end_gets_one, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_leaves_the_file, setup, teardown),
        cmocka_unit_test_setup_teardown(a_board_keeps_its_group_and_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(texts_are_quoted, setup, teardown),
        cmocka_unit_test_setup_teardown(several_go_at_once_or_none, setup, teardown),
    };
    return cmocka_run_group_tests_name("roster_edit", tests, NULL, NULL);
}
