#include "lanes/round.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* The run waits for this lane. */
static bool is_waited_for(const rp_round_facts *facts, const rp_round_lane *lane) {
    return lane->condition == RP_LANE_AT_WORK && lane->missed >= lane->may_lag &&
           facts->waited_ns < facts->bound_ns;
}

void rp_round_decide(const rp_round_facts *facts, rp_round_decision *out) {
    bool wait = false;
    *out = (rp_round_decision){0};
    for (uint32_t i = 0; i < facts->count; i++) {
        const rp_round_lane *lane = &facts->lane[i];
        wait = wait || is_waited_for(facts, lane);
        if (lane->condition == RP_LANE_WAITS) {
            out->lag[i] = lane->missed;
            out->alpha[i] = facts->alpha / (1 + lane->missed);
            out->members++;
        }
    }
    out->closes = out->members > 0 && !wait;
}

static int by_size(const void *left, const void *right) {
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int64_t rp_round_p95(const int64_t *ns, uint32_t count) {
    int64_t sorted[RP_ROUND_TIMES_MAX];
    RP_ASSERT(count <= RP_ROUND_TIMES_MAX);
    if (count == 0) {
        return 0;
    }
    memcpy(sorted, ns, count * sizeof *ns);
    qsort(sorted, count, sizeof *sorted, by_size);
    return sorted[(count * 95 + 99) / 100 - 1];
}

uint32_t rp_round_lag(const int64_t *delay_ns, uint32_t delays, const int64_t *round_ns,
                      uint32_t rounds) {
    const int64_t round = rp_round_p95(round_ns, rounds);
    const int64_t delay = rp_round_p95(delay_ns, delays);
    const bool known = delays >= RP_ROUND_KNOWN && round > 0 && delay >= RP_ROUND_PATIENCE_NS;
    const int64_t late = known ? delay / round : 0;
    return late > RP_ROUND_LAG_MOST ? RP_ROUND_LAG_MOST : (uint32_t)late;
}
