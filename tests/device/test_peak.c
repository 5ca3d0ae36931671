#include "device/peak.h"

#include <math.h>

#include "open.h"

/* The kernel is right in every width, or this is an error; how fast it is decides nothing. */
static void a_peak_is_measured(void **state) {
    (void)state;
    double gflops = -1;
    expect_ok(rp_device_measure_peak(device, expect_small() ? 0 : 0.01, &gflops));
    assert_true(isfinite(gflops) && gflops > 0);
    print_message("%.1f GFLOP/s\n", gflops);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_peak_is_measured)};
    open_device();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_device();
    return failed;
}
