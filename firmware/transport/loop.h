/* The loop port: what time it is, and sleeping until something happens. Everything else that agent
 * and host do is a step function that takes `now`.
 *
 * poll     real: descriptors
 * virtual  for simulations: nothing sleeps, the stepped clock is set to the deadline */
#ifndef RP_TRANSPORT_LOOP_H
#define RP_TRANSPORT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

enum { RP_PORT_HANDLES_MAX = 3, RP_LOOP_HANDLES_MAX = 264 };

typedef struct {
    int fd;      /* wakes when it is readable; may come twice in a list */
    bool *ready; /* set to true when it is, never to false; NULL = nobody asks */
} rp_handle;

typedef struct rp_loop rp_loop;

struct rp_loop {
    const rp_clock *clock;
    rp_clock *stepped; /* virtual: the same clock, which wait() moves */
    /* Returns when a handle is ready, at `deadline_ns` of the clock, or after a signal; all three
     * are success, and it does not say which: whoever may have something to do is stepped.
     * Handles are borrowed during the call. errors IO, LIMIT (handles) */
    rp_err (*wait)(rp_loop *loop, int64_t deadline_ns, const rp_handle *handles, uint32_t count);
};

/* With a stepped clock it sleeps for as long as the clock has to go, and the clock does not move:
 * for tests of real sockets. */
rp_loop rp_loop_poll(const rp_clock *clock);

/* Sets `stepped` to the deadline if that is later. Handles are not looked at: ports of a simulation
 * have deadlines only. errors FAULT: the deadline is INT64_MAX, so the wait would never end
 */
rp_loop rp_loop_virtual(rp_clock *stepped);

static inline int64_t rp_loop_now_ns(const rp_loop *loop) {
    return rp_clock_now_ns(loop->clock);
}

#endif
