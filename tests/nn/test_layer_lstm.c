#include "recurrent_case.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("lstm", recurrent_golden);
}

static void gradients_are_differences(void **state) {
    (void)state;
    recurrent_differences("lstm");
}

static void a_sample_stands_alone(void **state) {
    (void)state;
    recurrent_alone("lstm");
}

static void parameters(void **state) {
    (void)state;
    recurrent_parameters("lstm", 4);
}

static void other_shapes_are_refused(void **state) {
    (void)state;
    recurrent_shapes("lstm");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),           cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(a_sample_stands_alone),    cmocka_unit_test(parameters),
        cmocka_unit_test(other_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
