#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("avgpool", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 7, 6);
    golden_differences("{kind: avgpool, kernel: 2}", 2, &in, 1, 1e-3f, 1e-3);
    golden_differences("{kind: avgpool, kernel: 3, stride: 2, pad: 1}", 2, &in, 1, 1e-3f, 1e-3);
    golden_differences("{kind: avgpool, kernel: [3, 2], stride: [1, 2], pad: [0, 1]}", 2, &in, 1,
                       1e-3f, 1e-3);
    golden_differences("{kind: avgpool, kernel: 2, ceil_mode: true}", 2, &in, 1, 1e-3f, 1e-3);
    golden_differences(
        "{kind: avgpool, kernel: [2, 3], pad: 1, ceil_mode: true, count_include_pad: false}", 2,
        &in, 1, 1e-3f, 1e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
