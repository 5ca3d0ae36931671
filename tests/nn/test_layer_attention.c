#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("attention", golden_run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
