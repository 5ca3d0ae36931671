/* Tensors by name, to and from the host: exports, checkpoints, start weights. */
#include <stdio.h>
#include <string.h>

#include "stage/stage_own.h"

/* Tensor `index` of the export list: per parameter its value, then (with states) its states. */
typedef struct {
    const rp_model_param *param;
    rp_buffer *buffer;
    const char *state; /* NULL: the value */
} rp_export;

static rp_export find_index(const rp_stage *stage, uint32_t index) {
    for (uint32_t i = 0; i < stage->param_count; i++) {
        const rp_stage_param *param = &stage->param[i];
        const rp_model_param *model_param = &stage->job->model->param[param->model_param];
        if (model_param->role != RP_PARAM_SCRATCH && index-- == 0) {
            return (rp_export){model_param, param->value.buffer, NULL};
        }
    }
    for (uint32_t i = 0; i < stage->param_count; i++) {
        const rp_stage_param *param = &stage->param[i];
        uint32_t states = param->grad.buffer ? stage->layout->state_count : 0;
        if (index < states) {
            return (rp_export){&stage->job->model->param[param->model_param], param->state[index],
                               stage->job->optim.kind->state_names[index]};
        }
        index -= states;
    }
    return (rp_export){0};
}

uint32_t rp_stage_tensor_count(const rp_stage *stage, bool states) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < stage->param_count; i++) {
        count += stage->job->model->param[stage->param[i].model_param].role != RP_PARAM_SCRATCH;
    }
    return states ? count + stage->trained_count * stage->layout->state_count : count;
}

static void name_of(const rp_export *tensor, char *name, size_t name_bytes) {
    if (tensor->state) {
        (void)snprintf(name, name_bytes, "optim.%s.%s", tensor->state, tensor->param->name);
    } else {
        (void)snprintf(name, name_bytes, "%s", tensor->param->name);
    }
}

rp_err rp_stage_tensor_at(const rp_stage *stage, uint32_t index, char *name, size_t name_bytes,
                          rp_shape *shape) {
    rp_export tensor = find_index(stage, index);
    if (!tensor.param) {
        return rp_fail(RP_ERR_USAGE, "stage %u has no tensor %u", stage->job->stage, index);
    }
    name_of(&tensor, name, name_bytes);
    *shape = tensor.param->shape;
    return RP_OK;
}

rp_err rp_stage_tensor_read(rp_stage *stage, uint32_t index, size_t first, size_t count,
                            float *out) {
    rp_export tensor = find_index(stage, index);
    if (!tensor.param || first > tensor.param->count || count > tensor.param->count - first) {
        return rp_fail(RP_ERR_USAGE, "stage %u: tensor %u has no elements [%zu, +%zu)",
                       stage->job->stage, index, first, count);
    }
    return rp_buffer_read_now(stage->device, out, tensor.buffer, first * sizeof(float),
                              count * sizeof(float));
}

rp_err rp_stage_tensor_write(rp_stage *stage, const char *name, size_t first, size_t count,
                             const float *values) {
    uint32_t total = rp_stage_tensor_count(stage, true);
    for (uint32_t i = 0; i < total; i++) {
        rp_export tensor = find_index(stage, i);
        char own[256];
        name_of(&tensor, own, sizeof own);
        if (strcmp(own, name) != 0) {
            continue;
        }
        if (first > tensor.param->count || count > tensor.param->count - first) {
            return rp_fail(RP_ERR_SHAPE, "tensor %s has %zu elements, not [%zu, +%zu)", name,
                           tensor.param->count, first, count);
        }
        return rp_buffer_write_now(stage->device, tensor.buffer, first * sizeof(float), values,
                                   count * sizeof(float));
    }
    return rp_fail(RP_ERR_USAGE, "stage %u has no tensor '%s'", stage->job->stage, name);
}
