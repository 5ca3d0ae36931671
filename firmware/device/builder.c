#include "device/builder.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/device_own.h"

struct rp_device_builder {
    rp_device *device;
    int done_fd;
    pthread_t thread;
    bool started; /* written by the owner: true from start to join */
    rp_device_build build;
    void *context;
    atomic_bool cancelled;
    atomic_bool done;
    atomic_uint parts, parts_done;
    rp_err err; /* this and the message belong to the thread until it has ended */
    char message[RP_ERR_MESSAGE_BYTES];
};

static void *run_build(void *argument) {
    rp_device_builder *b = argument;
    b->err = b->build(b, b->context);
    if (b->err != RP_OK) {
        (void)snprintf(b->message, sizeof b->message, "%s", rp_err_message());
    }
    atomic_store(&b->done, true);
    (void)eventfd_write(b->done_fd, 1);
    return NULL;
}

rp_err rp_device_builder_open(rp_arena *arena, rp_device *device, rp_device_builder **out) {
    rp_device_builder *made = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &made));
    made->device = device;
    made->done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (made->done_fd < 0) {
        return rp_fail(RP_ERR_IO, "eventfd: %s", strerror(errno));
    }
    *out = made;
fail:
    return err;
}

rp_err rp_device_builder_start(rp_device_builder *b, rp_device_build build, void *context) {
    RP_ASSERT(!b->started);
    b->build = build;
    b->context = context;
    b->err = RP_OK;
    b->message[0] = '\0';
    atomic_store(&b->cancelled, false);
    atomic_store(&b->done, false);
    rp_device_builder_say(b, 0, 0);
    if (b->device) {
        rp_ready_forget(b->device);
        b->device->build_cancelled = &b->cancelled;
        b->device->makes_ready = true;
    }
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int problem = pthread_create(&b->thread, NULL, run_build, b);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (problem != 0) {
        if (b->device) {
            b->device->build_cancelled = NULL;
            b->device->makes_ready = false;
        }
        return rp_fail(RP_ERR_IO, "the builder's thread cannot start: %s", strerror(problem));
    }
    b->started = true;
    return RP_OK;
}

void rp_device_builder_say(rp_device_builder *b, uint32_t done, uint32_t parts) {
    atomic_store(&b->parts_done, done);
    atomic_store(&b->parts, parts);
}

rp_build_parts rp_device_builder_parts(const rp_device_builder *b) {
    return (rp_build_parts){.parts = atomic_load(&b->parts), .done = atomic_load(&b->parts_done)};
}

bool rp_device_builder_is_started(const rp_device_builder *b) {
    return b->started;
}

bool rp_device_builder_is_done(const rp_device_builder *b) {
    return b->started && atomic_load(&b->done);
}

int rp_device_builder_eventfd(const rp_device_builder *b) {
    return b->done_fd;
}

rp_err rp_device_builder_join(rp_device_builder *b) {
    RP_ASSERT(b->started);
    eventfd_t count;
    (void)pthread_join(b->thread, NULL);
    (void)eventfd_read(b->done_fd, &count);
    b->started = false;
    if (b->device) {
        b->device->build_cancelled = NULL;
        b->device->makes_ready = b->device->rehearses = false;
    }
    if (b->err != RP_OK) {
        rp_err_set_message(b->message);
    }
    return b->err;
}

void rp_device_builder_cancel(rp_device_builder *b) {
    atomic_store(&b->cancelled, true);
}

bool rp_device_builder_is_cancelled(const rp_device_builder *b) {
    return atomic_load(&b->cancelled);
}

void rp_device_builder_close(rp_device_builder **pointer) {
    rp_device_builder *b = *pointer;
    *pointer = NULL;
    if (!b) {
        return;
    }
    if (b->started) {
        rp_device_builder_cancel(b);
        (void)!rp_device_builder_join(b);
    }
    (void)close(b->done_fd);
}
