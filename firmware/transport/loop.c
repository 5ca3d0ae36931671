#include "transport/loop.h"

#include <zmq.h>

enum { WAIT_MS_MAX = 3600 * 1000 };

static bool is_repeated(const zmq_pollitem_t *items, int count, const rp_handle *handle) {
    for (int i = 0; handle->shared && i < count; i++) {
        if (items[i].socket == handle->socket) {
            return true;
        }
    }
    return false;
}

static rp_err poll_wait(rp_loop *loop, int64_t deadline_ns, const rp_handle *handles,
                        uint32_t count) {
    zmq_pollitem_t items[RP_LOOP_HANDLES_MAX];
    int used = 0;
    if (count > RP_LOOP_HANDLES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "loop: %u handles, at most %d", count, RP_LOOP_HANDLES_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
        const rp_handle *h = &handles[i];
        const short events = (short)(h->write ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN);
        if (!is_repeated(items, used, h)) {
            items[used++] = (zmq_pollitem_t){.socket = h->socket, .fd = h->fd, .events = events};
        }
    }
    const int64_t now = rp_loop_now_ns(loop);
    const int64_t left = deadline_ns > now ? deadline_ns - now : 0;
    int64_t wait_ms = left / RP_NS_PER_MS + (left % RP_NS_PER_MS != 0);
    wait_ms = wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX;
    if (zmq_poll(items, used, (long)wait_ms) < 0 && zmq_errno() != EINTR) {
        return rp_fail(RP_ERR_IO, "loop: zmq_poll: %s", zmq_strerror(zmq_errno()));
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
        return rp_fail(RP_ERR_FAULT, "loop: nothing is due, so that nothing would ever happen");
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
