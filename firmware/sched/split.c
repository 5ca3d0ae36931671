#include "sched/split.h"

#include <math.h>

void rp_sched_split_default(rp_sched_shape *shape) {
    for (uint32_t k = 0; k < shape->stages && k < RP_SPLIT_STAGES_MAX; k++) {
        shape->ahead[k] =
            (uint16_t)(shape->stages - k + rp_sched_split_count(shape->whole, k, shape->stages));
    }
}

/* ---- nodes and roles ------------------------------------------------------------------------- */

uint32_t rp_sched_split_count(uint32_t whole, uint32_t first, uint32_t end) {
    uint32_t count = 0;
    for (uint32_t k = first; k < end; k++) {
        count += rp_sched_is_split(whole, k);
    }
    return count;
}

uint32_t rp_sched_split_backward(uint32_t stages, uint32_t whole, uint32_t stage) {
    return rp_sched_is_split(whole, stage) ? stages + rp_sched_split_count(whole, stage + 1, stages)
                                           : stage;
}

uint32_t rp_sched_split_stage(uint32_t stages, uint32_t whole, uint32_t node) {
    uint32_t stage = node;
    if (node >= stages) {
        stage = stages - 1;
        while (stage > 0 && rp_sched_split_backward(stages, whole, stage) != node) {
            stage--;
        }
    }
    return stage;
}

rp_role rp_sched_split_role(uint32_t stages, uint32_t whole, uint32_t node) {
    return node >= stages                   ? RP_ROLE_BACKWARD
           : rp_sched_is_split(whole, node) ? RP_ROLE_FORWARD
                                            : RP_ROLE_BOTH;
}

static void add_wire(uint32_t from, uint32_t to, uint32_t out[][2], uint32_t *count) {
    for (uint32_t i = 0; i < *count; i++) {
        if ((out[i][0] == from && out[i][1] == to) || (out[i][0] == to && out[i][1] == from)) {
            return;
        }
    }
    if (from != to) {
        out[*count][0] = from;
        out[(*count)++][1] = to;
    }
}

uint32_t rp_sched_split_wires(uint32_t stages, uint32_t whole, uint32_t out[][2]) {
    const uint32_t last = stages - 1;
    uint32_t count = 0;
    for (uint32_t k = 0; k < last; k++) {
        add_wire(k, k + 1, out, &count);
    }
    add_wire(last, rp_sched_split_backward(stages, whole, last), out, &count);
    for (uint32_t k = last; k-- > 0;) {
        add_wire(rp_sched_split_backward(stages, whole, k + 1),
                 rp_sched_split_backward(stages, whole, k), out, &count);
    }
    for (uint32_t k = 0; k < last; k++) {
        add_wire(k, rp_sched_split_backward(stages, whole, k), out, &count);
    }
    return count;
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

static double larger_of(double a, double b) {
    return a > b ? a : b;
}

double rp_sched_split_period(const rp_split_times *t) {
    double period = 0;
    for (uint32_t k = 0; k < t->stages; k++) {
        const bool split = rp_sched_is_split(t->whole, k);
        const double forward = time_of(t->forward, k);
        const double backward = time_of(t->backward, k);
        const double compute = split ? larger_of(forward, backward) : forward + backward;
        const double beside = split ? larger_of(time_of(t->stash, k), time_of(t->weight, k)) : 0;
        period = larger_of(period, larger_of(compute, beside));
        if (k + 1 < t->stages) {
            period =
                larger_of(period, larger_of(time_of(t->activation, k), time_of(t->gradient, k)));
        }
    }
    return period;
}

/* A constraint: op `to` starts at least `time` after op `from` of `steps` steps earlier. */
typedef struct {
    uint32_t from, to; /* forward of stage k: 2 k; its backward with the update: 2 k + 1 */
    double time;
    double steps;
} wait;

enum { WAITS_A_STAGE = 7 };

static uint32_t list_waits(const rp_split_times *t, const uint16_t *ahead, uint32_t first,
                           wait *out) {
    uint32_t count = 0;
    for (uint32_t k = first; k < t->stages; k++) {
        const bool split = rp_sched_is_split(t->whole, k);
        const uint32_t f = 2 * k;
        const uint32_t b = f + 1;
        const double forward = time_of(t->forward, k);
        const double backward = time_of(t->backward, k);
        const double stash = split ? time_of(t->stash, k) + t->delay : 0;
        const double weight = split ? time_of(t->weight, k) + t->delay : 0;
        out[count++] = (wait){f, f, forward, 1};
        out[count++] = (wait){b, b, backward, 1};
        out[count++] = (wait){f, b, forward + stash, 0};
        out[count++] = (wait){b, f, backward + weight, ahead[k]};
        if (!split) { /* its list has that forward before that backward */
            out[count++] = (wait){f, b, forward, 1.0 - ahead[k]};
        }
        if (k + 1 < t->stages) {
            const double above = time_of(t->backward, k + 1);
            out[count++] = (wait){f, f + 2, forward + time_of(t->activation, k) + t->delay, 0};
            out[count++] = (wait){b + 2, b, above + time_of(t->gradient, k) + t->delay, 0};
        }
    }
    return count;
}

/* Whether the stages from `first` on can start an op of each kind in every period. They can if no
 * cycle of constraints takes longer than as many periods as it spans steps: a solution of the
 * constraints then exists (Bellman-Ford). */
static bool keeps_period(const rp_split_times *t, const uint16_t *ahead, uint32_t first,
                         double period) {
    wait row[WAITS_A_STAGE * RP_SPLIT_STAGES_MAX];
    double start[2 * RP_SPLIT_STAGES_MAX] = {0};
    const uint32_t count = list_waits(t, ahead, first, row);
    bool moved = true;
    for (uint32_t round = 0; moved && round <= 2 * t->stages; round++) {
        moved = false;
        for (uint32_t i = 0; i < count; i++) {
            const double at = start[row[i].from] + row[i].time - row[i].steps * period;
            if (at > start[row[i].to] + 1e-9 * period) { /* ignore rounding errors */
                start[row[i].to] = at;
                moved = true;
            }
        }
    }
    return !moved;
}

void rp_sched_split_ahead(const rp_split_times *t, uint16_t most,
                          uint16_t out[RP_SPLIT_STAGES_MAX]) {
    const double period = rp_sched_split_period(t);
    double trip = 0; /* from the start of the stage's forward to the end of its update */
    uint16_t above = 1;
    RP_ASSERT(t->stages <= RP_SPLIT_STAGES_MAX);
    for (uint32_t k = t->stages; k-- > 0;) {
        const bool last = k + 1 == t->stages;
        const bool split = rp_sched_is_split(t->whole, k);
        const double stash = split ? time_of(t->stash, k) + t->delay : 0;
        const double weight = split ? time_of(t->weight, k) + t->delay : 0;
        const double over =
            last ? 0 : time_of(t->activation, k) + trip + time_of(t->gradient, k) + 2 * t->delay;
        trip = time_of(t->forward, k) + larger_of(stash, over) + time_of(t->backward, k);
        /* tolerates rounding errors in a sum that is a whole number of periods */
        const double periods = period > 0 ? ceil((trip + weight) / period * (1 - 1e-12)) : 1;
        above = !(periods < most) ? most : periods > above ? (uint16_t)periods : above;
        out[k] = above;
        while (t->whole && period > 0 && out[k] < most && !keeps_period(t, out, k, period)) {
            out[k]++;
        }
        above = out[k];
    }
}
