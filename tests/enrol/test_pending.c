#include "enrol/pending.h"
#include "folder.h"

static const char left_key[] = "009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x";
static const char right_key[] = "%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0%nSc0";

static void put(const char *name, const char *key, int64_t ends_s, const char *used_by) {
    const rp_pending one = {.name = name, .key = key, .ends_s = ends_s, .used_by = used_by};
    expect_ok(rp_pending_replace(folder, name, &one, 1000));
}

static void a_list_is_read_as_it_was_written(void **state) {
    (void)state;
    rp_pending *list;
    uint32_t count;
    expect_ok(rp_pending_read(&arena, folder, &list, &count));
    assert_int_equal(count, 0);
    put("left", left_key, 2000, NULL);
    put("right", right_key, 3000, left_key);
    expect_ok(rp_pending_read(&arena, folder, &list, &count));
    assert_int_equal(count, 2);
    assert_string_equal(list[0].name, "left");
    assert_string_equal(list[0].key, left_key);
    assert_int_equal(list[0].ends_s, 2000);
    assert_null(list[0].used_by);
    assert_string_equal(list[1].name, "right");
    assert_string_equal(list[1].used_by, left_key);
}

static void one_takes_the_place_of_its_name(void **state) {
    (void)state;
    rp_pending *list;
    uint32_t count;
    put("left", left_key, 2000, NULL);
    put("left", right_key, 4000, NULL);
    expect_ok(rp_pending_read(&arena, folder, &list, &count));
    assert_int_equal(count, 1);
    assert_string_equal(list[0].key, right_key);
    expect_ok(rp_pending_replace(folder, "left", NULL, 1000));
    expect_ok(rp_pending_read(&arena, folder, &list, &count));
    assert_int_equal(count, 0);
}

static void what_has_ended_goes_with_the_next_change(void **state) {
    (void)state;
    const rp_pending one = {.name = "right", .key = right_key, .ends_s = 9000};
    rp_pending *list;
    uint32_t count;
    put("left", left_key, 2000, NULL);
    expect_ok(rp_pending_replace(folder, "right", &one, 2000));
    expect_ok(rp_pending_read(&arena, folder, &list, &count));
    assert_int_equal(count, 1);
    assert_string_equal(list[0].name, "right");
}

static uint32_t count_tokens(void) {
    rp_pending *list;
    uint32_t count;
    expect_ok(rp_pending_read(&arena, folder, &list, &count));
    return count;
}

static void tokens_are_withdrawn_by_name_or_id(void **state) {
    (void)state;
    const rp_pending left = {.name = "left", .key = left_key};
    const rp_pending right = {.name = "right", .key = right_key};
    const rp_pending other = {.name = "left", .key = right_key};
    char id[RP_KEY_FINGERPRINT];
    bool listed;
    put("left", left_key, 2000, NULL);
    put("right", right_key, 3000, NULL);
    expect_ok(rp_pending_is_listed(folder, &left, &listed));
    assert_true(listed);
    expect_ok(rp_pending_is_listed(folder, &other, &listed)); /* another token took its place */
    assert_false(listed);
    const char *wrong[] = {"left", "middle"};
    expect_err(rp_pending_withdraw(folder, wrong, 2), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "unknown token 'middle'; the list has: left right"));
    assert_int_equal(count_tokens(), 2); /* all of them, or none */
    rp_pending_id(&right, id);
    const char *by_id = id;
    expect_ok(rp_pending_withdraw(folder, &by_id, 1));
    assert_int_equal(count_tokens(), 1);
    expect_ok(rp_pending_withdraw(folder, wrong, 1));
    assert_int_equal(count_tokens(), 0);
    expect_ok(rp_pending_is_listed(folder, &left, &listed));
    assert_false(listed);
}

static void expect_bad(const char *text, const char *said) {
    rp_pending *list;
    uint32_t count;
    (void)unlink(in_folder("tokens"));
    append("tokens", text, strlen(text));
    expect_err(rp_pending_read(&arena, folder, &list, &count), RP_ERR_USAGE);
    if (!strstr(rp_err_message(), said)) {
        fail_msg("got '%s', expected '%s'", rp_err_message(), said);
    }
}

static void a_damaged_list_says_where(void **state) {
    (void)state;
    expect_bad("tokens: 3\n", "expected a list");
    expect_bad("tokens:\n  - left\n", "tokens:2");
    expect_bad("tokens:\n  - {name: left, ends: 3}\n", "key");
    expect_bad("tokens:\n  - {name: a b, key: rpk1, ends: 3}\n", "expected 1 to 63 of A-Z");
    expect_bad("tokens:\n  - {name: left, key: rpk1, ends: 3}\n", "too short");
    expect_bad("tokens:\n  - {name: left, key: '009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x', "
               "ends: soon}\n",
               "ends");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_list_is_read_as_it_was_written, setup, teardown),
        cmocka_unit_test_setup_teardown(one_takes_the_place_of_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(what_has_ended_goes_with_the_next_change, setup, teardown),
        cmocka_unit_test_setup_teardown(tokens_are_withdrawn_by_name_or_id, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_list_says_where, setup, teardown),
    };
    return cmocka_run_group_tests_name("pending", tests, NULL, NULL);
}
