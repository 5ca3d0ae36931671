/* Problems and genomes that are drawn for tests. */
#ifndef RP_TESTS_PLANNERS_DRAWN_H
#define RP_TESTS_PLANNERS_DRAWN_H

#include "base/rng.h"
#include "planners/instance.h"

static inline rp_genome drawn_genome(const rp_problem *p, rp_rng *rng) {
    rp_genome out = {0};
    for (uint32_t k = 0; k < p->stages; k++) {
        out.gene[RP_WAY_FORWARD][k] = (uint8_t)rp_rng_below(rng, p->size_count);
        out.gene[RP_WAY_BACKWARD][k] = (uint8_t)rp_rng_below(rng, p->size_count);
    }
    rp_problem_hold(p, &out);
    return out;
}

/* Some sizes that need not divide each other nor the step; the last one is all of it. */
static inline void draw_sizes(rp_problem *p, rp_rng *rng) {
    p->size_count = 0;
    for (uint32_t size = 1; size < p->samples; size++) {
        if (p->size_count + 1 < RP_PLANNERS_SIZES_MAX && rp_rng_below(rng, 3) == 0) {
            p->size[p->size_count++] = size;
        }
    }
    p->size[p->size_count++] = p->samples;
}

/* Costs that are no line, rising by steps of any height; wires and latencies each way of their own.
 */
static inline void draw_costs(rp_problem *p, rp_rng *rng) {
    double *const table[] = {p->pass[0], p->pass[1], p->send[0], p->send[1]};
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < p->stages; k++) {
            double *row = table[i] + k * (p->samples + 1);
            for (uint32_t b = 1; b <= p->samples; b++) {
                const bool flat = rp_rng_below(rng, 3) == 0;
                row[b] = row[b - 1] + (flat ? 0 : (double)rp_rng_uniform(rng));
            }
        }
    }
    for (uint32_t k = 0; k < p->stages; k++) {
        p->latency[0][k] = (double)rp_rng_uniform(rng);
        p->latency[1][k] = (double)rp_rng_uniform(rng);
        p->update[k] = (double)rp_rng_uniform(rng);
    }
}

static inline void draw_held(rp_problem *p, rp_rng *rng) {
    for (uint32_t k = 0; k < p->stages; k++) {
        const uint32_t size = rp_rng_below(rng, p->size_count);
        if (rp_rng_below(rng, 4) == 0 && p->samples % p->size[size] == 0) {
            p->held[k] = (uint8_t)size;
        }
    }
}

#endif
