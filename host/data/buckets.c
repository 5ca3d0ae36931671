#include "data/buckets.h"

#include <stdlib.h>

enum { AUTO_PARTS = 4, ROUND = 8 };

uint32_t rp_buckets_find(const rp_buckets *buckets, uint32_t length) {
    uint32_t k = 0;
    while (k < buckets->count && buckets->time[k] < length) {
        k++;
    }
    return k;
}

uint32_t rp_buckets_hold(const rp_buckets *buckets, uint32_t length) {
    const uint32_t k = rp_buckets_find(buckets, length);
    return k < buckets->count ? buckets->time[k] : 0;
}

static int compare_lengths(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

rp_buckets rp_buckets_choose(uint32_t *length, uint32_t count, uint32_t most) {
    rp_buckets out = {0};
    qsort(length, count, sizeof *length, compare_lengths);
    for (uint32_t q = 1; q < AUTO_PARTS && count > 0; q++) {
        const uint64_t before = (uint64_t)count * q;
        const uint32_t at = length[(before - 1) / AUTO_PARTS];
        const uint32_t time = at > 0 ? (at + ROUND - 1) / ROUND * ROUND : ROUND;
        if (time < most && (out.count == 0 || time > out.time[out.count - 1])) {
            out.time[out.count++] = time;
        }
    }
    return out;
}
