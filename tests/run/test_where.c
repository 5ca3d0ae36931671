/* Groups and labels of a roster, and which of its boards are chosen. */
#include "folder.h"

#include "run/runfile.h"
#include "run/where.h"
#include "transport/keytext.h"

/* A key for each number. */
static void key_of(uint32_t number, char out[RP_KEY_TEXT]) {
    static const char digits[] = "0123456789";
    memset(out, '0', RP_KEY_TEXT - 1);
    out[RP_KEY_TEXT - 1] = '\0';
    for (uint32_t i = 0; number > 0; number /= 10) {
        out[i++] = digits[number % 10];
    }
}

/* A key that several boards may have. */
#define SAME "'0123456789012345678901234567890123456789'"

static const char groups[] = "groups:\n"
                             "  rack-a:\n"
                             "    board: rk3588\n"
                             "    address: tcp://{name}.lab:7000\n"
                             "    labels: {site: north, rack: a}\n"
                             "  rack-b: {board: jetson-nano, labels: {site: north}}\n"
                             "boards:\n";

/* The boards of a text behind `groups`; KEY is another key for each. */
static rp_err read_boards(const char *lines, rp_roster_entry **out, uint32_t *count) {
    static char text[1 << 19];
    char key[RP_KEY_TEXT];
    size_t used = strlen(groups);
    uint32_t keys = 0;
    memcpy(text, groups, used);
    for (const char *at = lines; *at; at++) {
        if (strncmp(at, "KEY", 3) == 0) {
            key_of(++keys, key);
            used += (size_t)snprintf(text + used, sizeof text - used, "\"%s\"", key);
            at += 2;
        } else {
            text[used++] = *at;
        }
    }
    return rp_roster_read_text(&arena, text, used, "lab.yaml", out, count);
}

static void expect_refused(rp_err err, const char *said) {
    expect_err(err, RP_ERR_USAGE);
    if (!strstr(rp_err_message(), said)) {
        fail_msg("got '%s', expected '%s'", rp_err_message(), said);
    }
}

static const char four[] = "  - {name: a1, group: rack-a, key: KEY}\n"
                           "  - {name: a2, group: rack-a, address: 'tcp://10.0.0.2:7001', key: KEY,"
                           " labels: {rack: z, spare: 'yes'}}\n"
                           "  - {name: b1, group: rack-b, address: dials, key: KEY, board: odd}\n"
                           "  - {name: c1, address: 'tcp://10.0.0.4:7000', key: KEY}\n";

static const char *label(const rp_roster_entry *board, const char *key) {
    for (uint32_t i = 0; i < board->label_count; i++) {
        if (strcmp(board->label[i].key, key) == 0) {
            return board->label[i].value;
        }
    }
    return "";
}

static void what_a_group_says_holds_for_its_boards(void **state) {
    rp_roster_entry *boards;
    uint32_t count;
    (void)state;
    expect_ok(read_boards(four, &boards, &count));
    assert_int_equal(count, 4);
    assert_string_equal(boards[0].endpoint, "tcp://a1.lab:7000");
    assert_string_equal(boards[0].profile, "rk3588");
    assert_string_equal(label(&boards[0], "rack"), "a");
    assert_int_equal(boards[0].line, 8);
    assert_string_equal(boards[1].endpoint, "tcp://10.0.0.2:7001");
    assert_string_equal(label(&boards[1], "rack"), "z");
    assert_string_equal(label(&boards[1], "site"), "north");
    assert_int_equal(boards[1].label_count, 3);
    assert_string_equal(boards[2].profile, "odd");
    assert_true(boards[2].dials);
    assert_null(boards[3].group);
    assert_null(boards[3].profile);
    assert_int_equal(boards[3].label_count, 0);
}

static void wrong_rosters_are_refused(void **state) {
    static const struct {
        const char *lines, *said;
    } wrong[] = {
        {"  - {name: a1, group: rack-c, key: KEY}\n",
         "unknown group 'rack-c': it is not in `groups`; did you mean"},
        {"  - {name: b1, group: rack-b, key: KEY}\n", "the key 'address' is needed here"},
        {"  - {name: a1, group: rack-a, key: KEY, labels: {name: x}}\n",
         "not name, group or board"},
        {"  - {name: a1, group: rack-a, key: KEY, labels: [x]}\n", "a map of at most 16 labels"},
        {"  - {name: a1, group: rack-a, key: KEY, labels: {x: a=b}}\n", "invalid value: expected"},
        {"  - {name: a1, group: rack-a, key: KEY}\n  - {name: b, address: dials, key: KEY}\n"
         "  - {name: a1, address: dials, key: KEY}\n",
         "lab.yaml:10: boards[2].name: boards 1 and 3 of the list have the same name 'a1'; the "
         "first is in line 8"},
        {"  - {name: a1, group: rack-a, key: KEY}\n"
         "  - {name: x, address: 'tcp://a1.lab:7000', key: KEY}\n",
         "have the same address tcp://a1.lab:7000; 'a1' is in line 8"},
        {"  - {name: a1, group: rack-a, key: " SAME "}\n"
         "  - {name: x, address: 'tcp://10.0.0.9:7000', key: " SAME "}\n",
         "lab.yaml:9: boards[1].key: boards 'a1' and 'x' have the same public key, but each board "
         "needs its own; 'a1' is in line 8"},
        {"  - {name: x, address: dials, key: " SAME "}\n  - {name: a1, group: rack-a, key: KEY}\n"
         "  - {name: y, address: dials, key: " SAME "}\n",
         "lab.yaml:10: boards[2].key: boards 'x' and 'y' have the same public key"},
    };
    rp_roster_entry *boards;
    uint32_t count;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_refused(read_boards(wrong[i].lines, &boards, &count), wrong[i].said);
    }
    static const char bad[] = "groups: {g: {address: 'udp://x'}}\nboards: []\n";
    expect_refused(rp_roster_read_text(&arena, bad, strlen(bad), "lab.yaml", &boards, &count),
                   "groups.g.address: expected tcp://HOST:PORT");
}

/* The names of those that fit, "a1 a2". */
static rp_err choose(const char *const *text, uint32_t texts, char *names, size_t bytes) {
    rp_roster_entry *boards;
    uint32_t count;
    rp_where where;
    rp_err err;
    expect_ok(read_boards(four, &boards, &count));
    RP_TRY(rp_where_parse(&arena, text, texts, &where));
    RP_TRY(rp_where_choose(&where, "lab.yaml", boards, &count));
    names[0] = '\0';
    for (uint32_t k = 0; k < count; k++) {
        assert_int_equal(boards[k].place, k);
        (void)snprintf(names + strlen(names), bytes - strlen(names), "%s%s", k ? " " : "",
                       boards[k].name);
    }
fail:
    return err;
}

static void boards_are_chosen(void **state) {
    static const struct {
        const char *text[3];
        uint32_t count;
        const char *names;
    } right[] = {
        {{NULL}, 0, "a1 a2 b1 c1"},
        {{"board=rk3588"}, 1, "a1 a2"},
        {{"board=rk3588,odd"}, 1, "a1 a2 b1"},
        {{"site=north", "group=rack-a", "rack=z"}, 3, "a2"},
        {{"name=c1,a1"}, 1, "a1 c1"},
    };
    static const struct {
        const char *text[2];
        uint32_t count;
        const char *said;
    } wrong[] = {
        {{"board"}, 1, "--where: expected KEY=VALUE[,VALUE...], found 'board'"},
        {{"=x"}, 1, "found '=x'"},
        {{"rack="}, 1, "found 'rack='"},
        {{"rak=a"}, 1, "no board of lab.yaml has a label 'rak'"},
        {{"rak=a"}, 1, "did you mean 'rack'?"},
        {{"rack=a,q"}, 1, "no board of lab.yaml has rack=q"},
        {{"board=rk3566"}, 1, "no board of lab.yaml has board=rk3566; did you mean 'rk3588'?"},
        {{"rack=z", "board=odd"}, 2, "no board of lab.yaml matches: rack=z and board=odd"},
        {{"rack=z", "rack=a"}, 2, "'rack' is given twice"},
    };
    char names[200];
    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        expect_ok(choose(right[i].text, right[i].count, names, sizeof names));
        assert_string_equal(names, right[i].names);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_refused(choose(wrong[i].text, wrong[i].count, names, sizeof names), wrong[i].said);
    }
}

/* As `ring.where` of a run file. */
static void a_run_chooses(void **state) {
    rp_roster_entry *boards;
    uint32_t count;
    rp_where where;
    rp_node *root;
    (void)state;
    static const char text[] = "ring:\n  where: {board: [rk3588, odd], site: north}\n";
    expect_ok(rp_config_read_text(&arena, text, strlen(text), "run.yaml", &root));
    expect_ok(rp_where_read(&arena, rp_node_find(root, "ring"), &where));
    expect_ok(read_boards(four, &boards, &count));
    expect_ok(rp_where_choose(&where, "lab.yaml", boards, &count));
    assert_int_equal(count, 3);
    static const char *const wrong[][2] = {
        {"ring: {where: rk3588}\n", "run.yaml:1: ring.where: expected a map like"},
        {"ring: {where: {}}\n", "expected a map like"},
        {"ring: {where: {board: {a: b}}}\n", "expected a value, or a list"},
        {"ring: {where: {board: []}}\n", "with 1 to"},
        {"ring: {where: {bored: x}}\n", "run.yaml:1: ring.where: no board of lab.yaml has a label"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_ok(rp_config_read_text(&arena, wrong[i][0], strlen(wrong[i][0]), "run.yaml", &root));
        rp_err err = rp_where_read(&arena, rp_node_find(root, "ring"), &where);
        if (err == RP_OK) {
            expect_ok(read_boards(four, &boards, &count));
            err = rp_where_choose(&where, "lab.yaml", boards, &count);
        }
        expect_refused(err, wrong[i][1]);
    }
}

/* A line a board is enough, and all of them are read. */
static void a_thousand_boards_are_short(void **state) {
    static char text[1 << 18];
    rp_roster_entry *boards;
    uint32_t count;
    rp_where where;
    size_t used = 0;
    (void)state;
    for (uint32_t k = 0; k < 1000; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "  - {name: n%03u, group: rack-a, key: KEY}\n", k);
    }
    expect_ok(read_boards(text, &boards, &count));
    assert_int_equal(count, 1000);
    assert_string_equal(boards[999].endpoint, "tcp://n999.lab:7000");
    static const char *const one = "name=n500,n007";
    expect_ok(rp_where_parse(&arena, &one, 1, &where));
    expect_ok(rp_where_choose(&where, "lab.yaml", boards, &count));
    assert_int_equal(count, 2);
    assert_string_equal(boards[0].name, "n007");
    assert_int_equal(boards[0].line, 15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_group_says_holds_for_its_boards, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_rosters_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(boards_are_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_chooses, setup, teardown),
        cmocka_unit_test_setup_teardown(a_thousand_boards_are_short, setup, teardown),
    };
    return cmocka_run_group_tests_name("where", tests, NULL, NULL);
}
