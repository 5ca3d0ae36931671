#include "open.h"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/log.h"
#include "device/builder.h"
#include "device/program.h"

static rp_device_builder *builder;

/* What a job of this file does: waits for the owner, builds, ends. */
typedef struct {
    atomic_bool begun;
    atomic_bool
        may_go_on;       /* set by the owner while the job runs: who waits for a job sets nothing */
    const char *program; /* NULL: builds nothing */
    const char *defines;
    bool waits_for_cancel;
    rp_err fails;
    uint32_t number; /* written by both threads in turn */
    uint32_t lines;
} work;

static void sleep_in_job(void) {
    (void)poll(NULL, 0, 1);
}

static rp_err run_work(rp_device_builder *b, void *context) {
    work *w = context;
    rp_kernel *kernel;
    rp_err err = RP_OK;
    atomic_store(&w->begun, true);
    while (!atomic_load(&w->may_go_on) && !rp_device_builder_is_cancelled(b)) {
        sleep_in_job();
    }
    while (w->waits_for_cancel && !rp_device_builder_is_cancelled(b)) {
        sleep_in_job();
    }
    for (uint32_t i = 0; i < w->lines; i++) {
        rp_log_debug("the job's line %u", i);
    }
    if (w->program) {
        RP_TRY(rp_kernel_find(device, w->program, "gather", w->defines, &kernel));
    }
    w->number++;
    if (w->fails != RP_OK) {
        err = rp_fail(w->fails, "the job fails with %u", w->number);
    }
fail:
    return err;
}

static void start_builder(work *w) {
    expect_ok(rp_device_builder_start(builder, run_work, w));
    assert_true(rp_device_builder_is_started(builder));
    for (int i = 0; i < 10000 && !atomic_load(&w->begun); i++) {
        sleep_in_job();
    }
    assert_true(atomic_load(&w->begun));
}

static bool is_readable(int wait_ms) {
    struct pollfd watch = {.fd = rp_device_builder_eventfd(builder), .events = POLLIN};
    return poll(&watch, 1, wait_ms) == 1;
}

static void the_owner_goes_on_meanwhile(void **state) {
    (void)state;
    for (uint32_t round = 0; round < 3; round++) {
        work w = {.program = "gemm_move", .number = 7 + round, .lines = 20};
        start_builder(&w);
        assert_false(rp_device_builder_is_done(builder));
        assert_false(is_readable(0));
        for (uint32_t i = 0; i < 20; i++) {
            rp_log_debug("the owner's line %u", i);
        }
        atomic_store(&w.may_go_on, true);
        assert_true(is_readable(60000));
        assert_true(rp_device_builder_is_done(builder));
        expect_ok(rp_device_builder_join(builder));
        assert_int_equal(w.number, 8 + round);
        assert_false(rp_device_builder_is_started(builder));
        assert_false(rp_device_builder_is_done(builder));
        assert_false(is_readable(0));
    }
}

static void an_error_comes_over_with_its_message(void **state) {
    (void)state;
    work w = {.may_go_on = true, .fails = RP_ERR_NUMERIC, .number = 41};
    start_builder(&w);
    expect_err(rp_fail(RP_ERR_USAGE, "the owner's own"), RP_ERR_USAGE);
    assert_true(is_readable(10000));
    assert_string_equal(rp_err_message(), "the owner's own");
    expect_err(rp_device_builder_join(builder), RP_ERR_NUMERIC);
    assert_string_equal(rp_err_message(), "the job fails with 42");
}

static void a_cancelled_job_builds_nothing_more(void **state) {
    (void)state;
    rp_kernel *kernel;
    work w = {.may_go_on = true,
              .program = "gemm_move",
              .defines = "-DRP_TEST_CANCELLED",
              .waits_for_cancel = true};
    start_builder(&w);
    rp_device_builder_cancel(builder);
    expect_err(rp_device_builder_join(builder), RP_ERR_INTERRUPTED);
    assert_non_null(strstr(rp_err_message(), "gemm_move"));
    assert_int_equal(w.number, 0);
    /* It was the job that was cancelled, not the device. */
    expect_ok(rp_kernel_find(device, "gemm_move", "gather", "-DRP_TEST_CANCELLED", &kernel));
    work next = {.may_go_on = true, .program = "gemm_move", .defines = "-DRP_TEST_NEXT"};
    start_builder(&next);
    expect_ok(rp_device_builder_join(builder));
    assert_int_equal(next.number, 1);
}

static void closing_cancels_and_waits(void **state) {
    (void)state;
    work w = {.waits_for_cancel = true};
    rp_device_builder *none = NULL;
    rp_device_builder_close(&none);
    start_builder(&w);
    rp_device_builder_close(&builder);
    assert_null(builder);
    assert_int_equal(w.number, 1);
    expect_ok(rp_device_builder_open(&boot, NULL, &builder)); /* for jobs without a device */
    work without = {.may_go_on = true};
    start_builder(&without);
    expect_ok(rp_device_builder_join(builder));
    assert_int_equal(without.number, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_owner_goes_on_meanwhile),
        cmocka_unit_test(an_error_comes_over_with_its_message),
        cmocka_unit_test(a_cancelled_job_builds_nothing_more),
        cmocka_unit_test(closing_cancels_and_waits),
    };
    open_device();
    if (rp_device_builder_open(&boot, device, &builder) != RP_OK) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rp_device_builder_close(&builder);
    close_device();
    return failed;
}
