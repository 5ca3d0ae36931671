/* The ring comes up: boards, the cut, the stages. */
#include "run/controller_own.h"

#include <math.h>

/* What an encrypted link carries on one core: `build/bin/bench_link` gave 195 to 262 MB/s. */
static const double CURVE_BYTES_PER_S = 200e6;

rp_err rp_controller_measure(rp_controller *c) {
    rp_record_phase(c->record, "measuring every layer on the first board");
    return rp_ring_profile(&c->ring, &c->layer_seconds);
}

double rp_controller_crossing_s(const rp_controller *c, uint32_t layer) {
    rp_boundary boundary;
    if (rp_cut_boundary_at(c->run.model, layer, &boundary) != RP_OK) {
        return (double)INFINITY;
    }
    double rate = CURVE_BYTES_PER_S;
    double emulated = c->run.link.rate_mbit * 1e6 / 8;
    rate = emulated > 0 && emulated < rate ? emulated : rate;
    return 2 * (double)boundary.sample_bytes * c->run.micro / rate;
}

static rp_err choose_cut(rp_controller *c) {
    double *cost;
    double *crossing; /* infinite where more tensors cross than a parcel has parts */
    rp_err err;
    if (!c->run.cut_auto) {
        c->cut = c->run.cut;
        return RP_OK;
    }
    if (c->position.cut.stage_count == c->run.stages) {
        c->cut = c->position.cut; /* a measurement is never the same twice, a resumed run is */
        return RP_OK;
    }
    if (c->run.stages == 1) {
        c->cut = (rp_cut){.stage_count = 1, .first = {0, c->run.model->layer_count}};
        return RP_OK;
    }
    uint32_t layers = c->run.model->layer_count;
    RP_TRY(rp_controller_measure(c));
    RP_TRY(RP_ARENA_NEW(&c->arena, layers, &cost));
    RP_TRY(RP_ARENA_NEW(&c->arena, layers, &crossing));
    for (uint32_t i = 0; i < layers; i++) {
        cost[i] = c->layer_seconds[2 * (size_t)i] + c->layer_seconds[2 * (size_t)i + 1];
        crossing[i] = i == 0 ? 0 : rp_controller_crossing_s(c, i);
    }
    RP_TRY(rp_cut_balance(&c->arena, cost, crossing, layers, c->run.stages, &c->cut));
fail:
    return err;
}

/* ---- boards ---------------------------------------------------------------------------------- */

rp_err rp_controller_reach_boards(rp_controller *c, const char *keys_folder, int signal_fd) {
    rp_err err;
    rp_record_phase(c->record, c->run.local ? "starting the agents" : "reaching the boards");
    RP_TRY(rp_ring_open(&c->arena, &c->run, c->folder, keys_folder, signal_fd, &c->ring));
    c->ring.on_message = rp_controller_on_message;
    c->ring.context = c;
    RP_TRY(RP_ARENA_NEW(&c->arena, c->run.model->param_count + 1, &c->sumsq));
    RP_TRY(RP_ARENA_NEW(&c->arena, c->run.model->param_count + 1, &c->trust));
    for (uint32_t p = 0; p < c->run.model->param_count; p++) {
        c->has_statistics |= c->run.model->param[p].role == RP_PARAM_STATE;
    }
fail:
    return err;
}

rp_err rp_controller_bring_up(rp_controller *c, const char *keys_folder, int signal_fd) {
    rp_err err;
    RP_TRY(rp_controller_reach_boards(c, keys_folder, signal_fd));
    RP_TRY(choose_cut(c));
    RP_TRY(rp_controller_choose_advance(c));
    rp_record_phase(c->record, "building kernels and planning memory on every board");
    RP_TRY(rp_controller_assign(c));
fail:
    return err;
}
