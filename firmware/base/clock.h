/* Time is an argument: the real monotonic clock, or one that a test or the simulator steps. */
#ifndef RP_BASE_CLOCK_H
#define RP_BASE_CLOCK_H

#include <stdint.h>

typedef struct rp_clock {
    int64_t (*now)(const struct rp_clock *clock); /* NULL: the real clock */
    /* Time of a stepped clock. Atomic, because a builder's thread reads what the loop steps. */
    _Atomic int64_t stepped_ns;
} rp_clock;

#define RP_NS_PER_MS INT64_C(1000000)
#define RP_NS_PER_S INT64_C(1000000000)

rp_clock rp_clock_real(void);
rp_clock rp_clock_stepped(int64_t start_ns);
int64_t rp_clock_now_ns(const rp_clock *clock);
/* Seconds since 1970, for times that outlive a process. The system's date may jump. */
int64_t rp_wall_s(void);

#endif
