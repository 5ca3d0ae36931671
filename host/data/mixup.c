#include "data/mixup.h"

#include <math.h>

/* Uniform in (0, 1), 53 bits. */
static double draw_uniform(rp_rng *rng) {
    const uint64_t high = rp_rng_u32(rng) >> 5;
    const uint64_t low = rp_rng_u32(rng) >> 6;
    return ((double)(high << 26 | low) + 0.5) * 0x1p-53;
}

static double draw_normal(rp_rng *rng) {
    const double radius = sqrt(-2 * log(draw_uniform(rng)));
    return radius * cos(2 * 3.14159265358979323846 * draw_uniform(rng));
}

/* Gamma distribution of scale 1; shape above 1. */
static double draw_gamma(rp_rng *rng, double shape) {
    const double d = shape - 1.0 / 3;
    const double c = 1 / sqrt(9 * d);
    for (;;) {
        const double z = draw_normal(rng);
        const double v = (1 + c * z) * (1 + c * z) * (1 + c * z);
        if (v > 0 && log(draw_uniform(rng)) < 0.5 * z * z + d - d * v + d * log(v)) {
            return d * v;
        }
    }
}

double rp_mixup_share(rp_rng *rng, double alpha) {
    if (alpha > 1) {
        const double a = draw_gamma(rng, alpha);
        return a / (a + draw_gamma(rng, alpha));
    }
    for (;;) { /* in logarithms, because with a small alpha the powers underflow */
        const double a = log(draw_uniform(rng)) / alpha;
        const double b = log(draw_uniform(rng)) / alpha;
        const double most = a > b ? a : b;
        const double sum = most + log(exp(a - most) + exp(b - most));
        if (sum <= 0) {
            return exp(a - sum);
        }
    }
}

void rp_mixup_blend(float *x, const float *other, size_t count, double share) {
    const float mine = (float)share;
    const float its = (float)(1 - share);
    for (size_t i = 0; i < count; i++) {
        x[i] = mine * x[i] + its * other[i];
    }
}
