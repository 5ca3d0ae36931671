#include "sched/op_limit.h"

#include <stdbool.h>

#include "base/clock.h"

enum { TIMES = 200, GROWTH = 8 };

static const int64_t LEAST_NS = 30 * RP_NS_PER_S;
/* For the first op, which may compile kernels, when nothing is known of the device's speed. */
static const int64_t FIRST_NS = 300 * RP_NS_PER_S;

int64_t rp_op_limit_ns(int64_t longest_ns) {
    if (longest_ns <= 0) {
        return FIRST_NS;
    }
    if (longest_ns <= LEAST_NS / TIMES) {
        return LEAST_NS;
    }
    return longest_ns < INT64_MAX / TIMES ? TIMES * longest_ns : INT64_MAX;
}

int64_t rp_op_longest_ns(int64_t longest_ns, int64_t took_ns) {
    const bool is_stall = longest_ns > 0 && took_ns / GROWTH > longest_ns;
    const int64_t counts_ns = is_stall ? GROWTH * longest_ns : took_ns > 0 ? took_ns : 1;
    return counts_ns > longest_ns ? counts_ns : longest_ns;
}
