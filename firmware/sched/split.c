#include "sched/split.h"

#include <math.h>

void rp_sched_split_default(rp_sched_shape *shape) {
    for (uint32_t k = 0; k < shape->stages && k < RP_SPLIT_STAGES_MAX; k++) {
        shape->ahead[k] = (uint16_t)(2 * (shape->stages - k));
    }
}

/* ---- versions -------------------------------------------------------------------------------- */

static uint64_t publish_of(const rp_sched_shape *shape) {
    return shape->publish > 0 ? shape->publish : 1;
}

uint64_t rp_sched_split_version(const rp_sched_shape *shape, uint64_t step) {
    const uint64_t ahead = rp_sched_ahead(shape);
    RP_ASSERT(ahead > 0);
    const uint64_t every = publish_of(shape);
    const uint64_t seen = step + 1 > ahead ? (step + 1 - ahead) / every * every : 0;
    return seen > shape->step_first ? seen : shape->step_first;
}

bool rp_sched_split_takes(const rp_sched_shape *shape, uint64_t step) {
    return step > shape->step_first &&
           rp_sched_split_version(shape, step) > rp_sched_split_version(shape, step - 1);
}

uint64_t rp_sched_split_taker(const rp_sched_shape *shape, uint64_t step) {
    const uint64_t taker = step + rp_sched_ahead(shape);
    return taker < shape->step_end && rp_sched_split_takes(shape, taker) &&
                   rp_sched_split_version(shape, taker) == step + 1
               ? taker
               : UINT64_MAX;
}

uint32_t rp_sched_split_staleness(const rp_sched_shape *shape) {
    return rp_sched_ahead(shape) - 1 + (uint32_t)(publish_of(shape) - 1);
}

uint32_t rp_sched_split_versions(const rp_sched_shape *shape) {
    const uint64_t every = publish_of(shape);
    const uint64_t ahead = rp_sched_ahead(shape);
    rp_sched_shape run = *shape;
    uint64_t most = 0;
    run.step_first = 0;
    for (uint64_t step = ahead; step < ahead + every; step++) { /* at its backward */
        const uint64_t oldest = rp_sched_split_version(&run, step);
        const uint64_t newest = rp_sched_split_version(&run, step + ahead - 1);
        const uint64_t kept = (newest - oldest) / every + 1 + (newest < step);
        most = kept > most ? kept : most;
    }
    return (uint32_t)most;
}

/* ---- the smallest ahead ---------------------------------------------------------------------- */

static double time_of(const double *times, uint32_t k) {
    return times ? times[k] : 0;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

double rp_sched_split_period(const rp_split_times *t) {
    double period = 0;
    for (uint32_t k = 0; k < t->stages; k++) {
        const double compute = larger(time_of(t->forward, k), time_of(t->backward, k));
        const double beside = larger(time_of(t->stash, k), time_of(t->weight, k));
        period = larger(period, larger(compute, beside));
        if (k + 1 < t->stages) {
            period = larger(period, larger(time_of(t->activation, k), time_of(t->gradient, k)));
        }
    }
    return period;
}

void rp_sched_split_ahead(const rp_split_times *t, uint16_t most,
                          uint16_t out[RP_SPLIT_STAGES_MAX]) {
    const double period = rp_sched_split_period(t);
    double trip = 0; /* from the start of the stage's forward to the end of its update */
    uint16_t above = 1;
    RP_ASSERT(t->stages <= RP_SPLIT_STAGES_MAX);
    for (uint32_t k = t->stages; k-- > 0;) {
        const bool last = k + 1 == t->stages;
        const double over =
            last ? 0 : time_of(t->activation, k) + trip + time_of(t->gradient, k) + 2 * t->delay;
        trip = time_of(t->forward, k) + larger(time_of(t->stash, k) + t->delay, over) +
               time_of(t->backward, k);
        /* a sum that is a whole number of periods but for its last bits */
        const double periods =
            period > 0 ? ceil((trip + time_of(t->weight, k) + t->delay) / period * (1 - 1e-12)) : 1;
        above = !(periods < most) ? most : periods > above ? (uint16_t)periods : above;
        out[k] = above;
    }
}
