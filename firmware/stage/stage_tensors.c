/* Tensors by name, to and from the host: exports, checkpoints, initial weights. */
#include <stdio.h>
#include <string.h>

#include "stage/stage_own.h"

/* One exported tensor: a value of the evaluated model (set NO_SET, state NULL), a value of a set,
 * or an optimiser state of a set. */
#define NO_SET UINT32_MAX

typedef struct {
    const rp_model_param *of; /* NULL: unknown tensor */
    uint32_t param;           /* index within the stage */
    uint32_t set;
    const char *state; /* NULL: the value */
    rp_block block;    /* if it is trained */
} rp_export;

static const rp_model_param *model_param(const rp_stage *stage, uint32_t param) {
    return &stage->job->model->param[stage->layout->param_first + param];
}

static rp_export make_export(const rp_stage *stage, uint32_t param, uint32_t set, const char *state,
                             rp_block block) {
    return (rp_export){model_param(stage, param), param, set, state, block};
}

static bool is_centre(const rp_stage *stage, uint32_t set) {
    return stage->layout->copies.centres && set == stage->job->method.replicas;
}

/* The block of a set's weights. A lean stage holds fewer replicas than there are sets; a set
 * without its own replica reads from the one that is used instead. */
static rp_block set_weights(const rp_stage *stage, uint32_t set) {
    const rp_versions *versions = &stage->versions;
    if (is_centre(stage, set)) {
        return (rp_block){RP_BLOCK_CENTRE, 0};
    }
    const uint32_t block = stage->job->method.weights == RP_WEIGHTS_DOUBLE
                               ? rp_versions_older(versions)
                               : versions->latest[set % versions->replicas];
    return (rp_block){RP_BLOCK_WEIGHTS, block};
}

/* The number of optimisers: one, or one for each replica. */
static uint32_t optimiser_sets(const rp_stage *stage) {
    const uint32_t sets = rp_method_optimisers(&stage->job->method);
    return sets > 0 ? sets : 1;
}

static rp_export find_value(const rp_stage *stage, uint32_t *index) {
    for (uint32_t i = 0; i < stage->layout->param_count; i++) {
        if (model_param(stage, i)->role != RP_PARAM_SCRATCH && (*index)-- == 0) {
            return make_export(stage, i, NO_SET, NULL, rp_stage_evaluated(stage));
        }
    }
    return (rp_export){0};
}

/* Tensor `index` of the export list: the evaluated model, then the sets, then the states. */
static rp_export find_index(const rp_stage *stage, uint32_t index) {
    const uint32_t states = stage->layout->state_count;
    const uint32_t sets = rp_method_set_count(&stage->job->method);
    rp_export out = find_value(stage, &index);
    for (uint32_t i = 0; !out.of && i < stage->layout->param_count; i++) {
        if (stage->layout->trained[i] == RP_NOT_TRAINED) {
            continue;
        }
        if (index < sets) {
            return make_export(stage, i, index, NULL, set_weights(stage, index));
        }
        index -= sets;
        if (index < optimiser_sets(stage) * states) {
            const uint32_t replica = index / states % stage->versions.replicas;
            const uint32_t state = index % states;
            return make_export(stage, i, stage->layout->copies.centres ? index / states : NO_SET,
                               rp_optim_state_name(&stage->job->optim, state),
                               (rp_block){RP_BLOCK_STATE, replica * states + state});
        }
        index -= optimiser_sets(stage) * states;
    }
    return out;
}

uint32_t rp_stage_tensor_count(const rp_stage *stage, bool states) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < stage->layout->param_count; i++) {
        count += model_param(stage, i)->role != RP_PARAM_SCRATCH;
    }
    const uint32_t more = rp_method_set_count(&stage->job->method) +
                          optimiser_sets(stage) * stage->layout->state_count;
    return states ? count + stage->layout->trained_count * more : count;
}

bool rp_stage_tensor_is_saved(const rp_stage *stage, uint32_t index) {
    const rp_export tensor = find_index(stage, index);
    const rp_model_param *owner =
        tensor.of ? &stage->job->model->param[tensor.of->owner] : tensor.of;
    if (owner != tensor.of) {
        return false;
    }
    const bool is_statistic = tensor.of && tensor.of->role == RP_PARAM_STATE;
    return stage->job->role == RP_ROLE_BOTH ||
           is_statistic == (stage->job->role == RP_ROLE_FORWARD);
}

static void name_of(const rp_stage *stage, const rp_export *tensor, char *name, size_t bytes) {
    char prefix[32] = "";
    if (tensor->set != NO_SET) {
        rp_method_set_prefix(&stage->job->method, tensor->set, prefix, sizeof prefix);
    }
    const int length =
        snprintf(name, bytes, "%s%s%s%s%s", prefix, tensor->state ? "optim." : "",
                 tensor->state ? tensor->state : "", tensor->state ? "." : "", tensor->of->name);
    RP_ASSERT(length >= 0 && (size_t)length < bytes); /* RP_PARAM_NAME_MAX */
}

rp_err rp_stage_tensor_at(const rp_stage *stage, uint32_t index, char *name, size_t name_bytes,
                          rp_shape *shape) {
    rp_export tensor = find_index(stage, index);
    if (!tensor.of) {
        return rp_fail(RP_ERR_USAGE, "stage %u has no tensor %u", stage->job->stage, index);
    }
    name_of(stage, &tensor, name, name_bytes);
    *shape = tensor.of->shape;
    return RP_OK;
}

rp_err rp_stage_tensor_read(rp_stage *stage, uint32_t index, size_t first, size_t count,
                            float *out) {
    rp_export tensor = find_index(stage, index);
    const size_t total = tensor.of ? tensor.of->count : 0;
    if (first > total || count > total - first) {
        return rp_fail(RP_ERR_USAGE, "stage %u: tensor %u: elements [%zu, +%zu) are out of range",
                       stage->job->stage, index, first, count);
    }
    rp_err err = rp_stage_prepare_evaluated(stage);
    if (err != RP_OK) {
        return err;
    }
    const rp_region region = {RP_REGION_BLOCK, tensor.block, tensor.param};
    return stage->executor->kind->read(stage->executor, &region, first * sizeof *out,
                                       count * sizeof *out, out);
}

/* Writes a value of the evaluated model to all versions, replicas and the centre, because they
 * start equal. Tensors of the sets follow later in a file, and overwrite what differs. */
static rp_err write_export(rp_stage *stage, const rp_export *tensor, size_t first, size_t count,
                           const float *values) {
    const bool everywhere = tensor->set == NO_SET && !tensor->state;
    const rp_region region = {everywhere ? RP_REGION_EVERYWHERE : RP_REGION_BLOCK, tensor->block,
                              tensor->param};
    if (!everywhere && stage->layout->copies.centres && tensor->set >= stage->versions.replicas &&
        !is_centre(stage, tensor->set)) {
        return RP_OK; /* not held by a lean stage */
    }
    stage->mean_valid = false;
    return stage->executor->kind->write(stage->executor, &region, first * sizeof *values,
                                        count * sizeof *values, values);
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
        const size_t all = tensor.of->count;
        if (first > all || count > all - first) {
            return rp_fail(RP_ERR_SHAPE, "tensor %s has %zu elements, [%zu, +%zu) is out of range",
                           name, all, first, count);
        }
        return write_export(stage, &tensor, first, count, values);
    }
    return rp_fail(RP_ERR_USAGE, "stage %u has no tensor '%s'", stage->job->stage, name);
}
