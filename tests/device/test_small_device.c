/* Runs over small_device.c: what it says and refuses arrives here, and products are right all the
 * same. */
#include "expect.h"

#include "device/device.h"
#include "device/program.h"

static void what_it_says(void **state) {
    (void)state;
    const char *preload = getenv("LD_PRELOAD");
    rp_device *device = NULL;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    assert_non_null(preload);
    assert_non_null(strstr(preload, "small_device"));
    expect_ok(rp_device_open(&arena, &(rp_device_options){0}, &device));
    const rp_device_facts *facts = rp_device_facts_of(device);
    assert_false(facts->profiling);
    assert_false(facts->cpu);
    assert_int_equal(facts->group_items_max, 128);
    assert_int_equal(facts->compute_units, 1);
    const char *local = getenv("RP_SMALL_DEVICE_LOCAL");
    assert_true(facts->local_bytes == (local ? 8192 : 16384));
    assert_true(facts->alloc_bytes_max == 64 << 20);
    /* A group that is too large is refused, and the error names the kernel. */
    rp_kernel *kernel;
    rp_buffer *buffer;
    rp_darena *memory = NULL;
    expect_ok(rp_darena_open(&arena, device, "test", 0, 0, &memory));
    expect_ok(rp_darena_take(memory, 4096, &buffer));
    expect_ok(rp_kernel_find(device, "copy", "sum_two", NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    for (int i = 0; i < 3; i++) {
        rp_arg_buffer(&launch, buffer);
        rp_arg_u64(&launch, 0);
    }
    rp_arg_u32(&launch, 1024);
    expect_err(rp_launch_run(&launch, 1, (size_t[]){128}, (size_t[]){128}), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "work-group"));
    rp_darena_close(&memory);
    rp_device_close(&device);
    rp_arena_finish(&arena);
}

static void products(void **state) {
    (void)state;
    const rp_gemm_choice choice = RP_GEMM_PANEL; /* CLBlast's own would be compiled for long */
    rp_device *device = NULL;
    rp_arena arena;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_device_open(&arena, &(rp_device_options){0}, &device));
    rp_device_choose_gemm(device, choice);
    expect_ok(rp_device_selftest(device));
    rp_device_close(&device);
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_says),
        cmocka_unit_test(products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
