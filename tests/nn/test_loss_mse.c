#include "loss_case.h"

#include <math.h>

static void compare_loss(loss_case *c, const rp_st_reader *reader, const char *name) {
    loss_case_compare(c, reader, name);
    for (uint32_t i = 0; i < c->n; i++) {
        expect_close(c->loss[RP_LOSS_RESULT * i + 1], 0, 0, 0);
    }
}

static void equals_pytorch(void **state) {
    (void)state;
    loss_case_each("loss", "mse", compare_loss);
}

static void central_differences(void **state) {
    (void)state;
    float target[33];
    golden_values("target", 33, target);
    loss_case_differences("mse", target, 0);
}

static void nan_stays_in_its_sample(void **state) {
    (void)state;
    float y[3 * 17] = {0};
    const float target[3 * 17] = {0};
    loss_case c;
    y[17 + 16] = NAN;
    loss_case_open(&c, "mse", 3, 17);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, 3, true);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(isnan(c.loss[RP_LOSS_RESULT * i]) != 0, i == 1);
    }
    for (size_t i = 0; i < 3 * 17; i++) {
        assert_int_equal(isnan(c.gradient[i]) != 0, i == 17 + 16);
    }
    loss_case_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(central_differences),
        cmocka_unit_test(nan_stays_in_its_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
