#include "data/norm.h"

#include <math.h>
#include <string.h>

rp_err rp_norm_set(rp_arena *arena, rp_norm *norm, uint32_t groups, const double *mean,
                   const double *deviation) {
    rp_err err;
    norm->groups = groups;
    norm->known = mean != NULL;
    RP_TRY(RP_ARENA_NEW(arena, groups, &norm->mean));
    RP_TRY(RP_ARENA_NEW(arena, groups, &norm->deviation));
    for (uint32_t g = 0; g < groups; g++) {
        norm->mean[g] = mean ? mean[g] : 0;
        norm->deviation[g] = mean ? deviation[g] : 1;
    }
fail:
    return err;
}

void rp_norm_apply(const rp_norm *norm, float *x, size_t count) {
    if (!norm->known) {
        return;
    }
    const size_t width = count / norm->groups;
    for (uint32_t g = 0; g < norm->groups; g++, x += width) {
        const float mean = (float)norm->mean[g];
        const float deviation = (float)norm->deviation[g];
        for (size_t i = 0; i < width; i++) {
            x[i] = (x[i] - mean) / deviation;
        }
    }
}

void rp_norm_round(const rp_norm *norm, const double *value, float *x, size_t count) {
    const uint32_t groups = norm->known ? norm->groups : 1;
    const size_t width = count / groups;
    for (uint32_t g = 0; g < groups; g++) {
        const double mean = norm->known ? norm->mean[g] : 0;
        const double deviation = norm->known ? norm->deviation[g] : 1;
        for (size_t i = g * width; i < (g + 1) * width; i++) {
            x[i] = (float)((value[i] - mean) / deviation);
        }
    }
}

rp_err rp_norm_open_sums(rp_arena *arena, const rp_norm *norm, rp_norm_sums *out) {
    rp_err err;
    *out = (rp_norm_sums){0};
    RP_TRY(RP_ARENA_NEW(arena, norm->groups, &out->mean));
    RP_TRY(RP_ARENA_NEW(arena, norm->groups, &out->square));
fail:
    return err;
}

void rp_norm_add(const rp_norm *norm, rp_norm_sums *sums, const double *value, size_t count) {
    const size_t width = count / norm->groups;
    const double before = (double)sums->samples * (double)width;
    const double all = before + (double)width;
    for (uint32_t g = 0; g < norm->groups; g++, value += width) {
        double mean = 0; /* minus the first value, so exactly 0 if all values are equal */
        double square = 0;
        for (size_t i = 0; i < width; i++) {
            mean += value[i] - value[0];
        }
        mean = value[0] + mean / (double)width;
        for (size_t i = 0; i < width; i++) {
            square += (value[i] - mean) * (value[i] - mean);
        }
        const double step = mean - sums->mean[g];
        sums->mean[g] += step * (double)width / all;
        sums->square[g] += square + step * step * before * (double)width / all;
    }
    sums->samples++;
}

void rp_norm_finish(rp_norm *norm, const rp_norm_sums *sums, size_t count) {
    const double values = (double)sums->samples * (double)(count / norm->groups);
    for (uint32_t g = 0; g < norm->groups; g++) {
        const double deviation = sqrt(sums->square[g] / values);
        norm->mean[g] = sums->mean[g];
        norm->deviation[g] = deviation > 0 ? deviation : 1;
    }
    norm->known = true;
}
