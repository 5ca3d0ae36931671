/* The loop port: the time, and sleeping until something happens. Everything else in agent and host
 * is a step function that takes `now`.
 *
 *   poll     real: waits on descriptors
 *   virtual  for simulations: does not sleep but sets the stepped clock to the deadline */
#ifndef RP_TRANSPORT_LOOP_H
#define RP_TRANSPORT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

enum { RP_PORT_HANDLES_MAX = 3, RP_LOOP_HANDLES_MAX = 264 };

typedef struct {
    int fd;      /* wakes the loop when it is readable; may occur twice in a list */
    bool *ready; /* set to true when fd is readable, never to false; may be NULL */
} rp_handle;

typedef struct rp_loop rp_loop;

struct rp_loop {
    const rp_clock *clock;
    rp_clock *stepped; /* virtual: the same clock, which wait() moves */
    /* Returns success when a handle is ready, at `deadline_ns` of the clock, or after a signal, and
     * does not say which: the caller steps everything that may have work. Handles are borrowed
     * during the call. errors IO, LIMIT (handles) */
    rp_err (*wait)(rp_loop *loop, int64_t deadline_ns, const rp_handle *handles, uint32_t count);
};

/* With a stepped clock the loop really sleeps until the deadline but does not move the clock: for
 * tests of real sockets. */
rp_loop rp_loop_poll(const rp_clock *clock);

/* Sets `stepped` to the deadline if that is later. Handles are ignored, because ports of a
 * simulation have only deadlines.
 * errors  FAULT: the deadline is INT64_MAX, so the wait would never end */
rp_loop rp_loop_virtual(rp_clock *stepped);

static inline int64_t rp_loop_now_ns(const rp_loop *loop) {
    return rp_clock_now_ns(loop->clock);
}

#endif
