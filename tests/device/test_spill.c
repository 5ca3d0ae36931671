/* Copies beside the work: they wait for it and it for them, and nothing here waits for either. */
#include <CL/cl.h>

#include "open.h"

#include "device/device_own.h"
#include "device/ready.h"
#include "device/spill.h"

enum { BYTES = 4096, ENTRIES = 3 };

static rp_darena *memory;
static rp_buffer *buffer[2];
static rp_spill *spill;
static unsigned char host[BYTES];

static int open_all(void **state) {
    (void)state;
    expect_ok(rp_darena_open(&boot, device, "stashes", 0, 0, &memory));
    expect_ok(rp_darena_take(memory, BYTES, &buffer[0]));
    expect_ok(rp_darena_take(memory, BYTES, &buffer[1]));
    expect_ok(rp_spill_open(&boot, device, ENTRIES, BYTES, &spill));
    return 0;
}

static int close_all(void **state) {
    (void)state;
    rp_spill_close(&spill);
    assert_null(spill);
    rp_spill_close(&spill);
    rp_darena_close(&memory);
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
    assert_int_equal(rp_spill_entry(spill, 1)[BYTES - 1], 2);
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
    rp_spill_entry(spill, 0)[0] = 9;
    rp_device_rehearse(device, true);
    expect_ok(rp_spill_point(spill, &event));
    assert_null(event.event);
    expect_ok(rp_spill_leave(spill, buffer[0], 0, &event, &event));
    assert_null(event.event);
    rp_device_rehearse(device, false);
    expect_ok(rp_spill_drain(spill));
    assert_int_equal(rp_spill_entry(spill, 0)[0], 9);
}

int main(void) {
    open_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_leaves_comes_back, open_all, close_all),
        cmocka_unit_test_setup_teardown(they_wait_for_each_other, open_all, close_all),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_rehearsal_does_nothing, open_all, close_all),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_device();
    return failed;
}
