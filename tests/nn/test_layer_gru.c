#include "recurrent_case.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("gru", recurrent_golden);
}

static void gradients_are_differences(void **state) {
    (void)state;
    recurrent_differences("gru");
}

static void a_sample_stands_alone(void **state) {
    (void)state;
    recurrent_alone("gru");
}

static void parameters(void **state) {
    (void)state;
    recurrent_parameters("gru", 3);
}

static void other_shapes_are_refused(void **state) {
    (void)state;
    recurrent_shapes("gru");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),           cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(a_sample_stands_alone),    cmocka_unit_test(parameters),
        cmocka_unit_test(other_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
