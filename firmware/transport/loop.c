#include "transport/loop.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define WAIT_NS_MAX (3600 * RP_NS_PER_S)

static struct timespec timespec_of(int64_t ns) {
    return (struct timespec){.tv_sec = ns / RP_NS_PER_S, .tv_nsec = ns % RP_NS_PER_S};
}

static rp_err poll_wait(rp_loop *loop, int64_t deadline_ns, const rp_handle *handles,
                        uint32_t count) {
    struct pollfd fds[RP_LOOP_HANDLES_MAX];
    if (count > RP_LOOP_HANDLES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "loop: %u handles, at most %d", count, RP_LOOP_HANDLES_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
        fds[i] = (struct pollfd){.fd = handles[i].fd, .events = POLLIN};
    }
    const int64_t now = rp_loop_now_ns(loop);
    const int64_t left = deadline_ns > now ? deadline_ns - now : 0;
    const struct timespec timeout = timespec_of(left < WAIT_NS_MAX ? left : WAIT_NS_MAX);
    if (ppoll(fds, count, &timeout, NULL) < 0) {
        return errno == EINTR ? RP_OK : rp_fail(RP_ERR_IO, "loop: ppoll: %s", strerror(errno));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (fds[i].revents && handles[i].ready) {
            *handles[i].ready = true;
        }
    }
    return RP_OK;
}

rp_loop rp_loop_poll(const rp_clock *clock) {
    return (rp_loop){.clock = clock, .wait = poll_wait};
}

static rp_err virtual_wait(rp_loop *loop, int64_t deadline_ns, const rp_handle *handles,
                           uint32_t count) {
    (void)handles;
    (void)count;
    if (deadline_ns == INT64_MAX) {
        return rp_fail(RP_ERR_FAULT,
                       "loop: a wait without a deadline and without handles would never end");
    }
    if (deadline_ns > loop->stepped->stepped_ns) {
        loop->stepped->stepped_ns = deadline_ns;
    }
    return RP_OK;
}

rp_loop rp_loop_virtual(rp_clock *stepped) {
    RP_ASSERT(stepped->now != NULL);
    return (rp_loop){.clock = stepped, .stepped = stepped, .wait = virtual_wait};
}
