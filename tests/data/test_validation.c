/* The validation part: which samples, and what they are in a batch. */
#include "fixture.h"

enum { ALL = 50, PIXELS = 28 * 28 };

static float whole[ALL][PIXELS];
static int32_t whole_label[ALL];

static void read_whole(void) {
    rp_data data;
    uint32_t index[ALL];
    for (uint32_t i = 0; i < ALL; i++) {
        index[i] = i;
    }
    expect_ok(open_data(&data, "{set: glyphs, train: 50, test: 10}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_VALIDATION], 0);
    assert_int_equal(rp_data_scored(&data), RP_SPLIT_TEST);
    assert_null(data.part[RP_SPLIT_TRAIN]);
    expect_ok(
        rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, ALL, false, whole[0], whole_label, NULL));
    rp_data_close(&data);
}

/* Which stored sample it is. */
static uint32_t find_sample(const float *x) {
    for (uint32_t i = 0; i < ALL; i++) {
        if (memcmp(x, whole[i], sizeof whole[i]) == 0) {
            return i;
        }
    }
    fail_msg("a sample that the set does not have");
    return ALL;
}

/* The stored samples of both parts, in their order. */
static void list_parts(const char *keys, uint64_t seed, uint32_t validation, uint32_t *out) {
    static float x[PIXELS];
    rp_data data;
    const rp_split parts[] = {RP_SPLIT_TRAIN, RP_SPLIT_VALIDATION};
    expect_ok(open_seeded(&data, keys, NULL, true, seed));
    assert_int_equal(data.count[RP_SPLIT_VALIDATION], validation);
    assert_int_equal(data.count[RP_SPLIT_TRAIN], ALL - validation);
    assert_int_equal(data.count[RP_SPLIT_TEST], 10);
    assert_int_equal(rp_data_scored(&data), RP_SPLIT_VALIDATION);
    for (int p = 0; p < 2; p++) {
        for (uint32_t i = 0; i < data.count[parts[p]]; i++) {
            int32_t label;
            expect_ok(rp_data_batch(&data, parts[p], 3, &i, 1, false, x, &label, NULL));
            *out = find_sample(x);
            assert_int_equal(label, whole_label[*out]);
            out++;
        }
        const uint32_t beyond = data.count[parts[p]];
        expect_err(rp_data_batch(&data, parts[p], 0, &beyond, 1, false, x, NULL, NULL),
                   RP_ERR_USAGE);
    }
    expect_part("validation sample");
    rp_data_close(&data);
}

static void parts_share_no_sample(void **state) {
    (void)state;
    static const char keys[] = "{set: glyphs, train: 50, test: 10, validation: 12}";
    uint32_t a[ALL];
    uint32_t b[ALL];
    bool seen[ALL] = {false};
    read_whole();
    list_parts(keys, 7, 12, a);
    for (uint32_t i = 0; i < ALL; i++) {
        assert_false(seen[a[i]]);
        seen[a[i]] = true;
        assert_true(i == 0 || i == ALL - 12 || a[i] > a[i - 1]); /* each in the stored order */
    }
    list_parts(keys, 7, 12, b);
    assert_memory_equal(a, b, sizeof a);
    list_parts("{set: glyphs, train: 50, test: 10, validation: 0.24, shuffle: false}", 7, 12, b);
    assert_memory_equal(a, b, sizeof a);
    list_parts(keys, 8, 12, b);
    assert_memory_not_equal(a, b, sizeof a);
    list_parts("{set: glyphs, train: 50, test: 10, validation: 49}", 7, 49, b);
    list_parts("{set: glyphs, train: 50, test: 10, validation: 0.02}", 7, 1, b);
    assert_int_equal(b[ALL - 1] < ALL, 1);
}

/* Which samples they are must stay: a run that is resumed by a later version goes on. */
static void the_choice_is_fixed(void **state) {
    (void)state;
    rp_data data;
    expect_ok(open_data(&data, "{set: glyphs, train: 50, test: 10, validation: 5}", NULL, true));
    static const uint32_t want[] = {13, 14, 33, 48, 49};
    assert_memory_equal(data.part[RP_SPLIT_VALIDATION], want, sizeof want);
    rp_data_close(&data);
}

/* A sample's augmentation is that of the whole set. */
static void augmentation_is_of_the_stored_sample(void **state) {
    (void)state;
    static float a[PIXELS];
    static float b[PIXELS];
    rp_data all;
    rp_data parts;
    expect_ok(
        open_data(&all, "{set: glyphs, train: 50, test: 10, augment: crop-flip}", NULL, true));
    expect_ok(open_data(&parts,
                        "{set: glyphs, train: 50, test: 10, augment: crop-flip, validation: 25}",
                        NULL, true));
    for (uint32_t i = 0; i < 25; i++) {
        const uint32_t stored = parts.part[RP_SPLIT_TRAIN][i];
        expect_ok(rp_data_batch(&all, RP_SPLIT_TRAIN, 2, &stored, 1, true, a, NULL, NULL));
        expect_ok(rp_data_batch(&parts, RP_SPLIT_TRAIN, 2, &i, 1, true, b, NULL, NULL));
        assert_memory_equal(a, b, sizeof a);
    }
    rp_data_close(&all);
    rp_data_close(&parts);
}

static void bad_keys(void **state) {
    (void)state;
    static const struct {
        const char *value;
        const char *part;
    } bad[] = {
        {"-1", "validation: expected a number from 0"},
        {".nan", "validation: expected a number"},
        {"1.5", "expected a share below 1 or a whole number, found 1.5"},
        {"50", "50 of 50 training samples would leave"},
        {"51", "51 of 50 training samples"},
        {"0.999", "0.999 of 50 training samples"},
        {"0.001", "0.001 of 50 training samples"},
        {"some", "validation: expected a number"},
    };
    rp_data data;
    char keys[128];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(keys, sizeof keys, "{set: glyphs, train: 50, test: 10, validation: %s}",
                       bad[i].value);
        expect_err(open_data(&data, keys, NULL, true), RP_ERR_USAGE);
        expect_part("run.yaml:1: validation: ");
        expect_part(bad[i].part);
    }
}

/* An evaluation's feeder gives the part in its order. */
static void a_feeder_gives_the_part(void **state) {
    (void)state;
    rp_data data;
    rp_feeder *feeder = NULL;
    const rp_batch *batch = NULL;
    read_whole();
    expect_ok(open_data(&data, "{set: glyphs, train: 50, test: 10, validation: 12}", NULL, true));
    expect_ok(rp_feeder_open(&arena, &data, RP_FEEDER_DIRECT, RP_SPLIT_VALIDATION, false, 8, 0, 2,
                             1, &feeder));
    for (uint32_t step = 0; step < 2; step++) {
        expect_ok(rp_feeder_take(feeder, &batch));
        assert_int_equal(batch->count, step ? 4 : 8);
        for (uint32_t i = 0; i < batch->count; i++) {
            assert_int_equal(find_sample((const float *)batch->x + (size_t)i * PIXELS),
                             data.part[RP_SPLIT_VALIDATION][step * 8 + i]);
        }
        rp_feeder_return(feeder, batch);
    }
    rp_feeder_close(&feeder);
    rp_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(parts_share_no_sample, setup, teardown),
        cmocka_unit_test_setup_teardown(the_choice_is_fixed, setup, teardown),
        cmocka_unit_test_setup_teardown(augmentation_is_of_the_stored_sample, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(a_feeder_gives_the_part, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
