/* Fences: points in the queue, and how their passing is noticed.
 *
 * A CPU's driver calls back at once, from the thread that ended the command; another thread would
 * make a step of small ops 4 to 11 % longer. Other drivers may call back much too late (NVIDIA's:
 * 20 ms), so a thread of the device waits for the events there. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/cl.h"
#include "device/device_own.h"

/* ---- passing --------------------------------------------------------------------------------- */

/* Runs in another thread than the owner's. After it the fence belongs to the owner. */
static void pass_fence(rp_fence_state *state, cl_int status) {
    const rp_clock clock = rp_clock_real();
    atomic_store(&state->done_ns, rp_clock_now_ns(&clock));
    atomic_store(&state->status, status);
    /* If the counter is full, it is readable already. */
    (void)eventfd_write(state->device->event_fd, 1);
    atomic_store(&state->watched, 0);
}

/* Runs in a thread of the driver, so it must not call OpenCL, log or lock. */
static void CL_CALLBACK on_passed(cl_event event, cl_int status, void *data) {
    (void)event;
    pass_fence(data, status < 0 ? status : 0);
}

/* Waits, and returns 0 or the error of the work before the event. */
static cl_int await_event(cl_event event) {
    cl_int status = CL_COMPLETE;
    const cl_int code = clWaitForEvents(1, &event);
    if (code == CL_SUCCESS) {
        return CL_COMPLETE;
    }
    (void)clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return status < 0 ? status : code;
}

/* Waits for the fences in the order of the queue, until the entry NULL. */
static void *wait_for_fences(void *argument) {
    rp_fence_waiter *waiter = argument;
    for (uint32_t taken = 0;; taken++) {
        while (sem_wait(&waiter->added) != 0) {
            RP_ASSERT(errno == EINTR);
        }
        rp_fence_state *state = waiter->entry[taken % RP_FENCE_ENTRIES];
        if (!state) {
            return NULL;
        }
        pass_fence(state, await_event(state->event));
    }
}

/* The pool has fewer slots than there are entries, so an entry is free again when its turn comes.
 */
static void add_entry(rp_fence_waiter *waiter, rp_fence_state *state) {
    waiter->entry[waiter->added_count++ % RP_FENCE_ENTRIES] = state;
    (void)sem_post(&waiter->added);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static rp_err start_waiter(rp_fence_waiter *waiter) {
    sigset_t all;
    sigset_t before;
    waiter->added_count = 0;
    (void)sem_init(&waiter->added, 0, 0);
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int problem = pthread_create(&waiter->thread, NULL, wait_for_fences, waiter);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    waiter->started = problem == 0;
    return problem == 0
               ? RP_OK
               : rp_fail(RP_ERR_IO, "a thread for fences cannot start: %s", strerror(problem));
}

static void end_waiter(rp_fence_waiter *waiter) {
    if (waiter->started) {
        add_entry(waiter, NULL);
        (void)pthread_join(waiter->thread, NULL);
        (void)sem_destroy(&waiter->added);
        waiter->started = false;
    }
}

rp_err rp_fences_open(rp_device *device) {
    device->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (device->event_fd < 0) {
        return rp_fail(RP_ERR_IO, "eventfd: %s", strerror(errno));
    }
    return device->facts.cpu ? RP_OK : start_waiter(&device->waiter);
}

static void reap_fence(rp_fence_state *state) {
    if (state->event && state->released && atomic_load(&state->watched) == 0) {
        (void)clReleaseEvent(state->event);
        state->event = NULL;
    }
}

/* clFinish has returned, but a callback may still run for a moment. */
static void release_all(rp_device *device) {
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

void rp_fences_close(rp_device *device) {
    end_waiter(&device->waiter);
    release_all(device);
    if (device->event_fd >= 0) {
        (void)close(device->event_fd);
        device->event_fd = -1;
    }
}

/* ---- fences ---------------------------------------------------------------------------------- */

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
    const bool waits = device->waiter.started;
    cl_event event;
    cl_int code = clEnqueueMarkerWithWaitList(device->queue, 0, NULL, &event);
    if (code != CL_SUCCESS) {
        return rp_cl(code, "fence");
    }
    state->device = device;
    state->released = false;
    atomic_store(&state->status, 1);
    atomic_store(&state->watched, 1);
    state->event = event;
    /* Before the flush, because oclgrind calls back only for an event that has not passed. */
    code = waits ? CL_SUCCESS : clSetEventCallback(event, CL_COMPLETE, on_passed, state);
    if (code != CL_SUCCESS) {
        (void)clReleaseEvent(event);
        state->event = NULL;
        return rp_cl(code, "callback of a fence");
    }
    out->state = state;
    code = clFlush(device->queue);
    if (waits) {
        add_entry(&device->waiter, state);
    }
    return rp_cl(code, "flush");
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

int rp_device_eventfd(const rp_device *device) {
    return device->event_fd;
}
