/* The counts of the classes of pixels that boards report. */
#include "train/overlap.h"

#include <math.h>

#include "expect.h"

enum { OUTPUTS = 3 };

static rp_arena arena;
static rp_overlap overlap;

static void open_overlap(uint32_t outputs, uint32_t classes) {
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_overlap_open(&arena, outputs, classes, &overlap));
}

static rp_err add(const double *count, size_t numbers, uint64_t targets) {
    rp_message message = {.part_count = 1};
    message.part[0] = rp_part_of_array(RP_DTYPE_F64, count, numbers);
    return rp_overlap_add(&overlap, &message, "b", targets);
}

static void reports_are_added(void **state) {
    (void)state;
    const double first[2 * OUTPUTS] = {1, 0, 2, 2, 1, 3};
    const double second[2 * OUTPUTS] = {0, 1, 0, 2, 3, 0};
    open_overlap(OUTPUTS, OUTPUTS);
    assert_true(isnan(rp_overlap_mean_iou(&overlap)));
    expect_ok(add(first, 2 * OUTPUTS, 5));
    expect_ok(add(second, 2 * OUTPUTS, 4));
    expect_close(rp_overlap_mean_iou(&overlap), (1.0 / 4 + 1.0 / 4 + 2.0 / 3) / 3, 0, 1e-15);
    rp_arena_finish(&arena);
}

/* The model may have more outputs than the data has classes. */
static void classes_of_the_data_count(void **state) {
    (void)state;
    const double count[2 * OUTPUTS] = {1, 1, 0, 2, 2, 2};
    open_overlap(OUTPUTS, 2);
    expect_ok(add(count, 2 * OUTPUTS, 4));
    expect_close(rp_overlap_mean_iou(&overlap), 0.5, 0, 0);
    rp_arena_finish(&arena);
}

static void an_older_board_makes_it_unknown(void **state) {
    (void)state;
    const double count[2 * OUTPUTS] = {1, 0, 0, 1, 0, 0};
    const rp_message nothing = {0};
    open_overlap(OUTPUTS, OUTPUTS);
    expect_ok(add(count, 2 * OUTPUTS, 1));
    expect_ok(rp_overlap_add(&overlap, &nothing, "b", 1));
    assert_true(isnan(rp_overlap_mean_iou(&overlap)));
    rp_arena_finish(&arena);
}

static void impossible_counts_are_refused(void **state) {
    (void)state;
    static const double bad[][2 * OUTPUTS] = {
        {2, 0, 0, 1, 0, 0},   /* more met than there are */
        {-1, 0, 0, 1, 0, 0},  /* negative */
        {0.5, 0, 0, 1, 0, 0}, /* a part of a pixel */
        {0, 0, 0, 6, 0, 0},   /* more than the report has */
        {2, 2, 2, 2, 2, 2},   /* all together more than that */
        {NAN, 0, 0, 1, 0, 0}, /* not a number */
        {0, 0, 0, NAN, 0, 0}, /* */
        {0, 0, 0, 0, (double)INFINITY, 0},
    };
    open_overlap(OUTPUTS, OUTPUTS);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_err(add(bad[i], 2 * OUTPUTS, 5), RP_ERR_PEER);
    }
    expect_err(add(bad[0], 2, 5), RP_ERR_PEER);
    for (size_t k = 0; k < 2 * (size_t)OUTPUTS; k++) {
        expect_close(overlap.count[k], 0, 0, 0);
    }
    rp_arena_finish(&arena);
    open_overlap(0, 4); /* the targets are not pixels */
    expect_err(add(bad[0], 2 * OUTPUTS, 5), RP_ERR_PEER);
    assert_true(isnan(rp_overlap_mean_iou(&overlap)));
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_added),
        cmocka_unit_test(classes_of_the_data_count),
        cmocka_unit_test(an_older_board_makes_it_unknown),
        cmocka_unit_test(impossible_counts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
