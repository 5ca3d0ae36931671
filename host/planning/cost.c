#include "planning/cost.h"

#include <math.h>

/* What an encrypted link carries on one core: `build/bin/bench_link` gave 195 to 262 MB/s. */
static const double CURVE_BYTES_PER_S = 200e6;

double rp_cost_boundary_s(const rp_runfile *run, uint32_t layer) {
    rp_boundary boundary;
    if (rp_cut_boundary_at(run->model, layer, &boundary) != RP_OK) {
        return (double)INFINITY;
    }
    double rate = CURVE_BYTES_PER_S;
    double emulated = run->link.rate_mbit * 1e6 / 8;
    rate = emulated > 0 && emulated < rate ? emulated : rate;
    return 2 * (double)boundary.sample_bytes * run->micro / rate;
}

rp_err rp_cost_choose_cut(rp_arena *arena, const rp_runfile *run, const double *layer_seconds,
                          rp_cut *out) {
    const uint32_t layers = run->model->layer_count;
    double *cost;
    double *boundary; /* infinite where more tensors cross than a parcel has parts */
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, layers, &cost));
    RP_TRY(RP_ARENA_NEW(arena, layers, &boundary));
    for (uint32_t i = 0; i < layers; i++) {
        cost[i] = layer_seconds[2 * (size_t)i] + layer_seconds[2 * (size_t)i + 1];
        boundary[i] = i == 0 ? 0 : rp_cost_boundary_s(run, i);
    }
    RP_TRY(rp_cut_balance(arena, cost, boundary, layers, run->stages, out));
fail:
    return err;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void add_stage_costs(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                            double *forward, double *backward, double *send) {
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        const uint32_t end = cut->first[k + 1];
        const bool last = k + 1 == cut->stage_count;
        for (uint32_t i = cut->first[k]; i < end; i++) {
            forward[k] += layer_seconds[2 * (size_t)i];
            backward[k] += layer_seconds[2 * (size_t)i + 1];
        }
        forward[k] = larger(forward[k], run->throttle.forward_ms * 1e-3);
        backward[k] = larger(backward[k], run->throttle.backward_ms * 1e-3);
        send[k] = rp_cost_boundary_s(run, last ? cut->first[k] : end) / 2;
    }
}

rp_err rp_cost_choose_advance(const rp_runfile *run, const rp_cut *cut, const double *layer_seconds,
                              double link_delay_s, uint32_t advance_max, rp_advance_choice *out) {
    double *costs[4];
    double *none;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "costs", 0);
    RP_TRY(RP_ARENA_NEW(&arena, cut->stage_count, &none));
    for (uint32_t i = 0; i < 4; i++) {
        RP_TRY(RP_ARENA_NEW(&arena, cut->stage_count, &costs[i]));
    }
    add_stage_costs(run, cut, layer_seconds, costs[0], costs[1], costs[2]);
    for (uint32_t k = 0; k < run->stages; k++) {
        costs[3][k] = link_delay_s;
    }
    const rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    const rp_sched_costs seconds = {.forward = costs[0],
                                    .backward_input = costs[1],
                                    .backward_weight = none,
                                    .send = costs[2],
                                    .delay = costs[3]};
    RP_TRY(rp_advance_choose(&run->method, &shape, &seconds, out));
    out->advance = out->advance < advance_max ? out->advance : advance_max;
fail:
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_cost_compare_micro(const rp_runfile *run, uint32_t *micro, double *busy, double *better) {
    rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    rp_err err;
    RP_TRY(rp_advance_busy(&run->method, &shape, NULL, busy));
    *micro = shape.micro = (run->batch + run->boards - 1) / run->boards;
    RP_TRY(rp_advance_busy(&run->method, &shape, NULL, better));
fail:
    return err;
}
