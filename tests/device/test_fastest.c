#include "expect.h"

#include "device/peak.h"

/* CLBlast would be compiled for half a minute. */
static const char *tuning(void) {
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/boards/pocl-cpu/tuning.json", getenv("RP_SOURCE_DIR"));
    return path;
}

static const char *const pocl = "Portable Computing Language";

static void count_and_skip(void **state) {
    (void)state;
    rp_device_options options = {.platform = pocl};
    assert_int_equal(rp_device_count(&options), 2);
    options.skip = 1;
    assert_int_equal(rp_device_count(&options), 1);
    options.skip = 2;
    assert_int_equal(rp_device_count(&options), 0);
    options = (rp_device_options){.platform = pocl, .device = "basic"};
    assert_int_equal(rp_device_count(&options), 1);
    options.device = "no such device";
    assert_int_equal(rp_device_count(&options), 0);
}

/* The one, or the fastest when no speed is asked for. */
static void open_one(rp_device_options options, char name[128], double *gflops) {
    rp_device *device = NULL;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    options.cpu_tuning_path = tuning();
    expect_ok((gflops ? rp_device_open : rp_device_open_fastest)(&arena, &options, &device));
    assert_true(rp_device_gemm(device) == RP_GEMM_PANEL); /* it is a CPU */
    (void)snprintf(name, 128, "%s", rp_device_facts_of(device)->name);
    if (gflops) {
        expect_ok(rp_device_measure_gemm(&arena, device, 0.01, gflops));
    }
    rp_device_close(&device);
    rp_arena_finish(&arena);
}

/* Which one is faster is the machine's to say: both are candidates, and one of them is opened. */
static void one_of_several(void **state) {
    (void)state;
    char first[128], second[128], chosen[128];
    double gflops[2];
    open_one((rp_device_options){.platform = pocl}, first, &gflops[0]);
    open_one((rp_device_options){.platform = pocl, .skip = 1}, second, &gflops[1]);
    assert_string_not_equal(first, second);
    assert_true(gflops[0] > 0 && gflops[1] > 0);
    open_one((rp_device_options){.platform = pocl}, chosen, NULL);
    assert_true(strcmp(chosen, first) == 0 || strcmp(chosen, second) == 0);
    /* Of one there is no choice, of none an error. */
    open_one((rp_device_options){.platform = pocl, .device = "basic"}, chosen, NULL);
    assert_non_null(strstr(chosen, "basic"));
    rp_device *device = NULL;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    const rp_device_options none = {.device = "no such device"};
    expect_err(rp_device_open_fastest(&arena, &none, &device), RP_ERR_DEVICE);
    rp_arena_finish(&arena);
}

/* A device that computes wrongly is never the fastest; when all do, the first is opened, and its
 * own self-test says so. */
static void wrong_ones_are_passed_over(void **state) {
    (void)state;
    char first[128], chosen[128];
    double gflops;
    open_one((rp_device_options){.platform = pocl}, first, &gflops);
    assert_int_equal(setenv("RP_TEST_BREAK_GEMM", "1", 1), 0);
    open_one((rp_device_options){.platform = pocl}, chosen, NULL);
    assert_int_equal(unsetenv("RP_TEST_BREAK_GEMM"), 0);
    assert_string_equal(chosen, first);
}

int main(void) {
    /* PoCL has two drivers for the same CPU. It reads this list once, when it is first queried. */
    const int code = setenv("POCL_DEVICES", "basic pthread", 1);
    if (rp_device_count(&(rp_device_options){.platform = pocl}) == 0) {
        skip_program("PoCL is not installed");
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(count_and_skip),
        cmocka_unit_test(one_of_several),
        cmocka_unit_test(wrong_ones_are_passed_over),
    };
    return code ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
