#include "planning/advance.h"

static const double GOOD_ENOUGH = 0.98; /* of the best */
static const double GAIN = 0.05, LOSS = 0.01;

/* Times that the fullest ring is filled in a replay, and steps in it at least: filling and draining
 * are a small part. */
enum { ROUNDS = 24 };

rp_err rp_advance_busy(const rp_method *method, const rp_sched_shape *shape,
                       const rp_sched_costs *costs, double *busy) {
    rp_arena arena;
    rp_sched_facts facts;
    rp_sched_shape tried = *shape;
    rp_arena_init(&arena, "advance", 0);
    tried.stage = 0;
    rp_method_order(method, &tried);
    tried.step_first = 0;
    const uint64_t full = 1 + (uint64_t)(shape->stages - 1) * (1 + RP_ADVANCE_MAX);
    const uint64_t micros = (shape->batch - 1) / shape->micro + 1; /* of a step */
    tried.step_end = ROUNDS * (micros < full ? (full + micros - 1) / micros : 1);
    tried.epoch_samples = tried.step_end * tried.batch; /* no short step, and no drain inside */
    rp_err err = rp_sched_replay(&arena, method->kind, &tried, costs, NULL, NULL, &facts);
    *busy = err == RP_OK ? 1 - facts.bubble : 0;
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_advance_choose(const rp_method *method, const rp_sched_shape *shape,
                         const rp_sched_costs *costs, rp_advance_choice *out) {
    double best = 0;
    rp_err err = RP_OK;
    *out = (rp_advance_choice){0};
    for (uint32_t a = 0; a <= RP_ADVANCE_MAX; a++) {
        rp_method tried = *method;
        rp_method_set_advance(&tried, shape->stages, a);
        RP_TRY(rp_advance_busy(&tried, shape, costs, &out->busy[a]));
        best = out->busy[a] > best ? out->busy[a] : best;
    }
    while (out->advance < RP_ADVANCE_MAX && out->busy[out->advance] < GOOD_ENOUGH * best) {
        out->advance++;
    }
fail:
    return err;
}

bool rp_advance_pays(const rp_advance_choice *choice, uint32_t now) {
    const double gain = choice->busy[choice->advance] - choice->busy[now];
    return choice->advance > now ? gain > GAIN : choice->advance < now && gain > -LOSS;
}
