#include "predict/score.h"

#include <math.h>

/* The largest output; false: one is not finite. */
static bool find_most(const float *y, uint32_t count, double *most) {
    *most = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        if (!isfinite(y[i])) {
            return false;
        }
        *most = (double)y[i] > *most ? (double)y[i] : *most;
    }
    return true;
}

bool rp_score_log_sum(const float *y, uint32_t count, double *out) {
    double most;
    double sum = 0;
    if (!find_most(y, count, &most)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        sum += exp((double)y[i] - most);
    }
    *out = most + log(sum);
    return true;
}

bool rp_score_softmax(const float *y, uint32_t count, double *p) {
    double most;
    double sum = 0;
    if (!find_most(y, count, &most)) {
        return false;
    }
    for (uint32_t i = 0; i < count && p; i++) {
        p[i] = exp((double)y[i] - most);
        sum += p[i];
    }
    for (uint32_t i = 0; i < count && p; i++) {
        p[i] /= sum;
    }
    return true;
}

void rp_score_top(const float *y, uint32_t count, uint32_t top, uint32_t *index) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = kept;
        while (at > 0 && y[index[at - 1]] < y[i]) {
            at--;
        }
        if (at == top) {
            continue;
        }
        kept += kept < top;
        for (uint32_t k = kept - 1; k > at; k--) {
            index[k] = index[k - 1];
        }
        index[at] = i;
    }
}
