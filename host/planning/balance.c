#include "planning/balance.h"

#include <math.h>

/* The best cut of the layers from an index on into the remaining stages: its slowest stage, and the
 * end of its first stage. */
typedef struct {
    double cost;
    uint32_t end;
} suffix;

static suffix find_best_end(rp_balance_cost cost, const void *context, uint32_t stage,
                            uint32_t first, uint32_t layers, const suffix *rest) {
    suffix best = {(double)INFINITY, layers};
    for (uint32_t end = first + 1; end <= layers; end++) {
        if (isinf(rest[end].cost)) {
            continue;
        }
        const double own = cost(context, stage, first, end);
        const double slowest = own > rest[end].cost ? own : rest[end].cost;
        if (slowest < best.cost) {
            best = (suffix){slowest, end};
        }
    }
    return best;
}

rp_err rp_balance(rp_arena *arena, rp_balance_cost cost, const void *context, uint32_t layers,
                  uint32_t stages, rp_cut *out) {
    const size_t row = (size_t)layers + 1;
    suffix *table; /* [stages + 1][row] */
    uint32_t *first;
    rp_err err;
    if (stages == 0 || stages > RP_CUT_STAGES_MAX || layers < stages) {
        return rp_fail(RP_ERR_USAGE,
                       "cut: %u layers for %u stages, expected 1 to %d stages with a layer each",
                       layers, stages, RP_CUT_STAGES_MAX);
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)stages + 1, &first));
    RP_TRY(RP_ARENA_NEW(arena, row * (stages + 1), &table));
    for (uint32_t i = 0; i <= layers; i++) { /* no layers remain after the last stage */
        table[row * stages + i] = (suffix){i == layers ? 0 : (double)INFINITY, layers};
    }
    for (uint32_t k = stages; k-- > 0;) {
        for (uint32_t i = 0; i <= layers; i++) { /* stage 0 begins with layer 0 */
            const bool possible = k == 0 ? i == 0 : i >= k;
            table[row * k + i] =
                possible ? find_best_end(cost, context, k, i, layers, &table[row * (k + 1)])
                         : (suffix){(double)INFINITY, layers};
        }
    }
    if (!isfinite(table[0].cost)) {
        return rp_fail(RP_ERR_USAGE, "cut: no allowed cut of %u layers into %u stages", layers,
                       stages);
    }
    for (uint32_t k = 0; k < stages; k++) {
        first[k + 1] = table[row * k + first[k]].end;
    }
    *out = (rp_cut){.stage_count = stages, .first = first};
fail:
    return err;
}
