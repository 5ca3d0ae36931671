/* y = x > 0 ? x : weight x. The weight has a slope for each channel, which is the first axis of an
 * image [C, H, W] and otherwise the last axis, or with `shared: true` one slope for all. */
#include "nn/layer_common.h"

enum {
    GROUP_ITEMS = 64,
    PART_ITEMS = 4,
    COLUMN_LANES = 16 /* columns of one item of prelu_part_columns */
};

typedef struct {
    bool shared;
} prelu_spec;

/* A sample is `rows` rows of `wide` elements: slopes are along a row, or there is one for each row,
 * or one for all. */
typedef struct {
    uint32_t rows, wide, slopes;
    bool along;
} prelu_form;

static prelu_form form_of(const prelu_spec *spec, const rp_shape *in) {
    const uint32_t count = (uint32_t)rp_shape_count(in);
    if (spec->shared || in->dims == 0) {
        return (prelu_form){.rows = 1, .wide = count, .slopes = 1};
    }
    if (in->dims == 3) {
        const uint32_t channels = in->dim[0];
        return (prelu_form){.rows = channels, .wide = count / channels, .slopes = channels};
    }
    const uint32_t channels = in->dim[in->dims - 1];
    return (prelu_form){
        .rows = count / channels, .wide = channels, .slopes = channels, .along = true};
}

static rp_err parse_prelu(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    prelu_spec *spec = layer->spec;
    (void)data;
    *spec = (prelu_spec){.shared = false};
    return rp_node_bool(keys, "shared", &spec->shared);
}

static rp_err plan_prelu(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const double elements = (double)rp_shape_count(in);
    const prelu_form form = form_of(layer->spec, in);
    *out = (rp_layer_plan){
        .out = *in,
        .param_count = 1,
        .param = {{"weight", rp_shape_1(form.slopes), RP_PARAM_TRAINED, RP_INIT_CONSTANT, 0.25f}},
        .needs_x = true,
        .flops_forward = 2 * elements,
        .flops_backward = 5 * elements,
    };
    return RP_OK;
}

/* The sums over the batch are chunks of samples, or of rows if slopes are along a row. */
typedef struct {
    uint32_t n, images, chunks;
} prelu_chunks;

static prelu_chunks chunks_of(const prelu_form *form, uint32_t n) {
    const uint32_t all = form->along ? n * form->rows : n;
    const size_t elements = form->along ? COLUMN_LANES : form->wide;
    return (prelu_chunks){.n = all,
                          .images = rp_layer_chunk_images(all, elements),
                          .chunks = rp_layer_chunk_count(all, elements)};
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    const prelu_form form = form_of(layer->spec, in);
    (void)plan_of;
    (void)choice;
    return (size_t)chunks_of(&form, n).chunks * form.slopes * sizeof(float);
}

/* Arguments that both directions have, and the launch; `add` < 0 omits that argument. */
static rp_err run_rows(const rp_layer_call *call, rp_launch *launch, int add) {
    const prelu_form form = form_of(call->layer->spec, &call->in[0]);
    const uint32_t rows = call->n * form.rows;
    rp_arg_buffer(launch, call->param[0]->buffer);
    rp_arg_u32(launch, rows);
    rp_arg_u32(launch, form.wide);
    rp_arg_u32(launch, form.slopes);
    rp_arg_u32(launch, form.along);
    if (add >= 0) {
        rp_arg_u32(launch, (uint32_t)add);
    }
    return rp_layer_run_items(launch, (size_t)rp_layer_divide_up(form.wide, 16) * rows,
                              GROUP_ITEMS);
}

static rp_err forward_prelu(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "prelu", "prelu_forward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    return run_rows(call, &launch, -1);
}

static rp_err find_dx(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "prelu", "prelu_backward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->x[0]);
    return run_rows(call, &launch, call->dx_add[0]);
}

static rp_err find_dw(const rp_layer_call *call) {
    const prelu_form form = form_of(call->layer->spec, &call->in[0]);
    const prelu_chunks chunks = chunks_of(&form, call->n);
    rp_launch launch;
    rp_err err = rp_layer_begin(
        call, "prelu", form.along ? "prelu_part_columns" : "prelu_part_rows", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_u32(&launch, chunks.n);
    rp_arg_u32(&launch, form.slopes);
    rp_arg_u32(&launch, form.wide);
    rp_arg_u32(&launch, chunks.images);
    const size_t items = form.along ? rp_layer_divide_up(form.wide, COLUMN_LANES) : form.slopes;
    err = rp_launch_run(&launch, 2, (size_t[]){items, chunks.chunks}, (size_t[]){PART_ITEMS, 1});
    if (err != RP_OK) {
        return err;
    }
    return rp_layer_sum_parts(call, call->dparam[0]->buffer, 0, form.slopes, chunks.chunks);
}

static rp_err backward_prelu(const rp_layer_call *call) {
    rp_err err = RP_OK;
    if (call->want_dw && call->dparam[0]) {
        RP_TRY(find_dw(call));
    }
    if (call->want_dx && call->dx[0]) {
        RP_TRY(find_dx(call));
    }
fail:
    return err;
}

const rp_layer_kind rp_layer_prelu = {
    .name = "prelu",
    .keys = "shared",
    .source = "He et al. 2015; torch.nn.PReLU",
    .spec_bytes = sizeof(prelu_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_prelu,
    .plan = plan_prelu,
    .workspace_bytes = workspace_bytes,
    .forward = forward_prelu,
    .backward = backward_prelu,
};
