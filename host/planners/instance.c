#include "planners/instance.h"

#include <math.h>

static double log_uniform(rp_rng *rng, double low, double high) {
    return low * pow(high / low, (double)rp_rng_uniform(rng));
}

static void draw_stage(rp_rng *rng, const rp_instance_draw *draw, const rp_problem *p,
                       uint32_t stage) {
    double base = log_uniform(rng, 0.1, 10);
    double sample = 0.25 * log_uniform(rng, 0.1, 10);
    rp_problem_affine(p, p->pass[RP_WAY_FORWARD], stage, base, sample);
    if (draw->own_backward) {
        base = log_uniform(rng, 0.1, 10);
        sample = 0.25 * log_uniform(rng, 0.1, 10);
    }
    rp_problem_affine(p, p->pass[RP_WAY_BACKWARD], stage, draw->backward * base,
                      draw->backward * sample);
}

/* Of a line a + c b through its costs of one sample and of all. */
static void line_of(const rp_problem *p, uint32_t stage, double *base, double *sample) {
    const double *row = p->pass[RP_WAY_FORWARD] + (size_t)stage * (p->samples + 1);
    *sample = p->samples > 1 ? (row[p->samples] - row[1]) / (p->samples - 1) : row[1];
    *base = row[1] - *sample;
}

rp_err rp_instance_random(rp_arena *arena, rp_rng *rng, const rp_instance_draw *draw,
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
        rp_problem_affine(out, out->send[RP_WAY_FORWARD], k, 0, wire);
        rp_problem_affine(out, out->send[RP_WAY_BACKWARD], k + 1, 0, wire);
        out->latency[RP_WAY_FORWARD][k] = out->latency[RP_WAY_BACKWARD][k + 1] = latency;
    }
fail:
    return err;
}

double rp_instance_spread(const rp_problem *p) {
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
