/* Building a stage: device memory by its layout, first weights, warm-up. */
#include <string.h>

#include "base/log.h"
#include "stage/stage_own.h"

static bool is_trained(const rp_model_param *param) {
    return param->role == RP_PARAM_TRAINED;
}

static rp_err open_flat(rp_stage *stage, const char *name, rp_flat *out, uint32_t *count) {
    const size_t bytes = stage->layout->weight_bytes;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(stage->arena, stage->param_count + 1, &out->part));
    RP_TRY(rp_darena_open(stage->arena, stage->device, name, 0, bytes ? bytes : 1, &out->arena));
    for (uint32_t i = 0; i < stage->param_count; i++) {
        const rp_stage_param *param = &stage->param[i];
        if (param->trained != RP_NOT_TRAINED) {
            const size_t part = rp_shape_count(&param->grad.shape) * sizeof(float);
            RP_TRY(rp_darena_take(out->arena, part, &out->part[param->trained]));
        }
    }
    rp_darena_seal(out->arena);
    *count += 1;
fail:
    return err;
}

static rp_err open_flats(rp_stage *stage) {
    const rp_layout *layout = stage->layout;
    const uint32_t states = layout->replicas * layout->state_count;
    rp_stage_copies *held = &stage->copies;
    uint32_t others = 0;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(stage->arena, layout->versions, &stage->weights));
    RP_TRY(RP_ARENA_NEW(stage->arena, states + 1, &stage->state));
    for (uint32_t v = 0; v < layout->versions; v++) {
        RP_TRY(open_flat(stage, "weights", &stage->weights[v], &held->weights));
    }
    for (uint32_t p = 0; p < layout->predicted; p++) {
        RP_TRY(open_flat(stage, "predicted weights", &stage->predicted[p], &held->weights));
    }
    if (layout->centres) {
        RP_TRY(open_flat(stage, "centre", &stage->centre, &held->weights));
    }
    if (layout->scratches) {
        RP_TRY(open_flat(stage, "scratch weights", &stage->scratch, &held->weights));
    }
    for (uint32_t s = 0; s < states; s++) {
        RP_TRY(open_flat(stage, "optimiser", &stage->state[s], &others));
    }
    for (uint32_t p = 0; p < layout->probes; p++) {
        RP_TRY(open_flat(stage, "probe", &stage->probe[p], &held->probe));
    }
    for (uint32_t i = 0; i < RP_TRUST_ENTRIES && layout->probes; i++) {
        RP_TRY(RP_ARENA_NEW(stage->arena, stage->trained_count + 1, &stage->trust.share[i]));
    }
    RP_TRY(open_flat(stage, "gradients", &stage->grads, &others));
fail:
    return err;
}

/* Every block of trained values, to do the same to each: NULL behind the last. */
static rp_flat *flat_at(rp_stage *stage, uint32_t index) {
    const rp_layout *layout = stage->layout;
    const struct {
        rp_flat *first;
        uint32_t count;
    } groups[] = {
        {stage->weights, layout->versions},
        {stage->predicted, layout->predicted},
        {&stage->centre, layout->centres},
        {&stage->scratch, layout->scratches},
        {stage->state, layout->replicas * layout->state_count},
        {stage->probe, layout->probes},
        {&stage->grads, 1},
    };
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        if (groups[g].first && index < groups[g].count) {
            return &groups[g].first[index];
        }
        index -= groups[g].first ? groups[g].count : 0;
    }
    return NULL;
}

static rp_err take_params(rp_stage *stage) {
    const rp_model *model = stage->job->model;
    uint32_t end_layer = stage->layout->first_layer + stage->layout->layer_count;
    stage->param_first = model->param_first[stage->layout->first_layer];
    stage->param_count = model->param_first[end_layer] - stage->param_first;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(stage->arena, stage->param_count + 1, &stage->param));
    for (uint32_t i = 0; i < stage->param_count; i++) {
        const rp_model_param *model_param = &model->param[stage->param_first + i];
        rp_stage_param *param = &stage->param[i];
        const bool trained = is_trained(model_param);
        param->model_param = stage->param_first + i;
        param->trained = trained ? stage->trained_count++ : RP_NOT_TRAINED;
        param->value.shape = model_param->shape;
        param->grad.shape = model_param->shape;
        if (!trained) {
            RP_TRY(rp_darena_take(stage->memory, model_param->count * sizeof(float),
                                  &param->value.buffer));
        }
    }
    RP_TRY(open_flats(stage));
    for (uint32_t i = 0; i < stage->param_count; i++) {
        rp_stage_param *param = &stage->param[i];
        if (param->trained != RP_NOT_TRAINED) {
            param->grad.buffer = stage->grads.part[param->trained];
        }
    }
    rp_stage_see(stage, &stage->weights[0]);
fail:
    return err;
}

static rp_err take_all(rp_stage *stage, const size_t *sample_bytes, uint32_t count,
                       rp_buffer ***out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(stage->arena, count + 1, out));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(rp_darena_take(stage->memory, sample_bytes[i] * stage->job->micro, &(*out)[i]));
    }
fail:
    return err;
}

static rp_err take_slot(rp_stage *stage, rp_slot *slot) {
    const rp_layout *layout = stage->layout;
    rp_err err;
    RP_TRY(take_all(stage, layout->value.kept_bytes, layout->value.kept_count, &slot->kept));
    RP_TRY(RP_ARENA_NEW(stage->arena, layout->layer_count * RP_LAYER_SAVED_MAX + 1, &slot->saved));
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        const rp_layer_plan *plan = &stage->job->model->plan[layout->first_layer + i];
        for (uint32_t s = 0; s < plan->saved_count; s++) {
            size_t bytes =
                plan->saved[s].fixed_bytes + plan->saved[s].sample_bytes * stage->job->micro;
            RP_TRY(rp_darena_take(stage->memory, bytes, &slot->saved[i * RP_LAYER_SAVED_MAX + s]));
        }
    }
fail:
    return err;
}

static rp_err take_slots(rp_stage *stage) {
    const rp_layout *layout = stage->layout;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(stage->arena, layout->slots, &stage->slot));
    for (uint32_t i = 0; i < layout->slots; i++) {
        RP_TRY(take_slot(stage, &stage->slot[i]));
    }
    RP_TRY(RP_ARENA_NEW(stage->arena, layout->debts + 1, &stage->debt));
    for (uint32_t i = 0; i < layout->debts; i++) {
        RP_TRY(take_all(stage, layout->grad.kept_bytes, layout->grad.kept_count,
                        &stage->debt[i].kept));
    }
    RP_TRY(take_all(stage, layout->value.pool_bytes, layout->value.pool_count, &stage->value_pool));
    RP_TRY(take_all(stage, layout->grad.pool_bytes, layout->grad.pool_count, &stage->grad_pool));
    RP_TRY(RP_ARENA_NEW(stage->arena, layout->tensor_count, &stage->value));
    RP_TRY(RP_ARENA_NEW(stage->arena, layout->tensor_count, &stage->grad));
fail:
    return err;
}

/* Where each trained parameter lies in the flat blocks: takes of a chunked arena follow each other,
 * each rounded up. */
static rp_err take_spans(rp_stage *stage) {
    uint32_t *spans;
    rp_err err;
    uint32_t align = rp_device_facts_of(stage->device)->align_bytes;
    size_t offset = 0;
    uint32_t t = 0;
    RP_TRY(RP_ARENA_NEW(stage->arena, 2 * (size_t)stage->trained_count + 2, &spans));
    for (uint32_t i = 0; i < stage->param_count; i++) {
        if (stage->param[i].trained == RP_NOT_TRAINED) {
            continue;
        }
        size_t count = rp_shape_count(&stage->param[i].grad.shape);
        spans[2 * t] = (uint32_t)(offset / sizeof(float));
        spans[2 * t + 1] = (uint32_t)count;
        offset += rp_darena_round(count * sizeof(float), align);
        t++;
    }
    size_t bytes = (2 * (size_t)stage->trained_count + 2) * sizeof(uint32_t);
    RP_TRY(rp_darena_take(stage->memory, bytes, &stage->spans));
    RP_TRY(rp_darena_take(stage->memory,
                          rp_grad_sumsq_bytes(stage->layout->weight_bytes, stage->trained_count),
                          &stage->norms));
    for (uint32_t i = 0; i < RP_PROBE_NORMS && stage->layout->probes; i++) {
        RP_TRY(rp_darena_take(
            stage->memory, rp_grad_sumsq_bytes(stage->layout->weight_bytes, stage->trained_count),
            &stage->probe_norms[i]));
    }
    if (stage->layout->probe_steps) {
        RP_TRY(rp_darena_take(stage->memory, (stage->trained_count + 1) * sizeof(float),
                              &stage->shares));
    }
    RP_TRY(rp_buffer_write_now(stage->device, stage->spans, 0, spans, bytes));
fail:
    return err;
}

static rp_err take_ends(rp_stage *stage) {
    const rp_job *job = stage->job;
    rp_err err = RP_OK;
    if (stage->layout->workspace_bytes) {
        RP_TRY(rp_darena_take(stage->memory, stage->layout->workspace_bytes, &stage->workspace));
    }
    if (rp_job_is_last(job)) {
        size_t width = job->loss->class_target ? 1 : job->target_width;
        RP_TRY(rp_darena_take(stage->memory, width * job->micro * sizeof(float), &stage->target));
        RP_TRY(
            rp_darena_take(stage->memory, 2 * (size_t)job->batch * sizeof(float), &stage->results));
    }
fail:
    return err;
}

rp_err rp_stage_reset(rp_stage *stage) {
    rp_err err = RP_OK;
    const rp_flat *flat;
    for (uint32_t i = 0; (flat = flat_at(stage, i)); i++) {
        rp_buffer *whole = rp_darena_whole(flat->arena);
        RP_TRY(rp_buffer_fill_zero(stage->device, whole, 0, rp_buffer_bytes(whole)));
    }
    for (uint32_t i = 0; i < stage->param_count; i++) {
        rp_buffer *buffer = stage->param[i].value.buffer;
        RP_TRY(rp_buffer_fill_zero(stage->device, buffer, 0, rp_buffer_bytes(buffer)));
    }
    stage->accumulated = 0;
    memset(stage->applied, 0, sizeof stage->applied);
fail:
    return err;
}

/* What else a step of the job's method launches. */
static rp_err warm_up_method(rp_stage *stage) {
    const rp_version_step by = {0};
    const rp_sight sight = {.ahead = 1};
    rp_err err = RP_OK;
    if (stage->trained_count == 0) {
        return RP_OK;
    }
    /* the step that ends a period, so that the average is launched as well */
    uint64_t step = (uint64_t)stage->versions.replicas * stage->job->method.period;
    RP_TRY(rp_stage_run_update(stage, &by, step > 0 ? step - 1 : 0, 1.0f));
    if (stage->layout->predicted) {
        const bool shares = stage->job->method.horizon == RP_HORIZON_MEASURED;
        RP_TRY(rp_stage_run_prediction(stage, &sight, shares ? stage->trust.share[0] : NULL,
                                       &stage->predicted[0]));
    }
fail:
    return err;
}

/* A dry step on zeros builds every kernel that the run will use, and none other. */
static rp_err warm_up(rp_stage *stage) {
    const rp_job *job = stage->job;
    const rp_layout *layout = stage->layout;
    bool last = rp_job_is_last(job);
    rp_op op = {.kind = RP_OP_FORWARD, .samples = {0, job->micro}};
    size_t bytes = 16;
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        size_t tensor = rp_shape_count(&layout->tensor[t].sample) * job->micro * sizeof(float);
        bytes = tensor > bytes ? tensor : bytes;
    }
    bytes += ((size_t)job->batch * 2 + stage->trained_count) * sizeof(float);
    rp_arena scratch; /* host zeros for every boundary tensor, freed at the end */
    rp_arena_init(&scratch, "warm-up", 0);
    rp_err err;
    char *zeros;
    RP_TRY(RP_ARENA_NEW(&scratch, bytes, &zeros));
    const void *in[RP_CUT_TENSORS_MAX];
    void *out[RP_CUT_TENSORS_MAX];
    for (uint32_t i = 0; i < RP_CUT_TENSORS_MAX; i++) {
        in[i] = zeros;
        out[i] = zeros;
    }
    if (last) {
        RP_TRY(rp_stage_run_forward(stage, &op, in, out, (rp_pass){.evaluating = true}));
        RP_TRY(rp_stage_evaluate(stage, &op, job->micro, zeros));
    }
    for (int twice = 0; twice < 2; twice++) { /* writing and adding gradients */
        op.kind = RP_OP_FORWARD;
        RP_TRY(rp_stage_run_forward(stage, &op, in, out, (rp_pass){.training = true}));
        op.kind = job->method.kind->split_backward ? RP_OP_BACKWARD_INPUT : RP_OP_BACKWARD;
        RP_TRY(rp_stage_run_backward(stage, &op, in, out));
        if (job->method.kind->split_backward) {
            op.kind = RP_OP_BACKWARD_WEIGHT;
            RP_TRY(rp_stage_run_backward(stage, &op, in, out));
        }
        RP_TRY(rp_device_drain(stage->device));
    }
    RP_TRY(rp_stage_norms(stage, (float *)(void *)zeros));
    RP_TRY(warm_up_method(stage));
fail:;
    rp_err drained = rp_device_drain(stage->device); /* what is queued still reads the zeros */
    rp_arena_finish(&scratch);
    return err != RP_OK ? err : drained;
}

static rp_err init_weights(rp_stage *stage) {
    const rp_model *model = stage->job->model;
    rp_arena scratch;
    rp_arena_init(&scratch, "first weights", 0);
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < stage->param_count; i++) {
        uint32_t index = stage->param[i].model_param;
        const rp_model_param *param = &model->param[index];
        float *values;
        RP_TRY(RP_ARENA_NEW(&scratch, param->count, &values));
        rp_model_init_param(model, index, stage->job->seed, values);
        RP_TRY(rp_stage_write_param(stage, i, 0, param->count, values));
        rp_arena_finish(&scratch);
    }
fail:
    rp_arena_finish(&scratch);
    return err;
}

static size_t limit_bytes(const rp_stage *stage) {
    if (stage->job->memory_mib) {
        return (size_t)stage->job->memory_mib << 20;
    }
    return (size_t)rp_device_facts_of(stage->device)->memory_bytes;
}

rp_err rp_stage_prepare(rp_arena *arena, rp_device *device, const rp_job *job, rp_stage **out) {
    rp_err err;
    rp_stage *stage = NULL;
    rp_layout *layout;
    RP_TRY(RP_ARENA_NEW(arena, 1, &stage));
    stage->arena = arena;
    stage->device = device;
    stage->job = job;
    RP_TRY(rp_layout_make(arena, job, rp_device_gemm(device),
                          rp_device_facts_of(device)->align_bytes, &layout));
    stage->layout = layout;
    RP_TRY(rp_layout_check(layout, job, limit_bytes(stage)));
    RP_TRY(rp_versions_open(arena, job, layout->slots, &stage->versions));
    RP_TRY(rp_darena_open(arena, device, "slots", 0, 0, &stage->memory));
    RP_TRY(take_params(stage));
    RP_TRY(take_slots(stage));
    RP_TRY(take_spans(stage));
    RP_TRY(take_ends(stage));
    rp_darena_seal(stage->memory);
    RP_TRY(rp_device_drain(device));
    RP_TRY(warm_up(stage));
    RP_TRY(rp_stage_reset(stage));
    RP_TRY(init_weights(stage));
    rp_stage_start(stage, job->step_first);
    RP_TRY(rp_device_drain(device));
    *out = stage;
    return RP_OK;
fail:
    rp_stage_destroy(&stage);
    return err;
}

void rp_stage_destroy(rp_stage **stage_pointer) {
    rp_stage *stage = *stage_pointer;
    if (!stage) {
        return;
    }
    if (rp_device_drain(stage->device) != RP_OK) {
        rp_log_warn("the device's queue ends with an error");
    }
    rp_flat *flat;
    for (uint32_t i = 0; stage->layout && (flat = flat_at(stage, i)); i++) {
        rp_darena_close(&flat->arena);
    }
    rp_darena_close(&stage->memory);
    *stage_pointer = NULL;
}
