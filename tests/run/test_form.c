/* Whether a run file, or that of a folder, describes one ring, lanes or sites. */
#include "folder.h"

#include "run/form.h"

static const char ring[] = "model: mlp\nring: {boards: 2}\n";
static const char lanes[] = "model: mlp\nring: {boards: 4}\nlanes: {count: 2}\n";
static const char sites[] = "model: mlp\nring: {boards: 2}\nsites: {split: s.json}\n";

static rp_run_form form_of(const char *text, const char *set) {
    rp_run_form form = RP_FORM_LANES;
    expect_ok(rp_run_find_form(write_text("run.yaml", text), &set, set ? 1 : 0, &form));
    return form;
}

static void of_a_file(void **state) {
    (void)state;
    assert_int_equal(form_of(ring, NULL), RP_FORM_RING);
    assert_int_equal(form_of(lanes, NULL), RP_FORM_LANES);
    assert_int_equal(form_of(sites, NULL), RP_FORM_SITES);
    assert_int_equal(form_of(ring, "sites.split=s.json"), RP_FORM_SITES);
    assert_int_equal(form_of(ring, "lanes.count=2"), RP_FORM_LANES);
}

/* It has the keys of the whole run. */
static void of_a_lane(void **state) {
    (void)state;
    assert_int_equal(form_of(lanes, "lanes.lane=1"), RP_FORM_RING);
}

static void of_a_folder(void **state) {
    (void)state;
    rp_run_form form = RP_FORM_LANES;
    expect_ok(rp_run_find_form(folder, NULL, 0, &form)); /* without a run file */
    assert_int_equal(form, RP_FORM_RING);
    (void)write_text("run.yaml", sites);
    expect_ok(rp_run_find_form(folder, NULL, 0, &form));
    assert_int_equal(form, RP_FORM_SITES);
}

static void of_nothing(void **state) {
    (void)state;
    const char *set = "no assignment";
    rp_run_form form;
    expect_err(rp_run_find_form(in_folder("none.yaml"), NULL, 0, &form), RP_ERR_IO);
    assert_non_null(strstr(rp_err_message(), "none.yaml"));
    expect_err(rp_run_find_form(write_text("run.yaml", ring), &set, 1, &form), RP_ERR_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_a_file, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_lane, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(of_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
