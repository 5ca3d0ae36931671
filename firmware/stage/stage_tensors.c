/* Tensors by name, to and from the host: exports, checkpoints, start weights. */
#include <stdio.h>
#include <string.h>

#include "stage/stage_own.h"

/* One exported tensor: a value of the evaluated model (set NO_SET, no state), of a set, or a state
 * of a set's optimiser. */
#define NO_SET UINT32_MAX

typedef struct {
    const rp_stage_param *param; /* NULL: there is no such tensor */
    uint32_t set;
    const char *state; /* NULL: the value */
    rp_buffer *buffer;
} rp_export;

static const rp_model_param *model_param(const rp_stage *stage, const rp_stage_param *param) {
    return &stage->job->model->param[param->model_param];
}

static bool is_centre(const rp_stage *stage, uint32_t set) {
    return stage->layout->centres && set == stage->job->method.replicas;
}

/* Sets of a lean stage that it does not hold are those of the replica that stands in for them. */
static const rp_flat *set_weights(const rp_stage *stage, uint32_t set) {
    const rp_versions *versions = &stage->versions;
    if (is_centre(stage, set)) {
        return &stage->centre;
    }
    const uint32_t block = stage->job->method.weights == RP_WEIGHTS_DOUBLE
                               ? rp_versions_older(versions)
                               : versions->latest[set % versions->replicas];
    return &stage->weights[block];
}

/* Optimisers there are one of, or one a replica. */
static uint32_t optimiser_sets(const rp_stage *stage) {
    const uint32_t sets = rp_method_optimisers(&stage->job->method);
    return sets > 0 ? sets : 1;
}

static rp_export find_value(const rp_stage *stage, uint32_t *index) {
    for (uint32_t i = 0; i < stage->param_count; i++) {
        const rp_stage_param *param = &stage->param[i];
        if (model_param(stage, param)->role == RP_PARAM_SCRATCH || (*index)-- > 0) {
            continue;
        }
        const bool trained = param->trained != RP_NOT_TRAINED;
        rp_buffer *buffer =
            trained ? rp_stage_evaluated(stage)->part[param->trained] : param->value.buffer;
        return (rp_export){param, NO_SET, NULL, buffer};
    }
    return (rp_export){0};
}

/* Tensor `index` of the export list: the evaluated model, then the sets, then the states. */
static rp_export find_index(const rp_stage *stage, uint32_t index) {
    const uint32_t states = stage->layout->state_count;
    const uint32_t sets = rp_method_set_count(&stage->job->method);
    rp_export out = find_value(stage, &index);
    for (uint32_t i = 0; !out.param && i < stage->param_count; i++) {
        const rp_stage_param *param = &stage->param[i];
        if (param->trained == RP_NOT_TRAINED) {
            continue;
        }
        if (index < sets) {
            return (rp_export){param, index, NULL, set_weights(stage, index)->part[param->trained]};
        }
        index -= sets;
        if (index < optimiser_sets(stage) * states) {
            const uint32_t replica = index / states % stage->versions.replicas;
            const uint32_t state = index % states;
            return (rp_export){param, stage->layout->centres ? index / states : NO_SET,
                               stage->job->optim.kind->state_names[state],
                               stage->state[replica * states + state].part[param->trained]};
        }
        index -= optimiser_sets(stage) * states;
    }
    return out;
}

uint32_t rp_stage_tensor_count(const rp_stage *stage, bool states) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < stage->param_count; i++) {
        count += model_param(stage, &stage->param[i])->role != RP_PARAM_SCRATCH;
    }
    const uint32_t more = rp_method_set_count(&stage->job->method) +
                          optimiser_sets(stage) * stage->layout->state_count;
    return states ? count + stage->trained_count * more : count;
}

static void name_of(const rp_stage *stage, const rp_export *tensor, char *name, size_t bytes) {
    char prefix[32] = "";
    if (tensor->set != NO_SET) {
        rp_method_set_prefix(&stage->job->method, tensor->set, prefix, sizeof prefix);
    }
    (void)snprintf(name, bytes, "%s%s%s%s%s", prefix, tensor->state ? "optim." : "",
                   tensor->state ? tensor->state : "", tensor->state ? "." : "",
                   model_param(stage, tensor->param)->name);
}

rp_err rp_stage_tensor_at(const rp_stage *stage, uint32_t index, char *name, size_t name_bytes,
                          rp_shape *shape) {
    rp_export tensor = find_index(stage, index);
    if (!tensor.param) {
        return rp_fail(RP_ERR_USAGE, "stage %u has no tensor %u", stage->job->stage, index);
    }
    name_of(stage, &tensor, name, name_bytes);
    *shape = model_param(stage, tensor.param)->shape;
    return RP_OK;
}

rp_err rp_stage_tensor_read(rp_stage *stage, uint32_t index, size_t first, size_t count,
                            float *out) {
    rp_export tensor = find_index(stage, index);
    const size_t total = tensor.param ? model_param(stage, tensor.param)->count : 0;
    if (first > total || count > total - first) {
        return rp_fail(RP_ERR_USAGE, "stage %u: tensor %u has no elements [%zu, +%zu)",
                       stage->job->stage, index, first, count);
    }
    rp_err err = rp_stage_evaluated_fill(stage);
    if (err != RP_OK) {
        return err;
    }
    return rp_buffer_read_now(stage->device, out, tensor.buffer, first * sizeof(float),
                              count * sizeof(float));
}

rp_err rp_stage_write_param(rp_stage *stage, uint32_t param, size_t first, size_t count,
                            const float *values) {
    const rp_stage_param *at = &stage->param[param];
    const size_t offset = first * sizeof(float);
    rp_err err = RP_OK;
    if (at->trained == RP_NOT_TRAINED) {
        return rp_buffer_write_now(stage->device, at->value.buffer, offset, values,
                                   count * sizeof(float));
    }
    for (uint32_t v = 0; v < stage->layout->versions; v++) {
        RP_TRY(rp_buffer_write_now(stage->device, stage->weights[v].part[at->trained], offset,
                                   values, count * sizeof(float)));
    }
    if (stage->centre.arena) {
        RP_TRY(rp_buffer_write_now(stage->device, stage->centre.part[at->trained], offset, values,
                                   count * sizeof(float)));
    }
    stage->mean_valid = false;
fail:
    return err;
}

/* A value of the evaluated model goes everywhere; what the sets hold comes after it and differs. */
static rp_err write_export(rp_stage *stage, const rp_export *tensor, size_t first, size_t count,
                           const float *values) {
    if (tensor->set == NO_SET && !tensor->state) {
        return rp_stage_write_param(stage, (uint32_t)(tensor->param - stage->param), first, count,
                                    values);
    }
    if (stage->layout->centres && tensor->set >= stage->versions.replicas &&
        !is_centre(stage, tensor->set)) {
        return RP_OK; /* a lean stage does not hold it */
    }
    stage->mean_valid = false;
    return rp_buffer_write_now(stage->device, tensor->buffer, first * sizeof(float), values,
                               count * sizeof(float));
}

rp_err rp_stage_tensor_write(rp_stage *stage, const char *name, size_t first, size_t count,
                             const float *values) {
    uint32_t total = rp_stage_tensor_count(stage, true);
    for (uint32_t i = 0; i < total; i++) {
        rp_export tensor = find_index(stage, i);
        char own[256];
        name_of(stage, &tensor, own, sizeof own);
        if (strcmp(own, name) != 0) {
            continue;
        }
        const size_t all = model_param(stage, tensor.param)->count;
        if (first > all || count > all - first) {
            return rp_fail(RP_ERR_SHAPE, "tensor %s has %zu elements, not [%zu, +%zu)", name, all,
                           first, count);
        }
        return write_export(stage, &tensor, first, count, values);
    }
    return rp_fail(RP_ERR_USAGE, "stage %u has no tensor '%s'", stage->job->stage, name);
}
