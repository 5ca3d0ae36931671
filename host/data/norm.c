#include "data/norm.h"

#include <math.h>
#include <string.h>

rp_err rp_norm_set(rp_arena *arena, rp_norm *norm, uint32_t groups, const float *mean,
                   const float *deviation) {
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
        const float mean = norm->mean[g];
        const float deviation = norm->deviation[g];
        for (size_t i = 0; i < width; i++) {
            x[i] = (x[i] - mean) / deviation;
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

void rp_norm_add(const rp_norm *norm, rp_norm_sums *sums, const float *x, size_t count) {
    const size_t width = count / norm->groups;
    const double before = (double)sums->samples * (double)width;
    const double all = before + (double)width;
    for (uint32_t g = 0; g < norm->groups; g++, x += width) {
        double mean = 0;
        double square = 0;
        for (size_t i = 0; i < width; i++) {
            mean += (double)x[i];
        }
        mean /= (double)width;
        for (size_t i = 0; i < width; i++) {
            square += ((double)x[i] - mean) * ((double)x[i] - mean);
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
        const float deviation = (float)sqrt(sums->square[g] / values);
        norm->mean[g] = (float)sums->mean[g];
        norm->deviation[g] = deviation > 0 ? deviation : 1;
    }
    norm->known = true;
}
