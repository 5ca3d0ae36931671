#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("adaptiveavgpool", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 7, 5);
    golden_differences("{kind: adaptiveavgpool, out: [3, 2]}", 2, &in, 1, 1e-2f, 1e-3);
    golden_differences("{kind: adaptiveavgpool, out: 9}", 2, &in, 1, 1e-2f, 1e-3);
}

/* Every pixel of every bin counts once. */
static void flops_are_those_of_the_bins(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(2, 7, 5);
    layer_rig rig;
    rig_open(&rig, "flops", "{kind: adaptiveavgpool, out: [3, 2]}", 1, &in, 1);
    /* rows 0-2 2-4 4-6, columns 0-2 2-4 */
    expect_close(rig.plan.flops_forward, 2 * 9 * 6, 0, 0);
    expect_close(rig.plan.flops_backward, 2 * 9 * 6, 0, 0);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(flops_are_those_of_the_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
