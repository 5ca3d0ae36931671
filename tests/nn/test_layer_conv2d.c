#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("conv2d", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(4, 6, 5);
    const char *const keys[] = {
        "{kind: conv2d, out: 6, kernel: 3, pad: 1}",
        "{kind: conv2d, out: 6, kernel: 3, pad: 2, stride: 2, dilation: 2}",
        "{kind: conv2d, out: 6, kernel: 3, pad: 1, groups: 2}",
        "{kind: conv2d, out: 8, kernel: 2, stride: 2, groups: 4}",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        golden_differences(keys[i], 2, &in, 1, 0.25f, 1e-4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
