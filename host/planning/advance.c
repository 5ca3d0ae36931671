#include "planning/advance.h"

#include <math.h>

static const double GOOD_ENOUGH = 0.98; /* fraction of the best `busy` that suffices */
static const double GAIN = 0.05; /* more than 1 - GOOD_ENOUGH, so the advance does not alternate */

/* The replay fills the ring this many times, and has at least as many steps, so that filling and
 * draining hardly count. */
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
    const uint32_t advance = method->advance > RP_ADVANCE_AUTO ? method->advance : RP_ADVANCE_AUTO;
    const uint64_t full = 1 + (uint64_t)(shape->stages - 1) * (1 + advance);
    const uint64_t micros = (shape->batch - 1) / shape->micro + 1; /* in a step */
    tried.step_end = ROUNDS * (micros < full ? (full + micros - 1) / micros : 1);
    tried.epoch_samples = tried.step_end * tried.batch; /* no short step, no drain inside */
    rp_err err = rp_sched_replay(&arena, method->kind, &tried, costs, NULL, NULL, &facts);
    *busy = err == RP_OK ? 1 - facts.bubble : 0;
    rp_arena_finish(&arena);
    return err;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* The slowest board, link or feed bounds `busy` for any advance. */
static void find_bounds(const rp_sched_shape *shape, const rp_sched_costs *costs, double feed,
                        rp_advance_choice *out) {
    double slowest = feed;
    double work = 0;
    for (uint32_t k = 0; k < shape->stages; k++) {
        const double own = costs->forward[k] + costs->backward_input[k] + costs->backward_weight[k];
        work += own;
        slowest = larger(slowest, larger(own, costs->send ? costs->send[k] : 0));
        slowest = larger(slowest, costs->send_back ? costs->send_back[k] : 0);
        out->most_delay = larger(out->most_delay, costs->delay ? costs->delay[k] : 0);
    }
    out->work = work / shape->stages;
    out->slowest = slowest;
    out->busy_most = slowest > 0 ? out->work / slowest : 1;
}

rp_err rp_advance_choose(const rp_method *method, const rp_sched_shape *shape,
                         const rp_sched_costs *costs, double feed, rp_advance_choice *out) {
    const uint32_t most = rp_method_advance_most(method, shape);
    double best = 0;
    rp_err err = RP_OK;
    *out = (rp_advance_choice){0};
    find_bounds(shape, costs, feed, out);
    while (out->tried <= most &&
           (out->tried <= RP_ADVANCE_AUTO || best < GOOD_ENOUGH * out->busy_most)) {
        double *busy = &out->busy[out->tried];
        rp_method tried = *method;
        rp_method_set_advance(&tried, shape->stages, out->tried++);
        RP_TRY(rp_advance_busy(&tried, shape, costs, busy));
        *busy = *busy < out->busy_most ? *busy : out->busy_most;
        best = larger(best, *busy);
    }
    while (out->advance + 1 < out->tried && out->busy[out->advance] < GOOD_ENOUGH * best) {
        out->advance++;
    }
fail:
    return err;
}

uint32_t rp_advance_wanted(const rp_advance_choice *choice) {
    const double trips = choice->slowest > 0 ? ceil(2 * choice->most_delay / choice->slowest) : 0;
    return trips < RP_ADVANCE_MAX ? (uint32_t)trips : RP_ADVANCE_MAX;
}

bool rp_advance_pays(const rp_advance_choice *choice, uint32_t now) {
    const double gain = choice->busy[choice->advance] - choice->busy[now];
    return choice->advance > now ? gain > GAIN : choice->advance < now;
}
