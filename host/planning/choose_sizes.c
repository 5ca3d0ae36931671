#include "planning/choose_sizes.h"

#include "planning/cost.h"
#include "planning/least_memory.h"

static void set_costs(const rp_runfile *run, const rp_profile *profile, const rp_cut *cut,
                      uint32_t k, rp_problem *out) {
    const uint32_t place = k % run->boards;
    const uint32_t first = cut->first[k];
    const uint32_t end = cut->first[k + 1];
    const size_t row = (size_t)k * (out->samples + 1);
    for (uint32_t b = 1; b <= out->samples; b++) {
        out->pass[RP_WAY_FORWARD][row + b] =
            rp_cost_op_s(run, profile, place, first, end, RP_OP_FORWARD, b);
        out->pass[RP_WAY_BACKWARD][row + b] =
            rp_cost_op_s(run, profile, place, first, end, RP_OP_BACKWARD, b);
        if (k + 1 < cut->stage_count) {
            out->send[RP_WAY_FORWARD][row + b] = rp_cost_parcel_s(run, profile, end, k, false, b);
        }
        if (k > 0) {
            out->send[RP_WAY_BACKWARD][row + b] =
                rp_cost_parcel_s(run, profile, first, k - 1, true, b);
        }
    }
    const uint32_t next = (k + 1) % run->boards;
    const uint32_t before = (k + run->boards - 1) % run->boards;
    out->latency[RP_WAY_FORWARD][k] = rp_cost_delay_s(run, profile, place, next, 0);
    out->latency[RP_WAY_BACKWARD][k] = rp_cost_delay_s(run, profile, place, before, 0);
    out->update[k] = rp_cost_op_s(run, profile, place, first, end, RP_OP_UPDATE, out->samples);
}

/* Bytes of the largest gradient in a backward, for which there is at least one buffer. */
static size_t gradient_bytes(const rp_model *model, uint32_t first, uint32_t end) {
    size_t most = 0;
    for (uint32_t i = first; i < end; i++) {
        const size_t own = sizeof(float) * rp_shape_count(&model->plan[i].out);
        most = model->wants_grad[i] && own > most ? own : most;
    }
    return most;
}

/* Sets lower bounds, so that no sizes are refused that might fit. */
static void set_memory(const rp_runfile *run, const rp_profile *profile,
                       const rp_least_memory *least, const rp_cut *cut, rp_problem *out) {
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        const uint32_t first = cut->first[k];
        const uint32_t end = cut->first[k + 1];
        out->memory[k] = (rp_problem_memory){
            .limit_bytes = rp_least_memory_limit(run, profile, k % run->boards),
            .fixed_bytes = (uint64_t)(least->weights[end] - least->weights[first]),
            .stash_bytes = (uint64_t)(least->kept[end] - least->kept[first]) / run->micro,
            .work_bytes = gradient_bytes(run->model, first, end)};
    }
}

/* Keeps the sizes that divide a step into at most RP_PARCELS_MAX parcels, and train.microbatch. */
static void limit_sizes(const rp_runfile *run, rp_problem *out) {
    uint32_t kept[RP_PLANNERS_SIZES_MAX];
    uint32_t count = 0;
    bool has_micro = false;
    for (uint32_t i = 0; i < out->size_count; i++) {
        const uint32_t size = out->size[i];
        const bool fits = (out->samples - 1) / size + 1 <= RP_PARCELS_MAX;
        if (run->micro < size && !has_micro && count + 1 < RP_PLANNERS_SIZES_MAX) {
            kept[count++] = run->micro;
            has_micro = true;
        }
        if ((fits || size == run->micro) && count < RP_PLANNERS_SIZES_MAX) {
            kept[count++] = size;
            has_micro |= size == run->micro;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        out->size[i] = kept[i];
    }
    out->size[count - 1] = out->samples;
    out->size_count = count;
}

static void hold_stages(const rp_runfile *run, const rp_cut *cut, rp_problem *out) {
    for (uint8_t i = 0; i < out->size_count; i++) {
        for (uint32_t k = 0; out->size[i] == run->micro && k < cut->stage_count; k++) {
            if (rp_cut_whole_layer(run->model, cut, k)) {
                out->held[k] = i;
            }
        }
    }
}

rp_err rp_choose_sizes(const rp_runfile *run, const rp_profile *profile, const rp_cut *cut,
                       uint32_t (*size)[2], rp_size_choice *out) {
    rp_problem problem;
    rp_planner_answer answer;
    rp_least_memory least;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "sizes", 0);
    RP_TRY(rp_problem_open(&arena, cut->stage_count, run->batch, &problem));
    limit_sizes(run, &problem);
    hold_stages(run, cut, &problem);
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        set_costs(run, profile, cut, k, &problem);
    }
    RP_TRY(rp_least_memory_open(&arena, run, cut->stage_count, &least));
    set_memory(run, profile, &least, cut, &problem);
    const rp_planner_ask ask = {.problem = &problem, .seed = run->seed, .rounds = 1};
    RP_TRY(rp_planner_search(run->sizes.planner, &ask, &answer));
    *out = (rp_size_choice){.step_s = answer.step_s,
                            .even_step_s = answer.even_step_s,
                            .even = problem.size[answer.even.gene[RP_WAY_FORWARD][0]]};
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        size[k][0] = problem.size[answer.genome.gene[RP_WAY_FORWARD][k]];
        size[k][1] = problem.size[answer.genome.gene[RP_WAY_BACKWARD][k]];
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
