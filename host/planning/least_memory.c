#include "planning/least_memory.h"

#include "nn/rounding.h"
#include "stage/layout.h"

static size_t trained_in(const rp_runfile *run, uint32_t layer) {
    return rp_model_param_count(run->model, RP_PARAM_TRAINED, layer, layer + 1);
}

static void add_weights(const rp_runfile *run, uint32_t layer, double *sum) {
    const size_t trained = trained_in(run, layer);
    const size_t others = rp_model_param_count(run->model, RP_PARAM_STATE, layer, layer + 1) +
                          rp_model_param_count(run->model, RP_PARAM_FROZEN, layer, layer + 1);
    const double copies = 2 + rp_optim_state_count(&run->optim);
    sum[1] = sum[0] + (double)sizeof(float) * (copies * (double)trained + (double)others);
}

/* Each tensor counts once, at its first reader. Samples of the data set may be bytes, so they do
 * not count. */
static void add_kept(const rp_runfile *run, uint32_t layer, bool *seen, double *sum) {
    const rp_layer *own = &run->model->layer[layer];
    const uint32_t producer = own->input_count > 0 ? own->input[0] : RP_LAYER_DATA;
    sum[1] = sum[0];
    if (trained_in(run, layer) > 0 && producer != RP_LAYER_DATA && !seen[producer]) {
        seen[producer] = true;
        const rp_dtype type = rp_rounds_output(run->model, producer) ? run->storage : RP_F32;
        sum[1] +=
            (double)(rp_dtype_bytes(type) * rp_shape_count(&run->model->in[layer][0]) * run->micro);
    }
}

/* *out: some stage may offload its stashes, except RP_OFFLOAD_STASHES of them. */
static rp_err may_offload(rp_arena *arena, const rp_runfile *run, bool *out) {
    rp_offload *said;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, run->stages, &said));
    RP_TRY(rp_offload_read(run->root, run->stages, said));
    *out = false;
    for (uint32_t k = 0; k < run->stages; k++) {
        *out |= said[k] != RP_OFFLOAD_NONE && !rp_method_is_split(&run->method, k);
    }
fail:
    return err;
}

/* Microbatches in flight on the first stage of a row of `later` + 1 stages, once its pipe is full.
 */
static uint32_t in_flight(const rp_runfile *run, uint32_t later) {
    rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    const uint32_t micros = (run->batch - 1) / run->micro + 1;
    if (shape.chunks > 1) {
        return 1; /* a lower bound: a part of a row of chunks has no order */
    }
    shape.stages = later + 1;
    shape.stage = 0;
    shape.step_end = 2 + ((uint64_t)later + 1) * (1 + shape.advance) / micros;
    shape.epoch_samples = shape.step_end * run->batch;
    return rp_sched_in_flight(run->method.kind, &shape);
}

rp_err rp_least_memory_open(rp_arena *arena, const rp_runfile *run, uint32_t stages,
                            rp_least_memory *out) {
    const uint32_t layers = run->model->layer_count;
    bool offloads = false;
    bool *seen;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, (size_t)layers + 1, &out->weights));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)layers + 1, &out->kept));
    RP_TRY(RP_ARENA_NEW(arena, stages, &out->in_flight));
    RP_TRY(RP_ARENA_NEW(arena, layers, &seen));
    const bool recomputes =
        run->recompute_auto && !rp_method_refuses_again(&run->method, 0, run->sizes.in_use);
    for (uint32_t i = 0; i < layers; i++) {
        add_weights(run, i, &out->weights[i]);
        add_kept(run, i, seen, &out->kept[i]);
        out->kept[i + 1] = recomputes ? 0 : out->kept[i + 1]; /* recompute may drop them */
    }
    RP_TRY(may_offload(arena, run, &offloads));
    for (uint32_t later = 0; later < stages; later++) {
        const uint32_t own = in_flight(run, later);
        out->in_flight[later] = offloads && own > RP_OFFLOAD_STASHES ? RP_OFFLOAD_STASHES : own;
    }
fail:
    return err;
}

double rp_least_memory_of(const rp_least_memory *memory, uint32_t first, uint32_t end,
                          uint32_t later) {
    return memory->weights[end] - memory->weights[first] +
           memory->in_flight[later] * (memory->kept[end] - memory->kept[first]);
}

uint64_t rp_least_memory_limit(const rp_runfile *run, const rp_profile *profile, uint32_t place) {
    const uint64_t said = rp_runfile_memory_of(run, place);
    const uint64_t has = rp_profile_board_at(profile, place)->memory_bytes;
    return said > 0 && (said < has || has == 0) ? said : has;
}
