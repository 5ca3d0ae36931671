/* Memory of the opencl executor: allocates what the layout lists, and initialises the weights. */
#include <string.h>

#include "stage/opencl_own.h"

static const rp_model_param *model_param(const rp_opencl *e, uint32_t param) {
    return &e->base.job->model->param[e->base.layout->param_first + param];
}

static rp_err open_flat(rp_opencl *e, const char *name, rp_flat *out) {
    const rp_layout *layout = e->base.layout;
    const size_t bytes = layout->weight_bytes;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, layout->trained_count + 1, &out->part));
    RP_TRY(rp_darena_open(e->arena, e->device, name, 0, bytes ? bytes : 1, &out->arena));
    for (uint32_t i = 0; i < layout->param_count; i++) {
        if (layout->trained[i] != RP_NOT_TRAINED) {
            RP_TRY(rp_darena_take(out->arena, model_param(e, i)->count * sizeof(float),
                                  &out->part[layout->trained[i]]));
        }
    }
    rp_darena_seal(out->arena);
fail:
    return err;
}

static rp_err open_blocks(rp_opencl *e) {
    static const char *const names[RP_BLOCK_KINDS] = {
        [RP_BLOCK_WEIGHTS] = "weights",     [RP_BLOCK_PREDICTED] = "predicted weights",
        [RP_BLOCK_CENTRE] = "centre",       [RP_BLOCK_SCRATCH] = "scratch weights",
        [RP_BLOCK_STATE] = "optimiser",     [RP_BLOCK_PROBE] = "probe",
        [RP_BLOCK_PEER] = "peer gradients", [RP_BLOCK_GRADIENT] = "gradients",
    };
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, rp_block_total(e->base.layout), &e->block));
    for (rp_block_kind kind = 0; kind < RP_BLOCK_KINDS; kind++) {
        for (uint32_t i = 0; i < rp_block_count(e->base.layout, kind); i++) {
            RP_TRY(open_flat(e, names[kind], rp_opencl_flat(e, (rp_block){kind, i})));
            e->weight_copies += kind <= RP_BLOCK_SCRATCH;
            e->probe_copies += kind == RP_BLOCK_PROBE;
        }
    }
fail:
    return err;
}

static rp_err take_params(rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, layout->param_count + 1, &e->param));
    for (uint32_t i = 0; i < layout->param_count; i++) {
        const rp_model_param *from = model_param(e, i);
        e->param[i].value.shape = e->param[i].grad.shape = from->shape;
        if (layout->trained[i] == RP_NOT_TRAINED && from->role != RP_PARAM_STATE) {
            RP_TRY(
                rp_darena_take(e->memory, from->count * sizeof(float), &e->param[i].value.buffer));
        }
    }
    RP_TRY(rp_opencl_take_statistics(e));
    RP_TRY(open_blocks(e));
    const rp_flat *grads =
        layout->gradients ? rp_opencl_flat(e, (rp_block){RP_BLOCK_GRADIENT, 0}) : NULL;
    for (uint32_t i = 0; grads && i < layout->param_count; i++) {
        if (layout->trained[i] != RP_NOT_TRAINED) {
            e->param[i].grad.buffer = grads->part[layout->trained[i]];
        }
    }
fail:
    return err;
}

/* `count` buffers with room for `samples` each. */
static rp_err take_all(rp_opencl *e, uint32_t samples, const size_t *sample_bytes, uint32_t count,
                       rp_buffer ***out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, count + 1, out));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(rp_darena_take(e->memory, sample_bytes[i] * samples, &(*out)[i]));
    }
fail:
    return err;
}

/* Parts [first, end) of the layout's order. */
static rp_err take_parts(rp_opencl *e, rp_darena *arena, uint32_t first, uint32_t end,
                         rp_buffer ***out) {
    const rp_layout *layout = e->base.layout;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, layout->part_count + 1, out));
    for (uint32_t i = first; i < end; i++) {
        const uint32_t part = layout->part_order[i];
        RP_TRY(rp_darena_take(arena, layout->part_bytes[part], &(*out)[part]));
    }
fail:
    return err;
}

/* Allocates chunks of an offloaded stage. Each is contiguous, so a stash is copied by one
 * command. */
static rp_err take_stashes(rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, layout->stashes, &e->chunk));
    for (uint32_t c = 0; c < layout->stashes; c++) {
        rp_opencl_chunk *chunk = &e->chunk[c];
        RP_TRY(e->base.job->offload == RP_OFFLOAD_FLASH
                   ? rp_darena_open_mapped(e->arena, e->device, "stash", layout->leave_bytes,
                                           &chunk->arena)
                   : rp_darena_open(e->arena, e->device, "stash", 0, layout->leave_bytes,
                                    &chunk->arena));
        RP_TRY(take_parts(e, chunk->arena, 0, layout->leave_count, &chunk->part));
        rp_darena_seal(chunk->arena);
    }
    RP_TRY(rp_opencl_open_offload(e));
fail:
    return err;
}

static rp_err take_slots(rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    const uint32_t pass = rp_job_pass_samples(e->base.job);
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, layout->slots, &e->slot));
    for (uint32_t i = 0; i < layout->slots; i++) {
        RP_TRY(take_parts(e, e->memory, layout->leave_count, layout->order_count, &e->slot[i]));
    }
    RP_TRY(layout->stashes < layout->slots ? take_stashes(e) : RP_OK);
    RP_TRY(RP_ARENA_NEW(e->arena, layout->deferred_slots + 1, &e->deferred));
    for (uint32_t i = 0; i < layout->deferred_slots; i++) {
        RP_TRY(
            take_all(e, pass, layout->grad.kept_bytes, layout->grad.kept_count, &e->deferred[i]));
    }
    RP_TRY(take_all(e, 1, layout->recompute_bytes, layout->recompute_count, &e->recomputed));
    RP_TRY(take_all(e, pass, layout->value.pool_bytes, layout->value.pool_count, &e->value_pool));
    RP_TRY(take_all(e, pass, layout->grad.pool_bytes, layout->grad.pool_count, &e->grad_pool));
    RP_TRY(RP_ARENA_NEW(e->arena, layout->tensor_count, &e->value));
    RP_TRY(RP_ARENA_NEW(e->arena, layout->tensor_count, &e->grad));
    RP_TRY(RP_ARENA_NEW(e->arena, layout->value.storage_count + 1, &e->unpacked));
fail:
    return err;
}

/* Writes the position of each trained parameter in its block. Allocations of an arena follow each
 * other, each rounded up to the alignment. */
static rp_err write_spans(rp_opencl *e, size_t bytes) {
    const rp_layout *layout = e->base.layout;
    const uint32_t align = rp_device_facts_of(e->device)->align_bytes;
    uint32_t *spans;
    size_t offset = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(e->arena, bytes / sizeof *spans, &spans));
    for (uint32_t i = 0; i < layout->param_count; i++) {
        const uint32_t t = layout->trained[i];
        if (t != RP_NOT_TRAINED) {
            const size_t count = model_param(e, i)->count;
            spans[2 * t] = (uint32_t)(offset / sizeof(float));
            spans[2 * t + 1] = (uint32_t)count;
            offset += rp_darena_round(count * sizeof(float), align);
        }
    }
    RP_TRY(rp_buffer_write_now(e->device, e->spans, 0, spans, bytes));
fail:
    return err;
}

static rp_err take_spans(rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    const size_t spans = (2 * (size_t)layout->trained_count + 2) * sizeof(uint32_t);
    const size_t norms = rp_grad_sumsq_bytes(layout->weight_bytes, layout->trained_count);
    rp_err err;
    RP_TRY(rp_darena_take(e->memory, spans, &e->spans));
    RP_TRY(rp_darena_take(e->memory, norms, &e->norms));
    for (uint32_t i = 0; i < RP_PROBE_NORMS && layout->probes; i++) {
        RP_TRY(rp_darena_take(e->memory, norms, &e->probe_norms[i]));
    }
    if (layout->probe_steps) {
        RP_TRY(rp_darena_take(e->memory, (layout->trained_count + 1) * sizeof(float), &e->shares));
    }
    if (layout->tie_bytes) {
        RP_TRY(rp_darena_take(e->memory, layout->tie_bytes, &e->tie_sum));
        RP_TRY(rp_darena_take(e->memory, layout->tie_bytes, &e->tie_term));
    }
    RP_TRY(write_spans(e, spans));
fail:
    return err;
}

static rp_err take_pixels(rp_opencl *e) {
    const size_t bytes = e->base.layout->pixel_bytes;
    float *value;
    rp_err err;
    RP_TRY(rp_darena_take(e->memory, bytes, &e->pixels));
    RP_TRY(RP_ARENA_NEW(e->arena, bytes / sizeof *value, &value));
    rp_pixel_values(&e->base.job->pixels, value);
    RP_TRY(rp_buffer_write_now(e->device, e->pixels, 0, value, bytes));
fail:
    return err;
}

static rp_err take_ends(rp_opencl *e) {
    const rp_job *job = e->base.job;
    const size_t workspace = e->base.layout->workspace_bytes;
    rp_err err = RP_OK;
    if (workspace) {
        RP_TRY(rp_darena_take(e->memory, workspace, &e->workspace));
    }
    if (e->base.layout->codec_bytes) {
        RP_TRY(rp_darena_take(e->memory, e->base.layout->codec_bytes, &e->encoded));
    }
    if (e->base.layout->loss_bytes) {
        RP_TRY(rp_darena_take(e->memory, e->base.layout->loss_bytes, &e->decoded));
        RP_TRY(rp_darena_take(e->memory, e->base.layout->loss_sums_bytes, &e->losses));
    }
    if (e->base.layout->pixel_bytes) {
        RP_TRY(take_pixels(e));
    }
    if (rp_job_is_last(job)) {
        size_t width = job->target_width;
        RP_TRY(rp_darena_take(e->memory, width * rp_job_pass_samples(job) * sizeof(float),
                              &e->target));
        RP_TRY(rp_darena_take(e->memory, RP_LOSS_RESULT * (size_t)job->batch * sizeof(float),
                              &e->results));
        if (rp_layout_row_result_bytes(job)) {
            RP_TRY(rp_darena_take(e->memory, rp_layout_row_result_bytes(job), &e->row_results));
        }
        if (rp_layout_overlap_bytes(job)) {
            RP_TRY(rp_darena_take(e->memory, rp_layout_overlap_bytes(job), &e->overlap));
        }
    }
fail:
    return err;
}

rp_err rp_opencl_take_memory(rp_opencl *e) {
    rp_err err;
    RP_TRY(rp_darena_open(e->arena, e->device, "slots", 0, 0, &e->memory));
    RP_TRY(take_params(e));
    RP_TRY(take_slots(e));
    RP_TRY(take_spans(e));
    RP_TRY(take_ends(e));
    rp_darena_seal(e->memory);
fail:
    return err;
}

void rp_opencl_free_memory(rp_opencl *e) {
    for (uint32_t i = 0; e->block && i < rp_block_total(e->base.layout); i++) {
        rp_darena_close(&e->block[i].arena);
    }
    rp_opencl_close_offload(e);
    for (uint32_t c = 0; e->chunk && c < e->base.layout->stashes; c++) {
        rp_darena_close(&e->chunk[c].arena);
    }
    rp_opencl_free_statistics(e);
    rp_darena_close(&e->memory);
}

/* ---- first weights --------------------------------------------------------------------------- */

static rp_err zero_all(rp_opencl *e) {
    const rp_layout *layout = e->base.layout;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < rp_block_total(layout); i++) {
        rp_buffer *whole = rp_darena_whole(e->block[i].arena);
        RP_TRY(rp_buffer_fill_zero(e->device, whole, 0, rp_buffer_bytes(whole)));
    }
    if (e->losses) {
        RP_TRY(rp_buffer_fill_zero(e->device, e->losses, 0, layout->loss_sums_bytes));
    }
    for (uint32_t i = 0; i < layout->param_count; i++) {
        if (layout->trained[i] == RP_NOT_TRAINED) {
            rp_buffer *buffer = e->param[i].value.buffer;
            RP_TRY(rp_buffer_fill_zero(e->device, buffer, 0, rp_buffer_bytes(buffer)));
        }
    }
fail:
    return err;
}

rp_err rp_opencl_init(rp_opencl *e) {
    const rp_job *job = e->base.job;
    rp_arena scratch;
    rp_arena_init(&scratch, "first weights", 0);
    rp_err err;
    RP_TRY(zero_all(e));
    for (uint32_t i = 0; i < e->base.layout->param_count; i++) {
        const rp_region all = {RP_REGION_EVERYWHERE, {0}, i};
        const size_t count = model_param(e, i)->count;
        float *values;
        RP_TRY(RP_ARENA_NEW(&scratch, count, &values));
        rp_model_init_param(job->model, e->base.layout->param_first + i, job->seed, values);
        RP_TRY(rp_opencl_write(&e->base, &all, 0, count * sizeof *values, values));
        rp_arena_finish(&scratch);
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}
