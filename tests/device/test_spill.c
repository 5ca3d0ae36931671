/* Copies beside the work: they wait for it and it for them, and nothing here waits for either. */
#include <CL/cl.h>

#include "open.h"

#include "flash_faults.h"

#include "device/device_own.h"
#include "device/ready.h"
#include "device/spill.h"

/* More than a piece of what goes to flash at once, and no whole block of it. */
enum { BYTES = (1 << 20) + 300, ENTRIES = 3 };

static rp_darena *memory;
static rp_buffer *buffer[2];
static rp_darena *mapped[2];
static rp_spill *spill;
static unsigned char host[BYTES];

static int open_in(const char *folder) {
    expect_ok(rp_darena_open(&boot, device, "stashes", 0, 0, &memory));
    expect_ok(rp_darena_take(memory, BYTES, &buffer[0]));
    expect_ok(rp_darena_take(memory, BYTES, &buffer[1]));
    expect_ok(rp_spill_open(&boot, device, ENTRIES, BYTES, folder, &spill));
    return 0;
}

static int open_all(void **state) {
    (void)state;
    return open_in(NULL);
}

static int open_flash(void **state) {
    (void)state;
    return open_in(getenv("RP_BUILD_DIR") ? getenv("RP_BUILD_DIR") : "/var/tmp");
}

/* Buffers that are read and written in place. Needs a device that shares the host's memory. */
static int open_mapped(void **state) {
    rp_darena *whole;
    (void)open_flash(state);
    for (uint32_t i = 0; i < 2; i++) {
        expect_ok(rp_darena_open_mapped(&boot, device, "mapped", BYTES, &mapped[i]));
        buffer[i] = rp_darena_whole(mapped[i]);
        assert_int_equal((uintptr_t)buffer[i]->host % 4096, 0);
        assert_non_null(buffer[i]->host);
    }
    device->facts.unified = false; /* as of a device with memory of its own */
    expect_ok(rp_darena_open_mapped(&boot, device, "not mapped", BYTES, &whole));
    assert_null(rp_darena_whole(whole)->host);
    device->facts.unified = true;
    rp_darena_close(&whole);
    return 0;
}

static char byte_of(uint32_t entry, size_t at) {
    char byte;
    expect_ok(rp_spill_move(spill, entry, at, 1, NULL, &byte));
    return byte;
}

static int close_all(void **state) {
    (void)state;
    rp_spill_close(&spill);
    assert_null(spill);
    rp_spill_close(&spill);
    rp_darena_close(&memory);
    rp_darena_close(&mapped[0]);
    rp_darena_close(&mapped[1]);
    return 0;
}

static void fill(unsigned char byte) {
    memset(host, byte, sizeof host);
    expect_ok(rp_buffer_write_now(device, buffer[0], 0, host, BYTES));
}

static bool has_passed(const rp_event *event) {
    cl_int status = CL_QUEUED;
    (void)clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                         NULL);
    return status == CL_COMPLETE;
}

static void what_leaves_comes_back(void **state) {
    (void)state;
    rp_event here;
    rp_event left[ENTRIES];
    for (uint32_t i = 0; i < ENTRIES; i++) {
        rp_event point;
        fill((unsigned char)(i + 1));
        expect_ok(rp_spill_point(spill, &point));
        expect_ok(rp_spill_leave(spill, buffer[0], i, &point, &left[i]));
        expect_ok(rp_spill_await(spill, &left[i])); /* the next fill comes behind it */
        rp_event_release(&point);
    }
    for (uint32_t i = ENTRIES; i-- > 0;) {
        const rp_event *const after[] = {&left[i]};
        expect_ok(rp_spill_arrive(spill, buffer[1], i, after, 1, &here));
        expect_ok(rp_spill_await(spill, &here));
        rp_event_release(&here);
        expect_ok(rp_buffer_read_now(device, host, buffer[1], 0, BYTES));
        for (size_t b = 0; b < BYTES; b++) {
            assert_int_equal(host[b], i + 1);
        }
        rp_event_release(&left[i]);
    }
    expect_ok(rp_spill_drain(spill));
    assert_int_equal(byte_of(1, BYTES - 1), 2);
}

/* A copy that may not begin yet holds back what waits for it, and only that. */
static void they_wait_for_each_other(void **state) {
    (void)state;
    cl_int code;
    const cl_event gate = clCreateUserEvent(device->context, &code);
    rp_event held = {gate};
    const rp_event none = {NULL};
    rp_event left;
    rp_event here;
    rp_event behind;
    assert_int_equal(code, CL_SUCCESS);
    fill(7);
    expect_ok(rp_spill_leave(spill, buffer[0], 0, &held, &left));
    const rp_event *const after[] = {&none, &left};
    expect_ok(rp_spill_arrive(spill, buffer[1], 0, after, 2, &here));
    expect_ok(rp_device_drain(device)); /* the device's own work goes on */
    expect_ok(rp_spill_await(spill, &none));
    expect_ok(rp_device_drain(device));
    expect_ok(rp_spill_await(spill, &here));
    expect_ok(rp_spill_point(spill, &behind));
    assert_false(has_passed(&left) || has_passed(&here) || has_passed(&behind));
    rp_event copy = rp_event_copy(&left);
    rp_event_release(&left);
    assert_null(left.event);
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    expect_ok(rp_device_drain(device));
    assert_true(has_passed(&copy) && has_passed(&here) && has_passed(&behind));
    expect_ok(rp_buffer_read_now(device, host, buffer[1], 0, BYTES));
    assert_int_equal(host[BYTES - 1], 7);
    rp_event_release(&copy);
    rp_event_release(&here);
    rp_event_release(&behind);
    rp_event_release(&held);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    const rp_event none = {NULL};
    rp_event event;
    rp_buffer *small;
    expect_ok(rp_darena_take(memory, BYTES - 1, &small));
    expect_err(rp_spill_leave(spill, buffer[0], ENTRIES, &none, &event), RP_ERR_LIMIT);
    expect_err(rp_spill_leave(spill, small, 0, &none, &event), RP_ERR_LIMIT);
    expect_err(rp_spill_arrive(spill, small, 0, NULL, 0, &event), RP_ERR_LIMIT);
    assert_null(event.event);
}

/* A rehearsal copies nothing. */
static void a_rehearsal_does_nothing(void **state) {
    (void)state;
    rp_event event;
    fill(1);
    const char nine = 9;
    expect_ok(rp_spill_move(spill, 0, 0, 1, &nine, NULL));
    rp_device_rehearse(device, true);
    expect_ok(rp_spill_point(spill, &event));
    assert_null(event.event);
    expect_ok(rp_spill_leave(spill, buffer[0], 0, &event, &event));
    assert_null(event.event);
    rp_device_rehearse(device, false);
    expect_ok(rp_spill_drain(spill));
    assert_int_equal(byte_of(0, 0), 9);
}

/* A driver whose pointer is not where the buffer lies: then all is copied, as without a map. */
static void a_map_that_is_wrong_is_not_used(void **state) {
    char *const lies_at = buffer[0]->host;
    buffer[0]->host = lies_at + 4096;
    what_leaves_comes_back(state);
    buffer[0]->host = lies_at;
}

/* The run ends with a reason: nothing waits for what did not come, and nothing believes it. */
static void a_short_read_is_said(void **state) {
    (void)state;
    const rp_event none = {NULL};
    rp_event left;
    rp_event here;
    fill(3);
    expect_ok(rp_spill_leave(spill, buffer[0], 1, &none, &left));
    const rp_event *const after[] = {&left};
    expect_ok(rp_spill_drain(spill));
    expect_ok(rp_spill_check(spill));
    assert_int_equal(rp_spill_written_bytes(spill), (1 << 20) + 4096);
    assert_int_equal(ftruncate(find_nameless(), BYTES), 0);
    expect_ok(rp_spill_arrive(spill, buffer[1], 1, after, 1, &here));
    expect_ok(rp_spill_await(spill, &here));
    expect_ok(rp_device_drain(device));
    expect_err(rp_spill_check(spill), RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "flash: reading stash 1 in "));
    assert_non_null(strstr(rp_err_message(), "0 of 1048576 bytes"));
    rp_event_release(&here);
    rp_event_release(&left);
    expect_ok(rp_spill_leave(spill, buffer[0], 2, &none, &left)); /* passes, and is not done */
    expect_err(rp_spill_drain(spill), RP_ERR_DEVICE);
    assert_true(has_passed(&left));
    assert_int_equal(rp_spill_written_bytes(spill), (1 << 20) + 4096);
    rp_event_release(&left);
}

static void a_write_that_fails_is_said(void **state) {
    (void)state;
    const rp_event none = {NULL};
    rp_event left;
    refuse_writes(true);
    expect_ok(rp_spill_leave(spill, buffer[0], 0, &none, &left));
    const rp_err err = rp_spill_drain(spill);
    refuse_writes(false);
    expect_err(err, RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "flash: writing stash 0 in "));
    assert_non_null(strstr(rp_err_message(), "File too large"));
    rp_event_release(&left);
}

/* So many are on their way at most, and the one too many is refused, not waited for. */
static void the_way_is_bounded(void **state) {
    (void)state;
    cl_int code;
    rp_event held = {clCreateUserEvent(device->context, &code)};
    rp_event left;
    uint32_t taken = 0;
    rp_err err = RP_OK;
    assert_int_equal(code, CL_SUCCESS);
    while (taken < 10000) {
        err = rp_spill_leave(spill, buffer[0], 0, &held, &left);
        if (err != RP_OK) {
            break;
        }
        rp_event_release(&left);
        taken++;
    }
    expect_err(err, RP_ERR_LIMIT);
    assert_int_equal(taken, (1024 - 15) / 2); /* of two pieces each */
    /* what has been taken need not be done for real */
    assert_int_equal(ftruncate(find_nameless(), 0), 0);
    refuse_writes(true);
    assert_int_equal(clSetUserEventStatus(held.event, CL_COMPLETE), CL_SUCCESS);
    expect_err(rp_spill_drain(spill), RP_ERR_DEVICE);
    refuse_writes(false);
    rp_event_release(&held);
}

int main(void) {
    open_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_leaves_comes_back, open_all, close_all),
        cmocka_unit_test_setup_teardown(they_wait_for_each_other, open_all, close_all),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_rehearsal_does_nothing, open_all, close_all),
        cmocka_unit_test_setup_teardown(what_leaves_comes_back, open_flash, close_all),
        cmocka_unit_test_setup_teardown(they_wait_for_each_other, open_flash, close_all),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, open_flash, close_all),
        cmocka_unit_test_setup_teardown(a_rehearsal_does_nothing, open_flash, close_all),
        cmocka_unit_test_setup_teardown(a_short_read_is_said, open_flash, close_all),
        cmocka_unit_test_setup_teardown(a_write_that_fails_is_said, open_flash, close_all),
        cmocka_unit_test_setup_teardown(the_way_is_bounded, open_flash, close_all),
    };
    const struct CMUnitTest mapped_tests[] = {
        cmocka_unit_test_setup_teardown(what_leaves_comes_back, open_mapped, close_all),
        cmocka_unit_test_setup_teardown(they_wait_for_each_other, open_mapped, close_all),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, open_mapped, close_all),
        cmocka_unit_test_setup_teardown(a_rehearsal_does_nothing, open_mapped, close_all),
        cmocka_unit_test_setup_teardown(a_map_that_is_wrong_is_not_used, open_mapped, close_all),
        cmocka_unit_test_setup_teardown(a_write_that_fails_is_said, open_mapped, close_all),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (device->facts.unified) {
        failed += cmocka_run_group_tests(mapped_tests, NULL, NULL);
    }
    close_device();
    return failed;
}
