#include "planning/joint_own.h"

#include <math.h>

#include "planning/cost.h"

/* Measured seconds of a layer, with the slowdown but without the throttle, which does not divide by
 * layers. */
static double layer_s(const rp_joint *j, uint32_t place, uint32_t layer) {
    return rp_profile_slower(j->ask->profile, place) *
           (rp_sums_pass_s(&j->sums, place, layer, layer + 1, false) +
            rp_sums_pass_s(&j->sums, place, layer, layer + 1, true));
}

static double fastest_s(const rp_joint *j, uint32_t layer) {
    double least = (double)INFINITY;
    for (uint32_t k = 0; k < j->ask->run->boards; k++) {
        least = fmin(least, layer_s(j, k, layer));
    }
    return least;
}

/* Seconds of a microbatch if all layers are computed on all boards at once, each board with the
 * speed of its best layer. */
static double work_bound_s(const rp_joint *j) {
    double work = 0;
    double speed = 0;
    for (uint32_t i = 0; i < j->layers; i++) {
        work += fastest_s(j, i);
    }
    for (uint32_t k = 0; k < j->ask->run->boards; k++) {
        double best = 0;
        for (uint32_t i = 0; i < j->layers; i++) {
            const double own = layer_s(j, k, i);
            best = own > 0 ? fmax(best, fastest_s(j, i) / own) : best;
        }
        speed += best;
    }
    return speed > 0 ? work / speed : 0;
}

/* The bound is one board alone, or all boards with one transfer over the cheapest wire and boundary
 * for each microbatch. */
double rp_joint_bound_s(const rp_joint *j) {
    const rp_joint_ask *ask = j->ask;
    const uint32_t boards = ask->run->boards;
    double alone_s = (double)INFINITY;
    double across_s = (double)INFINITY;
    for (uint32_t from = 0; from < boards; from++) {
        alone_s = fmin(alone_s, rp_joint_whole_s(j, from));
        for (uint32_t to = 0; to < boards; to++) {
            for (uint32_t i = 1; from != to && i < j->layers; i++) {
                across_s =
                    fmin(across_s, rp_cost_wire_s(ask->run, ask->profile, from, to, j->bytes[i]));
            }
        }
    }
    return j->micros * fmin(alone_s, fmax(work_bound_s(j), across_s));
}
