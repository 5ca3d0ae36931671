/* The tensors of a stage, and the bytes of everything in its memory. */
#include "codec/convert.h"
#include "nn/workspace.h"
#include "stage/layout_own.h"

#include <string.h>

static void add_tensor(rp_layout *layout, const rp_model *model, uint32_t producer, bool input) {
    rp_layout_tensor *tensor = &layout->tensor[layout->tensor_count];
    *tensor = (rp_layout_tensor){
        .producer = producer,
        .sample = *rp_model_shape(model, producer),
        .type = rp_model_type(model, producer),
        .input = input,
        .wants_grad = producer != RP_LAYER_DATA && model->wants_grad[producer],
        .storage = RP_NO_STORAGE,
        .grad = RP_NO_STORAGE,
    };
    if (producer == RP_LAYER_DATA) {
        layout->data_tensor = layout->tensor_count;
    } else {
        layout->tensor_of[producer] = layout->tensor_count;
    }
    layout->tensor_count++;
}

static rp_err collect_tensors(rp_arena *arena, const rp_job *job, rp_layout *layout) {
    const rp_model *model = job->model;
    rp_err err;
    rp_boundary boundary = {.count = 1, .producer = {RP_LAYER_DATA}};
    RP_TRY(RP_ARENA_NEW(arena, layout->layer_count + RP_CUT_TENSORS_MAX, &layout->tensor));
    RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &layout->tensor_of));
    memset(layout->tensor_of, 0xff, model->layer_count * sizeof *layout->tensor_of);
    layout->data_tensor = RP_NO_STORAGE;
    if (job->stage > 0) {
        RP_TRY(rp_cut_boundary(model, &job->cut, job->stage, &boundary));
    }
    for (uint32_t i = 0; i < boundary.count; i++) {
        add_tensor(layout, model, boundary.producer[i], true);
    }
    layout->input_count = boundary.count;
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        add_tensor(layout, model, rp_layout_layer(layout, i), false);
    }
    if (!rp_job_is_last(job)) {
        RP_TRY(rp_cut_boundary(model, &job->cut, job->stage + 1, &boundary));
        for (uint32_t i = 0; i < boundary.count; i++) {
            layout->outputs[i] = rp_layout_tensor_of(layout, boundary.producer[i]);
            layout->tensor[layout->outputs[i]].output = true;
        }
        layout->output_count = boundary.count;
    }
fail:
    return err;
}

/* ---- boundaries ------------------------------------------------------------------------------ */

/* Whether it is data of the set that the host sends, at the lower boundary of the first stage. */
static bool is_input(const rp_layout *layout, uint32_t tensor, bool upper) {
    return layout->tensor[tensor].producer == RP_LAYER_DATA && layout->first_layer == 0 && !upper;
}

/* One sample of a boundary tensor as sent: a row of bytes if the codec has scales, otherwise
 * elements. */
static rp_shape parcel_shape(const rp_layout *layout, const rp_model_view *view, uint32_t tensor,
                             rp_codec codec, bool upper) {
    const bool data = is_input(layout, tensor, upper);
    const rp_shape *sample = rp_model_view_shape(view, layout->tensor[tensor].producer);
    const size_t element = rp_dtype_bytes(rp_codec_dtype(codec));
    const size_t bytes = rp_codec_bytes(codec, rp_shape_count(sample));
    if (!data && bytes < layout->boundary_least) {
        return rp_shape_1((uint32_t)((layout->boundary_least + element - 1) / element));
    }
    return rp_codec_dtype(codec) == RP_U8 ? rp_shape_1((uint32_t)bytes) : *sample;
}

static rp_codec codec_of(const rp_layout *layout, uint32_t tensor, bool upper, bool grad) {
    const bool data = layout->tensor[tensor].producer == RP_LAYER_DATA;
    return (data && !is_input(layout, tensor, upper)) || layout->tensor[tensor].type != RP_F32
               ? RP_CODEC_F32
               : layout->codec[upper][grad];
}

rp_boundary_tensors rp_layout_boundary(const rp_layout *layout, bool upper, bool grad) {
    return rp_layout_boundary_at(layout, 0, upper, grad);
}

rp_boundary_tensors rp_layout_boundary_at(const rp_layout *layout, uint32_t time, bool upper,
                                          bool grad) {
    const rp_model_view view = rp_model_view_at(layout->model, time);
    rp_boundary_tensors out = {0};
    uint32_t count = upper ? layout->output_count : layout->input_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t t = upper ? layout->outputs[i] : i;
        if (grad && !layout->tensor[t].wants_grad) {
            continue;
        }
        out.tensor[out.count] = t;
        out.codec[out.count] = codec_of(layout, t, upper, grad);
        out.type[out.count] = out.codec[out.count] == RP_CODEC_F32
                                  ? (grad ? RP_F32 : layout->tensor[t].type)
                                  : rp_codec_dtype(out.codec[out.count]);
        out.sample[out.count] = parcel_shape(layout, &view, t, out.codec[out.count], upper);
        out.bytes[out.count] = rp_shape_count(&out.sample[out.count]) *
                               rp_dtype_bytes(rp_codec_dtype(out.codec[out.count]));
        out.sample_bytes += out.bytes[out.count++];
    }
    return out;
}

/* Bytes of a sample of the largest tensor that enters or leaves; encoded: only tensors with a
 * codec. */
static size_t most_at_boundaries(const rp_layout *layout, bool encoded) {
    size_t most = 0;
    for (uint32_t end = 0; end < 4; end++) {
        const rp_boundary_tensors all = rp_layout_boundary(layout, end % 2 > 0, end / 2 > 0);
        for (uint32_t i = 0; i < all.count; i++) {
            const bool counts = !encoded || all.codec[i] != RP_CODEC_F32;
            most = counts && all.bytes[i] > most ? all.bytes[i] : most;
        }
    }
    return most;
}

/* Bytes of a sample in f32 of the largest tensor that leaves encoded. */
static size_t most_encoded(const rp_layout *layout) {
    size_t most = 0;
    for (uint32_t upper = 0; upper < 2; upper++) {
        const rp_boundary_tensors all = rp_layout_boundary(layout, upper > 0, upper == 0);
        for (uint32_t i = 0; i < all.count; i++) {
            const size_t own = rp_layout_sample_bytes(&layout->tensor[all.tensor[i]].sample);
            most = all.codec[i] != RP_CODEC_F32 && own > most ? own : most;
        }
    }
    return most;
}

size_t rp_layout_part_max(const rp_layout *layout, const rp_job *job) {
    const size_t targets = (size_t)job->batch * job->target_width * sizeof(float);
    const size_t crossing = most_at_boundaries(layout, false) * rp_job_parcel_samples(job);
    return crossing > targets ? crossing : targets;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static rp_err count_params(rp_arena *arena, const rp_job *job, rp_layout *layout, uint32_t align) {
    const rp_model *model = job->model;
    layout->param_first = model->param_first[layout->first_layer];
    layout->param_count =
        model->param_first[layout->first_layer + layout->layer_count] - layout->param_first;
    rp_err err = RP_ARENA_NEW(arena, layout->param_count + 1, &layout->trained);
    for (uint32_t i = 0; err == RP_OK && i < layout->param_count; i++) {
        const rp_model_param *param = &model->param[layout->param_first + i];
        const size_t bytes = rp_darena_round(rp_layout_sample_bytes(&param->shape), align);
        const bool trained = param->role == RP_PARAM_TRAINED;
        layout->trained[i] = trained ? layout->trained_count++ : RP_NOT_TRAINED;
        *(trained ? &layout->weight_bytes : &layout->running_bytes) += bytes;
        layout->statistics_bytes += param->role == RP_PARAM_STATE ? bytes : 0;
        layout->gradient_bytes += trained ? rp_layout_sample_bytes(&param->shape) : 0;
    }
    layout->state_count = /* only updates need states */
        job->role == RP_ROLE_FORWARD ? 0 : rp_optim_state_count(&job->optim);
    return err;
}

size_t rp_layout_row_result_bytes(const rp_job *job) {
    const size_t rows = rp_job_target_rows(job);
    return rows > 1 ? RP_LOSS_RESULT * rows * rp_job_pass_samples(job) * sizeof(float) : 0;
}

uint32_t rp_layout_overlap_classes(const rp_job *job) {
    return rp_job_is_last(job) && job->loss_options.classes_first ? rp_model_out(job->model)->dim[0]
                                                                  : 0;
}

size_t rp_layout_overlap_bytes(const rp_job *job) {
    return 2 * (size_t)rp_layout_overlap_classes(job) * job->batch * sizeof(uint32_t);
}

/* Memory for targets, losses, and the norms of the gradients. */
static void count_ends(const rp_job *job, rp_layout *layout, uint32_t align) {
    const uint32_t trained = layout->trained_count;
    layout->scratch_bytes += rp_darena_round((2 * (size_t)trained + 2) * sizeof(uint32_t), align);
    const uint32_t sums = 1 + (layout->probes ? RP_PROBE_NORMS : 0);
    layout->scratch_bytes +=
        sums * rp_darena_round(rp_grad_sumsq_bytes(layout->weight_bytes, trained), align);
    if (layout->probe_steps) {
        layout->scratch_bytes += rp_darena_round(((size_t)trained + 1) * sizeof(float), align);
    }
    if (rp_job_is_last(job)) {
        size_t width = job->target_width;
        layout->scratch_bytes +=
            rp_darena_round(width * rp_job_pass_samples(job) * sizeof(float), align);
        layout->scratch_bytes +=
            rp_darena_round(RP_LOSS_RESULT * (size_t)job->batch * sizeof(float), align);
        layout->scratch_bytes += rp_darena_round(rp_layout_row_result_bytes(job), align);
        layout->scratch_bytes += rp_darena_round(rp_layout_overlap_bytes(job), align);
    }
}

static void count_scratch(const rp_job *job, rp_layout *layout, rp_gemm_choice gemm,
                          uint32_t align) {
    const uint32_t pass = rp_job_pass_samples(job);
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        uint32_t index = rp_layout_layer(layout, i);
        const size_t work = rp_model_workspace(job->model, index, pass, gemm);
        if (work > layout->workspace_bytes) {
            layout->workspace_bytes = work;
            layout->workspace_layer = index;
        }
    }
    for (uint32_t i = 0; i < layout->recompute_count; i++) {
        layout->group_bytes += rp_darena_round(layout->recompute_bytes[i], align);
    }
    for (uint32_t i = 0; i < layout->grad.kept_count; i++) {
        layout->deferred_bytes += rp_darena_round(layout->grad.kept_bytes[i] * pass, align);
    }
    for (uint32_t i = 0; i < layout->value.pool_count; i++) {
        layout->scratch_bytes += rp_darena_round(layout->value.pool_bytes[i] * pass, align);
    }
    for (uint32_t i = 0; i < layout->grad.pool_count; i++) {
        layout->scratch_bytes += rp_darena_round(layout->grad.pool_bytes[i] * pass, align);
    }
    layout->scratch_bytes += rp_darena_round(layout->workspace_bytes, align);
    layout->codec_bytes = most_at_boundaries(layout, true) * pass;
    layout->scratch_bytes += rp_darena_round(layout->codec_bytes, align);
    layout->loss_bytes = most_encoded(layout);
    if (layout->loss_bytes) {
        layout->loss_sums_bytes = 2 * RP_CODEC_LOSS_FLOATS * sizeof(float);
        layout->scratch_bytes += rp_darena_round(layout->loss_bytes, align) +
                                 rp_darena_round(layout->loss_sums_bytes, align);
    }
    if (layout->first_layer == 0 && layout->codec[0][0] == RP_CODEC_UINT8) {
        layout->pixel_bytes = job->pixels.groups * RP_PIXEL_LEVELS * sizeof(float);
        layout->scratch_bytes += rp_darena_round(layout->pixel_bytes, align);
    }
}

rp_err rp_layout_make(rp_arena *arena, const rp_job *job, rp_gemm_choice gemm, uint32_t align_bytes,
                      rp_layout **out) {
    rp_err err;
    rp_layout *layout;
    RP_TRY(RP_ARENA_NEW(arena, 1, &layout));
    layout->model = job->model;
    layout->first_layer = job->cut.first[job->stage];
    layout->layer_count = job->cut.first[job->stage + 1] - layout->first_layer;
    memcpy(layout->codec, job->codec, sizeof layout->codec);
    RP_TRY(collect_tensors(arena, job, layout));
    RP_TRY(rp_layout_place(arena, job, layout));
    RP_TRY(rp_layout_count(job, layout));
    RP_TRY(count_params(arena, job, layout, align_bytes));
    RP_TRY(rp_layout_find_uses(arena, job, layout, align_bytes));
    RP_TRY(rp_layout_part_stash(arena, job, layout, align_bytes));
    count_ends(job, layout, align_bytes);
    count_scratch(job, layout, gemm, align_bytes);
    uint32_t flat = layout->gradients + layout->peers + rp_layout_weight_copies(layout) +
                    layout->probes + layout->replicas * layout->state_count;
    layout->kept = layout->statistics_bytes ? layout->kept : 0;
    layout->total_bytes = layout->weight_bytes * flat + layout->running_bytes +
                          layout->kept * layout->statistics_bytes +
                          layout->stashes * layout->leave_bytes +
                          layout->slots * (layout->slot_bytes - layout->leave_bytes) +
                          layout->deferred_slots * layout->deferred_bytes + layout->scratch_bytes +
                          layout->group_bytes;
    *out = layout;
fail:
    return err;
}

/* The layer whose output needs most memory in a slot, for the error message. */
static uint32_t largest_layer(const rp_layout *layout) {
    uint32_t best = layout->input_count;
    for (uint32_t t = layout->input_count; t < layout->tensor_count; t++) {
        if (rp_layout_sample_bytes(&layout->tensor[t].sample) >
            rp_layout_sample_bytes(&layout->tensor[best].sample)) {
            best = t;
        }
    }
    return layout->tensor[best].producer;
}

rp_err rp_layout_check(const rp_layout *layout, const rp_job *job, size_t limit_bytes) {
    if (layout->total_bytes <= limit_bytes) {
        return RP_OK;
    }
    const double mib = 1.0 / (1 << 20);
    uint32_t layer = largest_layer(layout);
    return rp_fail(
        RP_ERR_LIMIT,
        "stage %u needs %.1f MiB of device memory, but the limit is %.1f: %u copies of the weights "
        "of %.1f each, gradients %.1f, optimiser %.1f, %u slots of %.1f, less %.1f that is "
        "offloaded, recomputation %.1f, scratch %.1f; the largest activation is that of %s, %.2f "
        "MiB for a microbatch of %u. Use smaller microbatches, recompute, another schedule, more "
        "stages, or more memory (ring.memory_mb, the board's memory_fraction)",
        job->stage, (double)layout->total_bytes * mib, (double)limit_bytes * mib,
        rp_layout_weight_copies(layout) + layout->probes, (double)layout->weight_bytes * mib,
        (double)(layout->weight_bytes * layout->gradients) * mib,
        (double)(layout->weight_bytes * layout->state_count * layout->replicas) * mib,
        layout->slots, (double)layout->slot_bytes * mib,
        (double)((layout->slots - layout->stashes) * layout->leave_bytes) * mib,
        (double)layout->group_bytes * mib, (double)layout->scratch_bytes * mib,
        job->model->layer[layer].name,
        (double)(rp_layout_sample_bytes(&job->model->plan[layer].out) * rp_job_pass_samples(job)) *
            mib,
        rp_job_pass_samples(job));
}
