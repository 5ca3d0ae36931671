#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/cl.h"
#include "device/device_own.h"

/* ---- fences -------------------------------------------------------------------------------- */

/* Runs in a thread of the driver, so it must not call OpenCL, log or lock. */
static void CL_CALLBACK on_passed(cl_event event, cl_int status, void *data) {
    (void)event;
    rp_fence_state *state = data;
    const int event_fd = state->device->event_fd;
    const rp_clock clock = rp_clock_real();
    const uint64_t one = 1;
    atomic_store(&state->done_ns, rp_clock_now_ns(&clock));
    atomic_store(&state->status, status < 0 ? status : 0);
    /* If the counter is full, it is readable already. */
    (void)!write(event_fd, &one, sizeof one);
    atomic_store(&state->calling, 0);
}

static void reap_fence(rp_fence_state *state) {
    if (state->event && state->released && atomic_load(&state->calling) == 0) {
        (void)clReleaseEvent(state->event);
        state->event = NULL;
    }
}

static rp_fence_state *find_free(rp_device *device) {
    for (uint32_t n = 0; n < RP_FENCES_MAX; n++) {
        uint32_t i = (device->fence_next + n) % RP_FENCES_MAX;
        reap_fence(&device->fences[i]);
        if (!device->fences[i].event) {
            device->fence_next = i + 1;
            return &device->fences[i];
        }
    }
    return NULL;
}

rp_err rp_device_fence(rp_device *device, rp_fence *out) {
    rp_fence_state *state = find_free(device);
    if (!state) {
        return rp_fail(RP_ERR_LIMIT, "device: more than %d fences at once", RP_FENCES_MAX);
    }
    cl_event event;
    cl_int code = clEnqueueMarkerWithWaitList(device->queue, 0, NULL, &event);
    if (code != CL_SUCCESS) {
        return rp_cl(code, "fence");
    }
    state->device = device;
    state->released = false;
    atomic_store(&state->status, 1);
    atomic_store(&state->calling, 1);
    state->event = event;
    code = clSetEventCallback(event, CL_COMPLETE, on_passed, state);
    if (code != CL_SUCCESS) {
        (void)clReleaseEvent(event);
        state->event = NULL;
        return rp_cl(code, "callback of a fence");
    }
    out->state = state;
    return rp_cl(clFlush(device->queue), "flush");
}

rp_err rp_fence_poll(const rp_fence *fence, bool *done, int64_t *done_ns) {
    rp_fence_state *state = fence->state;
    int status = state ? atomic_load(&state->status) : 0;
    *done = status <= 0;
    if (status < 0) {
        return rp_cl(status, "work on %s failed", state->device->facts.name);
    }
    if (*done && done_ns) {
        *done_ns = state ? (int64_t)atomic_load(&state->done_ns) : 0;
    }
    return RP_OK;
}

void rp_fence_release(rp_fence *fence) {
    if (fence->state) {
        fence->state->released = true;
        reap_fence(fence->state);
        fence->state = NULL;
    }
}

void rp_fences_release(rp_device *device) {
    /* clFinish has returned; a callback may still run for a moment. */
    for (int tries = 0; tries < 1000; tries++) {
        bool left = false;
        for (uint32_t i = 0; i < RP_FENCES_MAX; i++) {
            device->fences[i].released = true;
            reap_fence(&device->fences[i]);
            left = left || device->fences[i].event;
        }
        if (!left) {
            return;
        }
        (void)poll(NULL, 0, 1);
    }
}

int rp_device_eventfd(const rp_device *device) {
    return device->event_fd;
}

rp_err rp_device_drain(rp_device *device) {
    return rp_cl(clFinish(device->queue), "finish");
}

/* ---- copies -------------------------------------------------------------------------------- */

static rp_err check_range(const rp_buffer *buffer, size_t offset_bytes, size_t bytes,
                          const char *what) {
    if (offset_bytes > buffer->bytes || bytes > buffer->bytes - offset_bytes) {
        return rp_fail(RP_ERR_LIMIT, "%s: %zu bytes at offset %zu exceed a buffer of %zu", what,
                       bytes, offset_bytes, buffer->bytes);
    }
    return RP_OK;
}

static rp_err write_buffer(rp_device *device, rp_buffer *to, size_t offset_bytes, const void *from,
                           size_t bytes, cl_bool wait) {
    rp_err err = check_range(to, offset_bytes, bytes, "write");
    if (err != RP_OK || bytes == 0 || device->rehearses) {
        return err;
    }
    return rp_cl(clEnqueueWriteBuffer(device->queue, to->memory, wait, offset_bytes, bytes, from, 0,
                                      NULL, NULL),
                 "write of %zu bytes", bytes);
}

static rp_err read_buffer(rp_device *device, void *to, const rp_buffer *from, size_t offset_bytes,
                          size_t bytes, cl_bool wait) {
    rp_err err = check_range(from, offset_bytes, bytes, "read");
    if (err != RP_OK || bytes == 0 || device->rehearses) {
        return err;
    }
    return rp_cl(clEnqueueReadBuffer(device->queue, from->memory, wait, offset_bytes, bytes, to, 0,
                                     NULL, NULL),
                 "read of %zu bytes", bytes);
}

rp_err rp_buffer_write(rp_device *device, rp_buffer *to, size_t offset_bytes, const void *from,
                       size_t bytes) {
    return write_buffer(device, to, offset_bytes, from, bytes, CL_FALSE);
}

rp_err rp_buffer_read(rp_device *device, void *to, const rp_buffer *from, size_t offset_bytes,
                      size_t bytes) {
    return read_buffer(device, to, from, offset_bytes, bytes, CL_FALSE);
}

rp_err rp_buffer_write_now(rp_device *device, rp_buffer *to, size_t offset_bytes, const void *from,
                           size_t bytes) {
    return write_buffer(device, to, offset_bytes, from, bytes, CL_TRUE);
}

rp_err rp_buffer_read_now(rp_device *device, void *to, const rp_buffer *from, size_t offset_bytes,
                          size_t bytes) {
    return read_buffer(device, to, from, offset_bytes, bytes, CL_TRUE);
}

rp_err rp_buffer_copy(rp_device *device, rp_buffer *to, size_t to_offset, const rp_buffer *from,
                      size_t from_offset, size_t bytes) {
    rp_err err;
    RP_TRY(check_range(to, to_offset, bytes, "copy to"));
    RP_TRY(check_range(from, from_offset, bytes, "copy from"));
    if (bytes > 0 && !device->rehearses) {
        RP_TRY(rp_cl(clEnqueueCopyBuffer(device->queue, from->memory, to->memory, from_offset,
                                         to_offset, bytes, 0, NULL, NULL),
                     "copy of %zu bytes", bytes));
    }
fail:
    return err;
}

rp_err rp_buffer_fill_zero(rp_device *device, rp_buffer *to, size_t offset_bytes, size_t bytes) {
    const cl_uchar zero = 0;
    rp_err err = check_range(to, offset_bytes, bytes, "fill");
    if (err != RP_OK || bytes == 0 || device->rehearses) {
        return err;
    }
    return rp_cl(clEnqueueFillBuffer(device->queue, to->memory, &zero, sizeof zero, offset_bytes,
                                     bytes, 0, NULL, NULL),
                 "fill of %zu bytes", bytes);
}
