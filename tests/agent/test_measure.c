/* What repeats come to: a median and how far their quartiles are apart; where values stand. */
#include "agent/measure.h"
#include "expect.h"

static void medians_and_quartiles(void **state) {
    (void)state;
    static const struct {
        uint32_t count;
        double repeat[7], median, spread;
    } cases[] = {
        {5, {5, 1, 4, 2, 3}, 3, 2.0 / 3},
        {7, {1, 1, 1, 1, 1, 1, 900}, 1, 0}, /* one that was disturbed */
        {4, {4, 1, 2, 3}, 2.5, 1.5 / 2.5},
        {2, {3, 1}, 2, 1}, /* too few to say */
        {1, {7}, 7, 1},
        {3, {0, 0, 0}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double repeat[7];
        double median;
        double spread;
        for (uint32_t k = 0; k < 7; k++) {
            repeat[k] = cases[i].repeat[k];
        }
        rp_measure_summary(repeat, cases[i].count, &median, &spread);
        expect_close(median, cases[i].median, 1e-12, 0);
        expect_close(spread, cases[i].spread, 1e-12, 0);
    }
}

/* Every place is had once, and the last one is the end. */
static void values_do_not_overlap(void **state) {
    (void)state;
    enum { LAYERS = 3, SIZES = 2 };
    uint32_t had[200] = {0};
    const size_t count = rp_measured_count(LAYERS, SIZES);
    assert_true(count < 200);
    for (size_t i = 0; i < SIZES * LAYERS * RP_MEASURED_PASSES; i++) {
        const size_t at = rp_measured_at(LAYERS, i / RP_MEASURED_PASSES / LAYERS,
                                         i / RP_MEASURED_PASSES % LAYERS, i % RP_MEASURED_PASSES);
        had[at]++;
        had[at + 1]++;
    }
    for (size_t i = 0; i < LAYERS; i++) {
        had[rp_measured_update_at(LAYERS, SIZES, i)]++;
    }
    for (size_t i = 0; i < RP_MEASURED_COPIES; i++) {
        had[rp_measured_copy_at(LAYERS, SIZES, i)]++;
    }
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(had[i], i < count);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_quartiles),
        cmocka_unit_test(values_do_not_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
