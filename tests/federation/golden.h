/* Three sites with two weights: site i has the loss 0.5 sum_j a_ij (x_j - b_ij)^2 and trains by
 * its exact gradient, so that nothing is drawn. */
#ifndef RP_TESTS_FEDERATION_GOLDEN_H
#define RP_TESTS_FEDERATION_GOLDEN_H

#include <stdint.h>

#include "federation/rule.h"

enum { SITES = 3, WEIGHTS = 2 };

static const double curvature[SITES][WEIGHTS] = {{1.0, 0.5}, {0.2, 2.0}, {0.6, 1.0}};
static const double optimum[SITES][WEIGHTS] = {{3.0, 0.0}, {-1.0, 1.0}, {0.5, -3.0}};
static const double samples[SITES] = {10, 30, 60};
static const uint32_t unequal[SITES] = {2, 5, 3};
static const uint32_t equal[SITES] = {4, 4, 4};
static const double start[WEIGHTS] = {1.0, -2.0};
static const double RATE = 0.1;

/* SGD with momentum in PyTorch's form, from x. */
static inline void train_site(uint32_t site, const double *x, uint32_t steps, double momentum,
                              double *y) {
    for (uint32_t j = 0; j < WEIGHTS; j++) {
        double v = 0;
        y[j] = x[j];
        for (uint32_t k = 0; k < steps; k++) {
            v = momentum * v + curvature[site][j] * (y[j] - optimum[site][j]);
            y[j] -= RATE * v;
        }
    }
}

/* The sum over the steps k of (1 - r^k) / (1 - r), by Wang et al.'s definition. */
static inline double sum_of_steps(uint32_t steps, double r) {
    double sum = 0;
    double power = 1;
    for (uint32_t k = 1; k <= steps; k++) {
        power *= r;
        sum += (1 - power) / (1 - r);
    }
    return sum;
}

#endif
