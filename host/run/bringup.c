/* The ring comes up: boards, the cut, what the links need in flight, the stages. */
#include "run/controller_own.h"

#include <math.h>
#include <stdio.h>

/* What an encrypted link carries on one core: `build/bin/bench_link` gave 195 to 262 MB/s. */
static const double CURVE_BYTES_PER_S = 200e6;

rp_err rp_controller_measure(rp_controller *c) {
    rp_record_phase(c->record, "measuring every layer on the first board");
    return rp_ring_profile(&c->ring, &c->layer_seconds);
}

/* Seconds that a cut in front of `layer` costs a microbatch: activations one way, gradients the
 * other. Infinite where more tensors cross than a parcel has parts. */
static double crossing_s(const rp_controller *c, uint32_t layer) {
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
        crossing[i] = i == 0 ? 0 : crossing_s(c, i);
    }
    RP_TRY(rp_cut_balance(&c->arena, cost, crossing, layers, c->run.stages, &c->cut));
fail:
    return err;
}

/* ---- advance: auto --------------------------------------------------------------------------- */

/* Seconds from board to board: as emulated, or half of the longest round trip to a board. */
static rp_err link_delay(rp_controller *c, double *seconds) {
    int64_t round_trip_ns = 0;
    if (c->run.emulate) {
        *seconds = (c->run.link.delay_ms + c->run.link.jitter_ms) * 1e-3;
        return RP_OK;
    }
    rp_err err = rp_ring_round_trip(&c->ring, &round_trip_ns);
    *seconds = (double)round_trip_ns * 1e-9 / 2;
    return err;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

static void stage_costs(const rp_controller *c, double *forward, double *backward, double *send) {
    for (uint32_t k = 0; k < c->cut.stage_count; k++) {
        const uint32_t end = c->cut.first[k + 1];
        const bool last = k + 1 == c->cut.stage_count;
        for (uint32_t i = c->cut.first[k]; i < end; i++) {
            forward[k] += c->layer_seconds[2 * (size_t)i];
            backward[k] += c->layer_seconds[2 * (size_t)i + 1];
        }
        forward[k] = larger(forward[k], c->run.pace.forward_ms * 1e-3);
        backward[k] = larger(backward[k], c->run.pace.backward_ms * 1e-3);
        send[k] = crossing_s(c, last ? c->cut.first[k] : end) / 2;
    }
}

/* The number goes into the run file's tree: the boards and a resumed run read it there. */
rp_err rp_controller_set_advance(rp_controller *c, uint32_t advance) {
    char assignment[48];
    rp_err err;
    (void)snprintf(assignment, sizeof assignment, "schedule.advance=%u", advance);
    RP_TRY(rp_config_set(&c->arena, c->run.root, assignment));
    rp_method_set_advance(&c->run.method, c->run.stages, advance);
    c->run.method.advance_auto = false;
fail:
    return err;
}

static rp_err choose_advance(rp_controller *c) {
    double costs[4][RP_CUT_STAGES_MAX] = {{0}};
    double none[RP_CUT_STAGES_MAX] = {0};
    double delay;
    char text[160];
    rp_err err;
    if (!c->run.method.advance_auto) {
        return RP_OK;
    }
    if (c->run.stages == 1) {
        return rp_controller_set_advance(c, 0);
    }
    if (!c->layer_seconds) {
        RP_TRY(rp_controller_measure(c));
    }
    stage_costs(c, costs[0], costs[1], costs[2]);
    RP_TRY(link_delay(c, &delay));
    for (uint32_t k = 0; k < c->run.stages; k++) {
        costs[3][k] = delay;
    }
    const rp_sched_shape shape = rp_runfile_sched_shape(&c->run, 0);
    const rp_sched_costs seconds = {.forward = costs[0],
                                    .backward_input = costs[1],
                                    .backward_weight = none,
                                    .send = costs[2],
                                    .delay = costs[3]};
    RP_TRY(rp_advance_choose(&c->run.method, &shape, &seconds, &c->advance));
    c->advance_chosen = true;
    RP_TRY(rp_controller_set_advance(c, c->advance.advance));
    (void)snprintf(text, sizeof text,
                   "links take %.1f ms: advance %u keeps the boards %.0f %% busy, none %.0f %%",
                   1e3 * delay, c->advance.advance, 100 * c->advance.busy[c->advance.advance],
                   100 * c->advance.busy[0]);
    rp_record_phase(c->record, text);
fail:
    return err;
}

/* Of a run that is gone on with: what was chosen when it began. */
rp_err rp_controller_same_advance(rp_controller *c) {
    rp_node *root;
    rp_method was;
    rp_err err;
    if (!c->run.method.advance_auto) {
        return RP_OK;
    }
    RP_TRY(rp_config_read_file(&c->arena, c->run_yaml, &root));
    RP_TRY(rp_method_parse(root, c->run.stages, &was));
    RP_TRY(rp_controller_set_advance(c, was.advance));
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
    RP_TRY(choose_advance(c));
    rp_record_phase(c->record, "building kernels and planning memory on every board");
    RP_TRY(rp_ring_assign(&c->ring, &c->cut));
fail:
    return err;
}
