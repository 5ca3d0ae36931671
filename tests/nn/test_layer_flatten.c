#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("flatten", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(3, 2, 4);
    golden_differences("{kind: flatten}", 2, &in, 1, 0.25f, 1e-4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
