/* A whole set is read, every part of it. */
#include "fixture.h"

#include <math.h>

#include "data/check.h"

static rp_data data;
static uint32_t seen[RP_SPLITS];
static uint32_t bad_index;
static rp_split bad_split;
static bool not_finite;

static rp_err count_samples(const rp_data *set, rp_split split, uint32_t index, float *x,
                            float *row, int32_t *label) {
    __atomic_add_fetch(&seen[split], 1, __ATOMIC_RELAXED);
    rp_err err = data.kind->read(set, split, index, x, row, label);
    if (split == bad_split && index == bad_index) {
        x[5] = not_finite ? NAN : x[5];
        return not_finite ? err : rp_fail(RP_ERR_FORMAT, "the file of this sample");
    }
    return err;
}

static void every_sample_of_every_part(void **state) {
    (void)state;
    expect_ok(open_data(&data, "{set: glyphs, train: 200, test: 70, validation: 30, size: 12}",
                        NULL, true));
    rp_data_kind kind = *data.kind;
    rp_data counted = data;
    kind.read = count_samples;
    counted.kind = &kind;
    counted.workers = 3;
    bad_index = UINT32_MAX;
    expect_ok(rp_data_check(&counted));
    assert_int_equal(seen[RP_SPLIT_TRAIN], 200); /* with those held out */
    assert_int_equal(seen[RP_SPLIT_TEST], 70);
    for (int i = 0; i < 4; i++) {
        bad_split = i < 2 ? RP_SPLIT_TRAIN : RP_SPLIT_TEST;
        bad_index = i < 2 ? data.part[i ? RP_SPLIT_VALIDATION : RP_SPLIT_TRAIN][3] : 69;
        not_finite = i == 3;
        expect_err(rp_data_check(&counted), RP_ERR_FORMAT);
        expect_part(not_finite ? "glyphs: test sample 69: value 5 is not finite"
                               : "the file of this sample");
    }
    rp_data_close(&data);
}

/* Bad samples are counted in all, and the first ones named, in order, whatever the threads. */
static rp_err refuse_odd(const rp_data *set, rp_split split, uint32_t index, float *x, float *row,
                         int32_t *label) {
    return index % 2 ? rp_fail(RP_ERR_FORMAT, "%s-%u", rp_split_name(split), index)
                     : data.kind->read(set, split, index, x, row, label);
}

static void all_bad_samples_are_found(void **state) {
    (void)state;
    static char log[8192];
    expect_ok(open_data(&data, "{set: glyphs, train: 50, test: 8, size: 12}", NULL, true));
    rp_data_kind kind = *data.kind;
    rp_data odd = data;
    kind.read = refuse_odd;
    odd.kind = &kind;
    odd.workers = 4;
    FILE *file = tmpfile();
    const int standard_error = dup(STDERR_FILENO);
    assert_true(file && standard_error >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    const rp_err err = rp_data_check(&odd);
    assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
    (void)close(standard_error);
    expect_err(err, RP_ERR_FORMAT);
    expect_part("29 of the 58 samples cannot be used");
    rewind(file);
    log[fread(log, 1, sizeof log - 1, file)] = '\0';
    (void)fclose(file);
    const char *at = log;
    for (uint32_t i = 0; i < 20; i++) { /* train-1 to train-39 */
        char name[32];
        (void)snprintf(name, sizeof name, ": train-%u\n", 2 * i + 1);
        at = strstr(at, name);
        assert_non_null(at);
    }
    assert_non_null(strstr(at, "and 9 more"));
    assert_null(strstr(log, "train-41"));
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_of_every_part, setup, teardown),
        cmocka_unit_test_setup_teardown(all_bad_samples_are_found, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
