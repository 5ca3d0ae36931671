/* Elastic averaging of files. */
#include "folder.h"

#include <math.h>

#include "base/safetensors.h"
#include "lanes/average.h"

enum { COUNT = 40000 }; /* more than one piece */

static float value_of(uint32_t lane, uint32_t i) {
    return sinf((float)i * 0.37f + (float)lane) * (float)(1 + lane);
}

/* A checkpoint with a weight and its momentum. */
static void write_lane(const char *name, uint32_t lane, float odd) {
    const rp_st_entry entry[] = {
        {"fc.weight", RP_ST_F32, 1, {COUNT}, 0, COUNT * sizeof(float)},
        {"optim.momentum.fc.weight", RP_ST_F32, 1, {2}, COUNT * sizeof(float), 2 * sizeof(float)}};
    const char *const meta[] = {"step", "50", "round", "0", NULL};
    static float values[COUNT];
    const float momentum[] = {(float)lane, -1};
    rp_st_writer *writer;
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = value_of(lane, i);
    }
    values[17] = odd != 0 ? odd : values[17];
    expect_ok(rp_st_create(&arena, in_folder(name), entry, 2, meta, true, &writer));
    expect_ok(rp_st_write(writer, 0, 0, values, sizeof values));
    expect_ok(rp_st_write(writer, 1, 0, momentum, sizeof momentum));
    expect_ok(rp_st_commit(&writer));
}

static const float *read_values(const char *name, const char *tensor, uint64_t count) {
    rp_st_reader *reader;
    const float *values;
    expect_ok(rp_st_open(&arena, in_folder(name), &reader));
    expect_ok(rp_st_check_sums(reader));
    expect_ok(rp_st_need_f32(reader, tensor, 1, &count, &values));
    return values; /* until the process ends */
}

static char *path_of(const char *name) {
    char *path;
    expect_ok(rp_arena_string(&arena, in_folder(name), &path));
    return path;
}

static rp_average two_lanes(bool first) {
    return (rp_average){
        .center = first ? NULL : path_of("z0"),
        .next = path_of(first ? "z0" : "z1"),
        .round = first ? 1 : 2,
        .member = {{path_of("a"), path_of("a1"), 0.45}, {path_of("b"), path_of("b1"), 0.15}},
        .count = 2};
}

static void the_formulas_hold(void **state) {
    char digest[RP_AVERAGE_DIGEST];
    char again[RP_AVERAGE_DIGEST];
    uint32_t bad;
    (void)state;
    write_lane("a", 0, 0);
    write_lane("b", 1, 0);
    rp_average average = two_lanes(true);
    expect_ok(rp_average_make(&average, digest, &bad));
    const float *z0 = read_values("z0", "fc.weight", COUNT);
    for (uint32_t i = 0; i < COUNT; i += 1111) { /* the centre begins as the mean, and is drawn */
        const double a = (double)value_of(0, i);
        const double b = (double)value_of(1, i);
        const double z = (a + b) / 2;
        expect_close((double)z0[i], z + 0.45 * (a - z) + 0.15 * (b - z), 1e-6, 1e-6);
    }
    average = two_lanes(false);
    expect_ok(rp_average_make(&average, digest, &bad));
    const float *z1 = read_values("z1", "fc.weight", COUNT);
    const float *a1 = read_values("a1", "fc.weight", COUNT);
    const float *b1 = read_values("b1", "fc.weight", COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        const double a = (double)value_of(0, i);
        const double b = (double)value_of(1, i);
        const double z = (double)z0[i];
        expect_close((double)a1[i], a - 0.45 * (a - z), 1e-6, 1e-7);
        expect_close((double)b1[i], b - 0.15 * (b - z), 1e-6, 1e-7);
        expect_close((double)z1[i], z + 0.45 * (a - z) + 0.15 * (b - z), 1e-6, 1e-7);
    }
    expect_close((double)read_values("b1", "optim.momentum.fc.weight", 2)[0], 1, 0, 0);
    expect_ok(rp_average_make(&average, again, &bad));
    assert_string_equal(digest, again);
}

/* The round is in the metadata of what was made, the rest of them stays. */
static void files_say_their_round(void **state) {
    char digest[RP_AVERAGE_DIGEST];
    uint32_t bad;
    rp_st_reader *reader;
    (void)state;
    write_lane("a", 0, 0);
    write_lane("b", 1, 0);
    const rp_average average = two_lanes(true);
    expect_ok(rp_average_make(&average, digest, &bad));
    expect_ok(rp_st_open(&arena, in_folder("b1"), &reader));
    assert_string_equal(rp_st_meta(reader, "round"), "1");
    assert_string_equal(rp_st_meta(reader, "step"), "50");
    rp_st_close(&reader);
    expect_ok(rp_average_export(path_of("z0"), path_of("w")));
    expect_ok(rp_st_open(&arena, in_folder("w"), &reader));
    assert_int_equal(rp_st_count(reader), 1); /* no optimiser */
    assert_null(rp_st_meta(reader, "round"));
    rp_st_close(&reader);
}

static void what_is_not_finite_is_refused(void **state) {
    char digest[RP_AVERAGE_DIGEST];
    uint32_t bad;
    (void)state;
    write_lane("a", 0, 0);
    write_lane("b", 1, NAN);
    const rp_average average = two_lanes(true);
    expect_err(rp_average_make(&average, digest, &bad), RP_ERR_FORMAT);
    assert_int_equal(bad, 1);
    assert_int_not_equal(access(in_folder("z0"), F_OK), 0);
    assert_int_not_equal(access(in_folder("a1"), F_OK), 0);
}

static void what_is_damaged_is_refused(void **state) {
    char digest[RP_AVERAGE_DIGEST];
    uint32_t bad;
    (void)state;
    write_lane("a", 0, 0);
    write_lane("b", 1, 0);
    FILE *file = fopen(in_folder("a"), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -9, SEEK_END), 0);
    assert_int_equal(fputc(0x55, file), 0x55);
    assert_int_equal(fclose(file), 0);
    const rp_average average = two_lanes(true);
    expect_err(rp_average_make(&average, digest, &bad), RP_ERR_FORMAT);
    assert_int_equal(bad, 0);
}

static void alphas_are_at_most_one_together(void **state) {
    char digest[RP_AVERAGE_DIGEST];
    uint32_t bad;
    (void)state;
    write_lane("a", 0, 0);
    write_lane("b", 1, 0);
    rp_average average = two_lanes(true);
    average.member[1].alpha = 0.6;
    expect_err(rp_average_make(&average, digest, &bad), RP_ERR_USAGE);
    average.member[1].alpha = (double)NAN;
    expect_err(rp_average_make(&average, digest, &bad), RP_ERR_USAGE);
    average.count = 0;
    expect_err(rp_average_make(&average, digest, &bad), RP_ERR_USAGE);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_formulas_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(files_say_their_round, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_finite_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_damaged_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(alphas_are_at_most_one_together, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
