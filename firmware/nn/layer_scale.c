/* y = weight x, with a weight for each channel: [C, 1, 1] for images [C, H, W] and otherwise [C],
 * the last axis. All weights begin with the value `init`. */
#include "nn/broadcast.h"

enum { COLUMN_LANES = 16 /* columns of one item of the sum over rows */ };

typedef struct {
    float init;
} scale_spec;

static uint32_t channels_of(const rp_shape *in) {
    return in->dims == 3 ? in->dim[0] : in->dim[in->dims - 1];
}

/* A sample counts as an image of `channels` rows; where weights are along the last axis, each row
 * counts as a sample. */
static rp_broadcast form_of(const rp_shape *in, uint32_t n) {
    const uint32_t channels = channels_of(in);
    const uint32_t others = (uint32_t)rp_shape_count(in) / channels;
    rp_broadcast form = {.n = n, .p = 1, .q = 1, .shared = true};
    if (in->dims == 3 && others > 1) {
        form.q = channels;
        form.wide = others;
        form.keep_q = true;
    } else {
        form.n = n * others;
        form.wide = channels;
        form.keep_wide = true;
    }
    return form;
}

/* Elements of one sample in the first level of the weight's sum. */
static size_t chunk_elements(const rp_broadcast *form) {
    return form->keep_wide ? COLUMN_LANES : form->wide;
}

static rp_err parse_scale(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    scale_spec *spec = layer->spec;
    (void)data;
    *spec = (scale_spec){.init = 1.0f};
    return rp_node_f32(keys, "init", 0.0, 1e6, &spec->init);
}

static rp_err plan_scale(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const scale_spec *spec = layer->spec;
    if (in->dims == 0) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': scale needs samples [C], [..., C] or [C, H, W]",
                       layer->name);
    }
    const double elements = (double)rp_shape_count(in);
    const uint32_t channels = channels_of(in);
    const rp_shape weight = in->dims == 3 ? rp_shape_3(channels, 1, 1) : rp_shape_1(channels);
    *out = (rp_layer_plan){
        .out = *in,
        .param_count = 1,
        .param = {{"weight", weight, RP_PARAM_TRAINED, RP_INIT_CONSTANT, spec->init}},
        .needs_x = !layer->frozen,
        .in_place = layer->frozen,
        .flops_forward = elements,
        .flops_backward = (layer->frozen ? 1 : 3) * elements,
    };
    return RP_OK;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    const rp_broadcast form = form_of(in, n);
    (void)layer;
    (void)plan_of;
    (void)choice;
    return (size_t)rp_layer_chunk_count(form.n, chunk_elements(&form)) * channels_of(in) *
           sizeof(float);
}

static rp_err forward_scale(const rp_layer_call *call) {
    const rp_broadcast form = form_of(&call->in[0], call->n);
    return rp_broadcast_multiply(call, &form, call->y, call->x[0], call->param[0], false);
}

static rp_err find_dw(const rp_layer_call *call, const rp_broadcast *form) {
    const uint32_t images = rp_layer_chunk_images(form->n, chunk_elements(form));
    rp_err err =
        rp_broadcast_sum(call, form, call->workspace, 0, call->dy, call->x[0], images, false);
    if (err != RP_OK) {
        return err;
    }
    return rp_layer_sum_parts(call, call->dparam[0]->buffer, 0, rp_broadcast_count(form),
                              rp_layer_divide_up(form->n, images));
}

static rp_err backward_scale(const rp_layer_call *call) {
    const rp_broadcast form = form_of(&call->in[0], call->n);
    rp_err err = RP_OK;
    if (call->want_dw && call->dparam[0]) {
        RP_TRY(find_dw(call, &form));
    }
    if (call->want_dx && call->dx[0]) {
        RP_TRY(rp_broadcast_multiply(call, &form, call->dx[0], call->dy, call->param[0],
                                     call->dx_add[0]));
    }
fail:
    return err;
}

const rp_layer_kind rp_layer_scale = {
    .name = "scale",
    .keys = "init",
    .source = "LayerScale, Touvron et al. 2021; Liu et al. 2022",
    .spec_bytes = sizeof(scale_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_scale,
    .plan = plan_scale,
    .workspace_bytes = workspace_bytes,
    .forward = forward_scale,
    .backward = backward_scale,
};
