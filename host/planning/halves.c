#include "planning/halves.h"

#include <math.h>
#include <string.h>

#include "planning/balance.h"
#include "planning/cost.h"
#include "planning/least_memory.h"
#include "stage/layout.h"

enum { ALIGN_BYTES = 128 };

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static double weight_bytes(const rp_runfile *run, uint32_t first, uint32_t end) {
    return (double)(sizeof(float) * rp_model_param_count(run->model, RP_PARAM_TRAINED, first, end));
}

rp_err rp_halves_bytes(const rp_runfile *run, const rp_cut *cut, uint32_t stage, double *stash,
                       double *weights) {
    rp_layout *layout;
    rp_arena arena;
    rp_node *root;
    rp_job job;
    char *text;
    rp_err err;
    rp_arena_init(&arena, "halves", 0);
    RP_TRY(rp_runfile_assignment(&arena, run, cut, stage, NULL, &text));
    RP_TRY(rp_config_read_text(&arena, text, strlen(text), "assignment", &root));
    RP_TRY(rp_job_parse(&arena, root, run->model_root, &job));
    job.role = RP_ROLE_FORWARD;
    RP_TRY(rp_layout_make(&arena, &job, RP_GEMM_PANEL, ALIGN_BYTES, &layout));
    *stash = (double)layout->slot_bytes;
    *weights = weight_bytes(run, cut->first[stage], cut->first[stage + 1]);
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- times ----------------------------------------------------------------------------------- */

static double micros_of(const rp_runfile *run) {
    return ceil((double)run->batch / run->micro);
}

/* Seconds of a step on a stage and the boundary after it, without the stash. */
typedef struct {
    double forward, backward, activation, gradient, weight;
} step_times;

static step_times times_of(const rp_runfile *run, const rp_profile *profile, uint32_t stage,
                           uint32_t first, uint32_t end) {
    const uint32_t near = stage;
    const uint32_t far = rp_runfile_backward_place(run, stage);
    const double micros = micros_of(run);
    const bool split = rp_method_is_split(&run->method, stage);
    rp_cost_stage at = {.place = near,
                        .stage = stage,
                        .stages = run->stages,
                        .first = first,
                        .end = end,
                        .lower = first > 0,
                        .upper = end < run->model->layer_count};
    const double forward_s = rp_cost_whole_op_s(run, profile, &at, RP_OP_FORWARD, run->micro);
    at.place = far;
    step_times out = {
        .forward = micros * forward_s,
        .backward = micros * rp_cost_whole_op_s(run, profile, &at, RP_OP_BACKWARD, run->micro) +
                    rp_cost_whole_op_s(run, profile, &at, RP_OP_UPDATE, run->micro),
        .weight =
            split ? rp_cost_wire_s(run, profile, far, near, weight_bytes(run, first, end)) : 0};
    if (end < run->model->layer_count) {
        const double bytes = rp_cost_boundary_bytes(run, end);
        out.activation = micros * rp_cost_wire_s(run, profile, near, near + 1, bytes);
        const uint32_t above = rp_runfile_backward_place(run, stage + 1);
        out.gradient = micros * rp_cost_wire_s(run, profile, above, far, bytes);
    }
    return out;
}

static double stash_s(const rp_runfile *run, const rp_profile *profile, uint32_t stage,
                      double bytes) {
    const uint32_t far = rp_runfile_backward_place(run, stage);
    return far == stage ? 0 : micros_of(run) * rp_cost_wire_s(run, profile, stage, far, bytes);
}

/* The longest latency between two boards of the ring. */
static double longest_delay_s(const rp_runfile *run, const rp_profile *profile, double delay_s) {
    uint32_t wire[RP_SPLIT_WIRES_MAX][2];
    const uint32_t count = rp_sched_split_wires(run->stages, run->method.whole, wire);
    double longest = 0;
    for (uint32_t i = 0; i < 2 * count; i++) { /* both directions */
        const uint32_t from = wire[i / 2][i % 2];
        const uint32_t to = wire[i / 2][1 - i % 2];
        longest = larger(longest, rp_cost_delay_s(run, profile, from, to, delay_s));
    }
    return longest;
}

rp_err rp_halves_times(rp_arena *arena, const rp_runfile *run, const rp_profile *profile,
                       const rp_cut *cut, double delay_s, rp_split_times *out) {
    double *row[6];
    bool *again;
    bool *begins;
    bool is_auto;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, cut->stage_count, &again));
    RP_TRY(RP_ARENA_NEW(arena, run->model->layer_count, &begins));
    RP_TRY(rp_recompute_read(run->root, run->model, cut, again, begins, &is_auto));
    for (uint32_t i = 0; i < 6; i++) {
        RP_TRY(RP_ARENA_NEW(arena, cut->stage_count, &row[i]));
    }
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        const step_times own = times_of(run, profile, k, cut->first[k], cut->first[k + 1]);
        double stash;
        double weights;
        RP_TRY(rp_halves_bytes(run, cut, k, &stash, &weights));
        row[0][k] = own.forward;
        row[1][k] = own.backward + (again[k] ? own.forward : 0);
        row[2][k] = own.activation;
        row[3][k] = own.gradient;
        row[4][k] = stash_s(run, profile, k, stash);
        row[5][k] = own.weight;
    }
    *out = (rp_split_times){.stages = cut->stage_count,
                            .forward = row[0],
                            .backward = row[1],
                            .activation = row[2],
                            .gradient = row[3],
                            .stash = row[4],
                            .weight = row[5],
                            .delay = longest_delay_s(run, profile, delay_s),
                            .whole = run->method.whole};
fail:
    return err;
}

/* ---- the cut --------------------------------------------------------------------------------- */

typedef struct {
    const rp_runfile *run;
    const rp_profile *profile;
    const double *kept; /* [layers + 1]: bytes of the inputs of all layers before the index */
    const rp_offload *offload; /* by stage */
} cut_costs;

/* Least number of stashes that a whole stage keeps on its board, of `all` in flight. */
static double least_stashes(const cut_costs *c, uint32_t stage, double all) {
    const bool again =
        c->run->recompute_auto && !rp_method_refuses_again(&c->run->method, stage, false);
    const bool leaves = c->offload[stage] != RP_OFFLOAD_NONE && all > RP_OFFLOAD_STASHES;
    return again ? 0 : leaves ? RP_OFFLOAD_STASHES : all;
}

/* The board with the backward keeps a version of the weights for each minibatch of `ahead`,
 * gradients and optimiser state; the board with the forward keeps one copy of the weights. Each
 * also keeps the stash of one microbatch. A whole stage keeps the stashes of all forwards in
 * flight, except those that it may offload or recompute. */
static bool fits_memory(const cut_costs *c, uint32_t stage, uint32_t first, uint32_t end) {
    const rp_runfile *run = c->run;
    const uint32_t far = rp_runfile_backward_place(run, stage);
    rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    shape.stage = stage;
    const double weights = weight_bytes(run, first, end);
    const double copies = rp_sched_split_versions(&shape) + 1.0 + rp_optim_state_count(&run->optim);
    const double near_has = (double)rp_least_memory_limit(run, c->profile, stage);
    const double far_has = (double)rp_least_memory_limit(run, c->profile, far);
    if (far == stage) {
        const double stashes = least_stashes(c, stage, rp_sched_ahead(&shape) * micros_of(run));
        return far_has <= 0 ||
               copies * weights + stashes * (c->kept[end] - c->kept[first]) <= far_has;
    }
    const double stash = c->kept[end] - c->kept[first];
    return (near_has <= 0 || weights + stash <= near_has) &&
           (far_has <= 0 || copies * weights + stash <= far_has);
}

/* Seconds of the longest part of a stage in a step. Of equal ones the stage with less work is
 * better. */
static double stage_s(const void *context, uint32_t stage, uint32_t first, uint32_t end) {
    static const double BELOW = 1e-3;
    const cut_costs *c = context;
    const step_times own = times_of(c->run, c->profile, stage, first, end);
    const double stash = stash_s(c->run, c->profile, stage, c->kept[end] - c->kept[first]);
    const double computes = rp_method_is_split(&c->run->method, stage)
                                ? larger(own.forward, own.backward)
                                : own.forward + own.backward;
    const double most =
        larger(larger(computes, larger(stash, own.weight)), larger(own.activation, own.gradient));
    return fits_memory(c, stage, first, end) ? most + BELOW * (own.forward + own.backward)
                                             : (double)INFINITY;
}

rp_err rp_halves_cut(rp_arena *arena, const rp_runfile *run, const rp_profile *profile, rp_cut *out,
                     double *longest_s) {
    const rp_model *model = run->model;
    cut_costs costs = {.run = run, .profile = profile};
    rp_offload *offload;
    double *kept;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)model->layer_count + 1, &kept));
    RP_TRY(RP_ARENA_NEW(arena, run->stages, &offload));
    RP_TRY(rp_offload_read(run->root, run->stages, offload));
    costs.offload = offload;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        kept[i + 1] =
            kept[i] + (double)(sizeof(float) * rp_shape_count(&model->in[i][0]) * run->micro);
    }
    costs.kept = kept;
    RP_TRY(rp_balance(arena, stage_s, &costs, model->layer_count, run->stages, out));
    for (uint32_t k = 0; longest_s && k < run->stages; k++) {
        const double own = stage_s(&costs, k, out->first[k], out->first[k + 1]);
        *longest_s = k == 0 ? own : larger(*longest_s, own);
    }
fail:
    return err;
}
