#include "activation.h"

static const char keys[] = "{kind: relu6}";

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("relu6", golden_run);
}

static void central_differences(void **state) {
    (void)state;
    activation_differences(keys);
}

static void nan_passes(void **state) {
    (void)state;
    activation_passes_nan(keys);
}

static void limits(void **state) {
    (void)state;
    activation_limits(keys, (const float[]){0.0f, 6.0f, 0.0f, 6.0f});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(central_differences),
        cmocka_unit_test(nan_passes),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
