#include "data/validation.h"

#include <math.h>

#include "base/rng.h"

/* *out: number of the `all` training samples to hold out. */
static rp_err read_count(rp_node *node, uint32_t all, uint32_t *out) {
    double wanted = 0;
    rp_err err = rp_node_f64(node, "validation", 0, 1e9, &wanted);
    if (err != RP_OK) {
        return err;
    }
    const bool share = wanted < 1;
    const double count = share ? floor(wanted * all + 0.5) : wanted;
    if (!share && wanted != floor(wanted)) {
        return rp_node_fail(rp_node_find(node, "validation"),
                            "expected a share below 1 or a whole number, found %g", wanted);
    }
    if (wanted > 0 && (count < 1 || count >= all)) {
        return rp_node_fail(rp_node_find(node, "validation"),
                            "%g of %u training samples would leave the validation part or the "
                            "training part empty; expected at least one sample in each",
                            wanted, all);
    }
    *out = (uint32_t)count;
    return RP_OK;
}

/* Fills both parts in the order of stored samples. */
static void fill_parts(const uint32_t *shuffled, bool *held, uint32_t all, uint32_t count,
                       uint32_t *train, uint32_t *validation) {
    for (uint32_t i = 0; i < count; i++) {
        held[shuffled[i]] = true;
    }
    for (uint32_t i = 0; i < all; i++) {
        if (held[i]) {
            *validation++ = i;
        } else {
            *train++ = i;
        }
    }
}

rp_err rp_validation_choose(rp_arena *arena, rp_node *node, uint32_t all, uint64_t seed,
                            rp_validation *out) {
    uint32_t count = 0;
    uint32_t *train;
    uint32_t *validation;
    uint32_t *shuffled;
    bool *held;
    rp_arena scratch;
    *out = (rp_validation){.train_count = all};
    rp_err err = read_count(node, all, &count);
    if (err != RP_OK || count == 0) {
        return err;
    }
    rp_arena_init(&scratch, "validation", 0);
    RP_TRY(RP_ARENA_NEW(arena, all - count, &train));
    RP_TRY(RP_ARENA_NEW(arena, count, &validation));
    RP_TRY(RP_ARENA_NEW(&scratch, all, &shuffled));
    RP_TRY(RP_ARENA_NEW(&scratch, all, &held));
    for (uint32_t i = 0; i < all; i++) {
        shuffled[i] = i;
    }
    rp_rng rng = rp_rng_named(seed, "validation");
    rp_rng_shuffle(&rng, shuffled, all);
    fill_parts(shuffled, held, all, count, train, validation);
    *out = (rp_validation){train, validation, all - count, count};
fail:
    rp_arena_finish(&scratch);
    return err;
}
