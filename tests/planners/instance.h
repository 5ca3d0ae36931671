/* Random rings, for comparisons and tests. */
#ifndef RP_TESTS_PLANNERS_INSTANCE_H
#define RP_TESTS_PLANNERS_INSTANCE_H

#include <math.h>

#include "base/rng.h"
#include "planners/problem.h"

/* How a ring is drawn. METHODS leaves open what the units of a transfer are and what a backward
 * costs; here: */
typedef struct {
    uint32_t stages_min, stages_max; /* METHODS: 4 to 16 */
    uint32_t samples;                /* METHODS: 32 and 128 */
    double backward;                 /* times the forward, both the base and a sample's cost */
    bool own_backward;               /* the backward's base and sample costs are drawn like the
                                        forward's, then multiplied */
    double latency;                  /* up to so many times the mean compute; 0: none */
} instance_draw;

/* A row of a table of the problem: base_s + samples * sample_s, and 0 for no samples. */
static inline void fill_row(const rp_problem *p, double *table, uint32_t stage, double base_s,
                            double sample_s) {
    double *row = table + (size_t)stage * (p->samples + 1);
    row[0] = 0;
    for (uint32_t b = 1; b <= p->samples; b++) {
        row[b] = base_s + b * sample_s;
    }
}

static inline double log_uniform(rp_rng *rng, double low, double high) {
    return low * pow(high / low, (double)rp_rng_uniform(rng));
}

static inline void draw_stage(rp_rng *rng, const instance_draw *draw, const rp_problem *p,
                              uint32_t stage) {
    double base = log_uniform(rng, 0.1, 10);
    double sample = 0.25 * log_uniform(rng, 0.1, 10);
    fill_row(p, p->pass[RP_WAY_FORWARD], stage, base, sample);
    if (draw->own_backward) {
        base = log_uniform(rng, 0.1, 10);
        sample = 0.25 * log_uniform(rng, 0.1, 10);
    }
    fill_row(p, p->pass[RP_WAY_BACKWARD], stage, draw->backward * base, draw->backward * sample);
}

/* Of a line a + c b through its costs of one sample and of all. */
static inline void line_of(const rp_problem *p, uint32_t stage, double *base, double *sample) {
    const double *row = p->pass[RP_WAY_FORWARD] + (size_t)stage * (p->samples + 1);
    *sample = p->samples > 1 ? (row[p->samples] - row[1]) / (p->samples - 1) : row[1];
    *base = row[1] - *sample;
}

/* Seconds of stage l for b samples: a_l + c_l b, a_l log-uniform in 0.1 to 10 and c_l 0.25 times
 * such a number; a sample on wire l takes log-uniform 0.1 to 10 times the mean of all c_l, both
 * ways the same. source  METHODS 10.4, "Instances for comparison" errors  of rp_problem_open() */
static inline rp_err draw_instance(rp_arena *arena, rp_rng *rng, const instance_draw *draw,
                                   rp_problem *out) {
    const uint32_t stages =
        draw->stages_min + rp_rng_below(rng, draw->stages_max - draw->stages_min + 1);
    double mean = 0;
    rp_err err;
    RP_TRY(rp_problem_open(arena, stages, draw->samples, out));
    for (uint32_t k = 0; k < stages; k++) {
        double base;
        double sample;
        draw_stage(rng, draw, out, k);
        line_of(out, k, &base, &sample);
        mean += sample / stages;
    }
    for (uint32_t k = 0; k + 1 < stages; k++) {
        const double wire = mean * log_uniform(rng, 0.1, 10);
        const double latency = draw->latency * mean * (double)rp_rng_uniform(rng);
        fill_row(out, out->send[RP_WAY_FORWARD], k, 0, wire);
        fill_row(out, out->send[RP_WAY_BACKWARD], k + 1, 0, wire);
        out->latency[RP_WAY_FORWARD][k] = out->latency[RP_WAY_BACKWARD][k + 1] = latency;
    }
fail:
    return err;
}

/* Standard deviation of log10(a_l / c_l) over the stages' forwards. */
static inline double instance_spread(const rp_problem *p) {
    double sum = 0;
    double squares = 0;
    for (uint32_t k = 0; k < p->stages; k++) {
        double base;
        double sample;
        line_of(p, k, &base, &sample);
        const double ratio = log10(fmax(base, 1e-12) / fmax(sample, 1e-12));
        sum += ratio;
        squares += ratio * ratio;
    }
    const double mean = sum / p->stages;
    return sqrt(fmax(0, squares / p->stages - mean * mean));
}

#endif
