#include "ring/identity.h"

#include "folder.h"

static void a_term_grows_with_every_start(void **state) {
    (void)state;
    rp_run_identity first = {0};
    rp_run_identity again = {0};
    expect_ok(rp_identity_begin_term(folder, 0, &first));
    assert_true(first.id != 0);
    assert_int_equal(first.term, 1);
    expect_ok(rp_identity_begin_term(folder, 0, &first)); /* another assignment */
    assert_int_equal(first.term, 2);
    expect_ok(rp_identity_begin_term(folder, 0, &again)); /* another controller */
    assert_true(again.id == first.id);
    assert_int_equal(again.term, 3);
    assert_int_equal(access(in_folder("identity.json.tmp"), F_OK), -1);
}

/* A folder whose disk has lost terms goes on above what a board has heard. */
static void a_newer_term_is_kept(void **state) {
    (void)state;
    rp_run_identity first = {0};
    rp_run_identity again = {0};
    expect_ok(rp_identity_begin_term(folder, 77, &first));
    expect_ok(rp_identity_keep(folder, &(rp_run_identity){77, 5}));
    expect_ok(rp_identity_begin_term(folder, 0, &again));
    assert_true(again.id == 77 && again.term == 6);
    expect_ok(rp_identity_keep(NULL, &first));
}

/* A simulation chooses the id, and a folder that has one keeps its own. */
static void a_fresh_id_may_be_given(void **state) {
    (void)state;
    rp_run_identity first = {0};
    rp_run_identity again = {0};
    expect_ok(rp_identity_begin_term(folder, 77, &first));
    assert_int_equal(first.id, 77);
    expect_ok(rp_identity_begin_term(folder, 78, &again));
    assert_int_equal(again.id, 77);
    assert_int_equal(again.term, 2);
}

static void without_a_folder_nothing_is_kept(void **state) {
    (void)state;
    rp_run_identity one = {0};
    rp_run_identity other = {0};
    expect_ok(rp_identity_begin_term(NULL, 0, &one));
    expect_ok(rp_identity_begin_term(NULL, 0, &other));
    assert_true(one.id != 0 && one.id != other.id);
    assert_int_equal(other.term, 1);
    expect_ok(rp_identity_begin_term(NULL, 0, &other));
    assert_int_equal(other.term, 2);
}

static void a_damaged_file_is_told(void **state) {
    (void)state;
    static const char *const broken[] = {
        "",
        "{}",
        "{\"run\": 5, \"term\": 1}",
        "{\"run\": \"0123456789abcde\", \"term\": 1}",
        "{\"run\": \"0123456789ABCDEF\", \"term\": 1}",
        "{\"run\": \"0000000000000000\", \"term\": 1}",
        "{\"run\": \"0123456789abcdef\", \"term\": 0}",
        "{\"run\": \"0123456789abcdef\", \"term\": -3}",
        "{\"run\": \"0123456789abcdef\", \"term\": 4294967295}",
        "{\"run\": \"0123456789abcdef\", \"term\": 4294967297}",
        "{\"run\": \"0123456789abcdef\", \"term\": 2.5}",
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        rp_run_identity identity = {0};
        write_text("identity.json", broken[i]);
        expect_err(rp_identity_begin_term(folder, 0, &identity), RP_ERR_FORMAT);
        assert_int_equal(identity.id, 0);
    }
    rp_run_identity identity = {0};
    const char *sound = "{\"run\": \"0123456789abcdef\", \"term\": 41}";
    write_text("identity.json", sound);
    expect_ok(rp_identity_begin_term(folder, 0, &identity));
    assert_true(identity.id == UINT64_C(0x0123456789abcdef) && identity.term == 42);
    rp_run_identity none = {0};
    expect_err(rp_identity_begin_term("/nonexistent", 0, &none), RP_ERR_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_fresh_id_may_be_given, setup, teardown),
        cmocka_unit_test_setup_teardown(a_term_grows_with_every_start, setup, teardown),
        cmocka_unit_test_setup_teardown(a_newer_term_is_kept, setup, teardown),
        cmocka_unit_test(without_a_folder_nothing_is_kept),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_told, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
