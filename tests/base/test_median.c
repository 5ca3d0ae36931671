/* What repeats come to: a median, and how far their quartiles are apart. */
#include "base/median.h"
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
        rp_median(repeat, cases[i].count, &median, &spread);
        expect_close(median, cases[i].median, 1e-12, 0);
        expect_close(spread, cases[i].spread, 1e-12, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians_and_quartiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
