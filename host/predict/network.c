#include "predict/network.h"

#include <stdio.h>
#include <string.h>

#include "base/safetensors.h"
#include "stage/stage.h"

enum {
    MICRO_MAX = 32,
    TENSOR_FLOATS = 1 << 24, /* limit for a layer's output, unless a single sample needs more */
    NAME_BYTES = 40,
    JOB_BYTES = 1024
};

struct rp_network {
    rp_arena *arena;
    rp_job job;
    rp_st_reader *weights;
    rp_site site;
    rp_stage *stage;
    bool (*is_stopped)(void *unused); /* as in the options */
};

/* ---- files ----------------------------------------------------------------------------------- */

static bool has_layer(rp_node *layers, const char *name) {
    for (uint32_t i = 0; i < rp_node_count(layers); i++) {
        rp_node *layer = rp_node_item(layers, i);
        const rp_node *own = rp_node_is_map(layer) ? rp_node_find(layer, "name") : NULL;
        if (own && rp_node_is_scalar(own) && strcmp(rp_node_text(own), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Freezes every layer, and appends a layer, named `last`, that becomes the second stage. */
static rp_err change_model(rp_arena *arena, rp_node *model, char last[NAME_BYTES]) {
    rp_node *layers = rp_node_find(model, "layers");
    uint32_t number = 0;
    rp_err err = RP_OK;
    char *text;
    if (!layers || !rp_node_is_list(layers)) {
        return rp_node_fail(model, "expected `layers`, a list");
    }
    for (uint32_t i = 0; i < rp_node_count(layers); i++) {
        rp_node *layer = rp_node_item(layers, i);
        if (rp_node_is_map(layer)) { /* otherwise the model's parser reports an error */
            RP_TRY(rp_config_set(arena, layer, "train=false"));
        }
    }
    do {
        (void)snprintf(last, NAME_BYTES, "last.%u", number++);
    } while (has_layer(layers, last));
    RP_TRY(rp_arena_printf(arena, &text, "{name: %s, kind: relu}", last));
    RP_TRY(rp_config_add(arena, layers, text, "the layer after the net"));
fail:
    return err;
}

static uint32_t choose_micro(const rp_model *model) {
    size_t most = rp_shape_count(&model->input);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const size_t own = rp_shape_count(&model->plan[i].out);
        most = own > most ? own : most;
    }
    const size_t fit = TENSOR_FLOATS / most;
    return fit < 1 ? 1 : fit > MICRO_MAX ? MICRO_MAX : (uint32_t)fit;
}

static rp_err make_job(rp_network *network, const rp_network_options *options, const char *last) {
    const rp_shape *sample = &options->data.sample;
    char text[JOB_BYTES];
    rp_node *root;
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "stage: 0\nstages: 2\ncut: [%s]\nclasses: %u\ntokens: %u\nsample_type: %s\nseed: 0\nbatch: "
        "%d\nmicrobatch: %d\n"
        "epoch_samples: %d\nsteps: 1\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0}\n"
        "lr_schedule: constant\nschedule: gpipe\nguard: false\nsample: [",
        last, options->data.classes, options->data.tokens, rp_dtype_name(options->data.type),
        MICRO_MAX, MICRO_MAX, MICRO_MAX);
    for (uint32_t i = 0; i < sample->dims && used < sizeof text; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", i ? ", " : "",
                                 sample->dim[i]);
    }
    for (uint32_t k = 0; k < options->time_count && used < sizeof text; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u",
                                 k > 0 ? ", " : "]\ntimes: [", options->time[k]);
    }
    RP_ASSERT(used + 3 < sizeof text);
    memcpy(text + used, "]\n", 3);
    rp_err err;
    RP_TRY(rp_config_read_text(network->arena, text, strlen(text), "job", &root));
    RP_TRY(rp_job_parse(network->arena, root, options->model, &network->job));
    network->job.batch = network->job.micro = choose_micro(network->job.model);
fail:
    return err;
}

static rp_err find_values(const rp_network *network, const char *name, const rp_shape *shape,
                          const float **out) {
    uint64_t dim[RP_DIMS_MAX];
    for (uint32_t i = 0; i < shape->dims; i++) {
        dim[i] = shape->dim[i];
    }
    return rp_st_need_f32(network->weights, name, shape->dims, dim, out);
}

static rp_err check_weights(const rp_network *network) {
    const rp_model *model = network->job.model;
    rp_err err;
    RP_TRY(rp_st_check_sums(network->weights));
    for (uint32_t i = 0; i < model->param_count; i++) {
        const float *values;
        if (model->param[i].role != RP_PARAM_SCRATCH) {
            RP_TRY(find_values(network, model->param[i].name, &model->param[i].shape, &values));
        }
    }
fail:
    return err;
}

rp_err rp_network_read(rp_arena *arena, const rp_network_options *options, rp_network **out) {
    char last[NAME_BYTES];
    rp_network *network = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &network));
    network->arena = arena;
    network->is_stopped = options->is_stopped;
    RP_TRY(change_model(arena, options->model, last));
    RP_TRY(make_job(network, options, last));
    RP_TRY(rp_st_open(arena, options->weights, &network->weights));
    RP_TRY(check_weights(network));
    *out = network;
    return RP_OK;
fail:
    rp_network_close(&network);
    return err;
}

/* ---- device ---------------------------------------------------------------------------------- */

rp_err rp_network_start(rp_network *network, rp_device *device) {
    const rp_executor_kind *kind = rp_executor_find("opencl");
    char name[RP_ST_NAME_MAX + 1];
    rp_err err;
    RP_ASSERT(kind && !network->stage);
    network->site = (rp_site){.device = device};
    RP_TRY(rp_stage_prepare(network->arena, kind, &network->site, &network->job, &network->stage));
    for (uint32_t i = 0; i < rp_stage_tensor_count(network->stage, false); i++) {
        rp_shape shape;
        const float *values;
        RP_TRY(rp_stage_tensor_at(network->stage, i, name, sizeof name, &shape));
        RP_TRY(find_values(network, name, &shape, &values));
        RP_TRY(rp_stage_tensor_write(network->stage, name, 0, rp_shape_count(&shape), values));
    }
    RP_TRY(rp_stage_drain(network->stage)); /* ends all reads of the file */
    rp_st_close(&network->weights);
fail:
    return err;
}

void rp_network_close(rp_network **network_pointer) {
    rp_network *network = *network_pointer;
    if (network) {
        rp_stage_destroy(&network->stage);
        rp_st_close(&network->weights);
    }
    *network_pointer = NULL;
}

uint32_t rp_network_outputs(const rp_network *network) {
    return rp_network_outputs_at(network, 0);
}

uint32_t rp_network_outputs_at(const rp_network *network, uint32_t time) {
    const rp_model *model = network->job.model;
    const rp_model_view view = rp_model_view_at(model, time);
    return (uint32_t)rp_shape_count(rp_model_view_shape(&view, model->layer_count - 1));
}

uint32_t rp_network_micro(const rp_network *network) {
    return network->job.micro;
}

rp_err rp_network_run(rp_network *network, uint32_t time, const void *x, uint32_t n, float *y) {
    const rp_op op = {.kind = RP_OP_FORWARD, .samples = {0, n}};
    const void *const parts[] = {x};
    void *const out[] = {y};
    const rp_stage_piece piece = {.samples = op.samples, .part = parts, .time = time};
    rp_err err;
    RP_ASSERT(network->stage && n >= 1 && n <= network->job.micro);
    if (network->is_stopped && network->is_stopped(NULL)) {
        return rp_fail(RP_ERR_INTERRUPTED, "interrupted before all samples were computed");
    }
    RP_TRY(rp_stage_forward_only(network->stage, &op, &piece, 1, out, false));
    rp_stage_forget(network->stage, &op);
    RP_TRY(rp_stage_drain(network->stage));
fail:
    return err;
}
