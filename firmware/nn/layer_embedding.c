/* y[t] = weight[id[t]]: one row of the weight [count, out] for each token id. dx does not exist. */
#include "nn/layer_common.h"

enum {
    GROUP_ITEMS = 64,
    /* work-items that list the positions of each id; each one reads all ids */
    LINK_ITEMS = 512,
    LINK_ITEMS_CPU = 4
};

typedef struct {
    uint32_t count, out;
    bool pads;
    uint32_t padding; /* id whose row begins at 0 and has no gradient, if `pads` */
    float deviation;
} embedding_spec;

static rp_err parse_embedding(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    rp_err err;
    embedding_spec *spec = layer->spec;
    *spec = (embedding_spec){.deviation = 1.0f};
    RP_TRY(rp_layer_read_count(keys, data, &spec->count));
    RP_TRY(rp_layer_read_out(keys, data, &spec->out));
    spec->pads = rp_node_find(keys, "padding") != NULL;
    RP_TRY(rp_node_u32(keys, "padding", 0, spec->count - 1, &spec->padding));
    RP_TRY(rp_node_f32(keys, "std", 0.0, 1e6, &spec->deviation));
fail:
    return err;
}

static rp_err plan_embedding(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const embedding_spec *spec = layer->spec;
    rp_shape shape = *in;
    if (in->dims + 1 >= RP_DIMS_MAX) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': embedding needs ids of at most %d dimensions, its input is %s",
                       layer->name, RP_DIMS_MAX - 2, rp_layer_shape_text(in, text));
    }
    shape.dim[shape.dims++] = spec->out;
    *out = (rp_layer_plan){
        .out = shape,
        .param_count = 1,
        .param = {{"weight", rp_shape_2(spec->count, spec->out), RP_PARAM_TRAINED, RP_INIT_NORMAL,
                   spec->deviation}},
        .zero_row = spec->pads ? spec->padding + 1 : 0,
        .needs_x = true,
        .ids = 1,
        .id_count = spec->count,
        .flops_forward = (double)rp_shape_count(&shape),
        .flops_backward = (double)rp_shape_count(&shape),
    };
    return RP_OK;
}

/* The links of kernels/embedding.cl: an int for each id and each position. */
static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    const embedding_spec *spec = layer->spec;
    (void)plan_of;
    (void)choice;
    return (spec->count + (size_t)n * rp_shape_count(in)) * sizeof(int32_t);
}

static uint32_t position_count(const rp_layer_call *call) {
    return (uint32_t)(call->n * rp_shape_count(&call->in[0]));
}

/* One item for each 16 columns of `rows` rows. */
static rp_err run_rows(rp_launch *launch, const embedding_spec *spec, uint32_t rows) {
    return rp_layer_run_items(launch, (size_t)rp_layer_divide_up(spec->out, 16) * rows,
                              GROUP_ITEMS);
}

static rp_err forward_embedding(const rp_layer_call *call) {
    const embedding_spec *spec = call->layer->spec;
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "embedding", "embedding_forward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_buffer(&launch, call->param[0]->buffer);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_u32(&launch, position_count(call));
    rp_arg_u32(&launch, spec->count);
    rp_arg_u32(&launch, spec->out);
    return run_rows(&launch, spec, position_count(call));
}

static rp_err link_positions(const rp_layer_call *call) {
    const embedding_spec *spec = call->layer->spec;
    const bool cpu = rp_device_facts_of(call->device)->cpu;
    const uint32_t items = cpu ? LINK_ITEMS_CPU : LINK_ITEMS;
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "embedding", "embedding_link", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_u32(&launch, position_count(call));
    rp_arg_u32(&launch, spec->count);
    rp_arg_i32(&launch, spec->pads ? (int32_t)spec->padding : -1);
    rp_arg_u32(&launch, items);
    return rp_layer_run_items(&launch, items, cpu ? 1 : GROUP_ITEMS);
}

static rp_err clear_rows(const rp_layer_call *call) {
    const embedding_spec *spec = call->layer->spec;
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "embedding", "embedding_clear", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->dparam[0]->buffer);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u32(&launch, spec->count);
    rp_arg_u32(&launch, spec->out);
    return run_rows(&launch, spec, spec->count);
}

static rp_err sum_rows(const rp_layer_call *call) {
    const embedding_spec *spec = call->layer->spec;
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "embedding", "embedding_sum", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->dparam[0]->buffer);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_u32(&launch, position_count(call));
    rp_arg_u32(&launch, spec->count);
    rp_arg_u32(&launch, spec->out);
    rp_arg_u32(&launch, call->accumulate);
    return run_rows(&launch, spec, position_count(call));
}

static rp_err backward_embedding(const rp_layer_call *call) {
    rp_err err;
    if (!call->want_dw || !call->dparam[0]) {
        return RP_OK;
    }
    RP_TRY(link_positions(call));
    if (!call->accumulate) {
        RP_TRY(clear_rows(call));
    }
    RP_TRY(sum_rows(call));
fail:
    return err;
}

const rp_layer_kind rp_layer_embedding = {
    .name = "embedding",
    .keys = "count, out, padding, std",
    .source = "torch.nn.Embedding",
    .spec_bytes = sizeof(embedding_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_embedding,
    .plan = plan_embedding,
    .workspace_bytes = workspace_bytes,
    .forward = forward_embedding,
    .backward = backward_embedding,
};
