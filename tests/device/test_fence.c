/* Fences behind a gate: a user event that the queue waits for. Both ways of noticing that they pass
 * are tested on every device. */
#include "open.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device_own.h"

enum { TRIES = 5000, ROUNDS = 20 };

/* As on a CPU the driver calls back; otherwise a thread waits. */
static void open_fences(rp_device *at, bool as_on_cpu) {
    rp_fences_close(at);
    at->facts.cpu = as_on_cpu;
    expect_ok(rp_fences_open(at));
    assert_int_equal(at->waiter.started, !as_on_cpu);
}

static cl_event close_gate(const rp_device *at) {
    cl_int code;
    cl_event gate = clCreateUserEvent(at->context, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clEnqueueBarrierWithWaitList(at->queue, 1, &gate, NULL), CL_SUCCESS);
    return gate;
}

static void open_gate(cl_event gate, cl_int status) {
    assert_int_equal(clSetUserEventStatus(gate, status), CL_SUCCESS);
    assert_int_equal(clReleaseEvent(gate), CL_SUCCESS);
}

static bool has_passed(const rp_fence *fence, int64_t *done_ns) {
    bool done = false;
    expect_ok(rp_fence_poll(fence, &done, done_ns));
    return done;
}

static void await(const rp_fence *fence, int64_t *done_ns) {
    for (int i = 0; i < TRIES && !has_passed(fence, done_ns); i++) {
        (void)poll(NULL, 0, 1);
    }
    assert_true(has_passed(fence, done_ns));
}

static void fences_pass_in_order(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        rp_fence fence[3];
        int64_t done_ns[3] = {0};
        const cl_event gate = close_gate(device);
        for (int i = 0; i < 3; i++) {
            expect_ok(rp_device_fence(device, &fence[i]));
        }
        (void)poll(NULL, 0, 2);
        for (int i = 0; i < 3; i++) {
            assert_false(has_passed(&fence[i], NULL));
        }
        open_gate(gate, CL_COMPLETE);
        await(&fence[2], &done_ns[2]);
        for (int i = 1; i >= 0; i--) {
            assert_true(has_passed(&fence[i], &done_ns[i]));
            assert_true(done_ns[i] > 0 && done_ns[i] <= done_ns[i + 1]);
        }
        for (int i = 0; i < 3; i++) {
            rp_fence_release(&fence[i]);
        }
    }
}

/* A callback may still run when the queue is empty. */
static void await_callbacks(void) {
    for (uint32_t i = 0; i < RP_FENCES_MAX; i++) {
        for (int tries = 0; tries < TRIES && atomic_load(&device->fences[i].watched); tries++) {
            (void)poll(NULL, 0, 1);
        }
    }
}

static void a_pass_makes_the_descriptor_readable(void **state) {
    (void)state;
    struct pollfd wake = {.fd = rp_device_eventfd(device), .events = POLLIN};
    uint64_t count;
    rp_fence fence;
    expect_ok(rp_device_drain(device));
    await_callbacks();
    while (poll(&wake, 1, 0) == 1) {
        assert_int_equal(read(wake.fd, &count, sizeof count), sizeof count);
    }
    const cl_event gate = close_gate(device);
    expect_ok(rp_device_fence(device, &fence));
    assert_int_equal(poll(&wake, 1, 2), 0);
    open_gate(gate, CL_COMPLETE);
    assert_int_equal(poll(&wake, 1, TRIES), 1);
    assert_true(has_passed(&fence, NULL));
    assert_int_equal(read(wake.fd, &count, sizeof count), sizeof count);
    assert_int_equal(count, 1);
    rp_fence_release(&fence);
}

/* A fence that is released before it passes keeps its slot until then. */
static void the_pool_is_limited(void **state) {
    (void)state;
    static rp_fence fence[RP_FENCES_MAX];
    rp_fence another;
    for (int round = 0; round < 2; round++) {
        expect_ok(rp_device_drain(device));
        await_callbacks();
        const cl_event gate = close_gate(device);
        for (uint32_t i = 0; i < RP_FENCES_MAX; i++) {
            expect_ok(rp_device_fence(device, &fence[i]));
            if (i % 2) {
                rp_fence_release(&fence[i]);
            }
        }
        expect_err(rp_device_fence(device, &another), RP_ERR_LIMIT);
        open_gate(gate, CL_COMPLETE);
        await(&fence[RP_FENCES_MAX - 2], NULL);
        for (uint32_t i = 0; i < RP_FENCES_MAX; i++) {
            rp_fence_release(&fence[i]);
        }
        expect_ok(rp_device_fence(device, &another));
        await(&another, NULL);
        rp_fence_release(&another);
    }
}

/* PoCL 3.1 ends the process when a command in its queue fails, so small_device.c lets the wait
 * fail. */
static void failed_work_is_an_error(void **state) {
    (void)state;
    rp_fence fence;
    bool done = false;
    rp_err err = RP_OK;
    const cl_event gate = close_gate(device);
    expect_ok(rp_device_fence(device, &fence));
    (void)setenv("RP_SMALL_DEVICE_FAILS", "now", 1);
    open_gate(gate, CL_COMPLETE);
    for (int i = 0; i < TRIES && !done; i++) {
        (void)poll(NULL, 0, 1);
        err = rp_fence_poll(&fence, &done, NULL);
    }
    (void)setenv("RP_SMALL_DEVICE_FAILS", "later", 1);
    assert_true(done);
    assert_int_equal(err, RP_ERR_DEVICE);
    assert_non_null(strstr(rp_err_message(), "out of resources"));
    rp_fence_release(&fence);
    expect_ok(rp_device_fence(device, &fence));
    await(&fence, NULL);
    rp_fence_release(&fence);
}

/* Exit code of a process that ends while its only fence can never pass. */
static int end_before_a_fence(void) {
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        rp_fence fence;
        open_device();
        open_fences(device, false);
        (void)close_gate(device);
        const rp_err err = rp_device_fence(device, &fence);
        (void)poll(NULL, 0, 10); /* so that the thread waits */
        _exit(err == RP_OK ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : -1;
}

static int ended;

static void a_process_ends_before_a_fence(void **state) {
    (void)state;
    assert_int_equal(ended, 0);
}

static int use_callbacks(void **state) {
    (void)state;
    open_fences(device, true);
    return 0;
}

static int use_thread(void **state) {
    (void)state;
    open_fences(device, false);
    return 0;
}

int main(void) {
    const struct CMUnitTest both[] = {
        cmocka_unit_test(fences_pass_in_order),
        cmocka_unit_test(a_pass_makes_the_descriptor_readable),
        cmocka_unit_test(the_pool_is_limited),
    };
    const struct CMUnitTest thread[] = {cmocka_unit_test(a_process_ends_before_a_fence)};
    const struct CMUnitTest failing[] = {cmocka_unit_test(failed_work_is_an_error)};
    ended = end_before_a_fence(); /* forks, so before this process has a driver's threads */
    open_device();
    int failed = cmocka_run_group_tests(both, use_callbacks, NULL);
    failed += cmocka_run_group_tests(both, use_thread, NULL);
    failed += cmocka_run_group_tests(thread, NULL, NULL);
    if (getenv("RP_SMALL_DEVICE_FAILS")) {
        failed += cmocka_run_group_tests(failing, NULL, NULL);
    }
    close_device();
    return failed;
}
