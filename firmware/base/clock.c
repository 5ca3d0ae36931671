#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static int64_t stepped_now(const rp_clock *clock) {
    return clock->stepped_ns;
}

rp_clock rp_clock_real(void) {
    return (rp_clock){.now = NULL};
}

rp_clock rp_clock_stepped(int64_t start_ns) {
    return (rp_clock){.now = stepped_now, .stepped_ns = start_ns};
}

int64_t rp_clock_now_ns(const rp_clock *clock) {
    if (clock->now) {
        return clock->now(clock);
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * RP_NS_PER_S + now.tv_nsec;
}

int64_t rp_wall_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}
