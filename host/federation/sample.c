#include "federation/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

uint32_t rp_sample_size(const rp_federated_keys *keys, uint32_t sites) {
    uint32_t size = keys->count > 0 ? keys->count : sites;
    if (keys->share > 0) {
        size = (uint32_t)round(keys->share * sites);
    }
    return size < 1 ? 1 : size > sites ? sites : size;
}

static int by_index(const void *left, const void *right) {
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

rp_err rp_sample_draw(rp_arena *arena, uint64_t seed, uint64_t round, const uint32_t *there,
                      uint32_t count, uint32_t size, uint32_t *out, uint32_t *drawn) {
    char name[48];
    uint32_t *order;
    rp_err err;
    *drawn = count < size ? count : size;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)count + 1, &order));
    memcpy(order, there, count * sizeof *order);
    if (count > size) {
        (void)snprintf(name, sizeof name, "federation/%" PRIu64, round);
        rp_rng rng = rp_rng_named(seed, name);
        rp_rng_shuffle(&rng, order, count);
    }
    memcpy(out, order, *drawn * sizeof *out);
    qsort(out, *drawn, sizeof *out, by_index);
fail:
    return err;
}
