/* The transpose of a convolution: y is what the gradient of conv2d's input would be for the output
 * gradient x, plus b; W [C, K / groups, R, S] is the weight of that convolution from K to C
 * channels. Its gradient of x is the convolution of dy, and its gradient of W that of the
 * convolution with x and dy exchanged. So all work is done by layer_conv2d.c and conv_direct.c.
 *
 * Image sides become (size - 1) * stride - 2 * pad + kernel + output_pad, where output_pad < stride
 * adds rows and columns at the end.
 *
 * Workspace: what the convolution needs, or the partial sums of the bias. */
#include "nn/conv.h"

#include <math.h>

enum { GROUP_ITEMS = 64, VECTOR = 16 };

typedef struct {
    rp_conv_spec conv; /* without a bias; `out` is this layer's */
    rp_pair output_pad;
    bool bias;
} convtranspose_spec;

static rp_err parse_convtranspose2d(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    convtranspose_spec *spec = layer->spec;
    rp_conv_spec *conv = &spec->conv;
    char stride[RP_LAYER_PAIR_TEXT];
    char more[RP_LAYER_PAIR_TEXT];
    rp_err err;
    *spec = (convtranspose_spec){
        .conv = {.stride = rp_pair_same(1), .dilation = rp_pair_same(1), .groups = 1},
        .bias = true};
    RP_TRY(rp_layer_read_out(keys, data, &conv->out));
    RP_TRY(rp_node_need(keys, "kernel"));
    RP_TRY(rp_layer_read_pair(keys, "kernel", 1, RP_LAYER_WINDOW_MAX, &conv->kernel));
    RP_TRY(rp_layer_read_pair(keys, "stride", 1, RP_LAYER_WINDOW_MAX, &conv->stride));
    RP_TRY(rp_layer_read_pair(keys, "pad", 0, RP_LAYER_WINDOW_MAX, &conv->pad));
    RP_TRY(rp_layer_read_pair(keys, "output_pad", 0, RP_LAYER_WINDOW_MAX - 1, &spec->output_pad));
    RP_TRY(rp_node_u32(keys, "groups", 1, RP_LAYER_OUT_MAX, &conv->groups));
    RP_TRY(rp_node_bool(keys, "bias", &spec->bias));
    if (spec->output_pad.h >= conv->stride.h || spec->output_pad.w >= conv->stride.w) {
        return rp_node_fail(
            rp_node_find(keys, "output_pad"), "expected less than `stride`, %s, found %s",
            rp_layer_pair_text(conv->stride, stride), rp_layer_pair_text(spec->output_pad, more));
    }
    if (conv->out % conv->groups != 0) {
        return rp_node_fail(rp_node_find(keys, "groups"),
                            "`out` is %u, expected a multiple of `groups`, %u", conv->out,
                            conv->groups);
    }
    return RP_OK;
fail:
    return err;
}

/* Pixels along an axis of y; 0 or less when the padding leaves none. */
static int64_t side_of(uint32_t size, uint32_t kernel, uint32_t stride, uint32_t pad,
                       uint32_t output_pad) {
    return ((int64_t)size - 1) * stride - 2 * (int64_t)pad + kernel + output_pad;
}

/* The shape of y; false if there is none, or it has too many elements. */
static bool find_out(const convtranspose_spec *spec, const rp_shape *in, rp_shape *out) {
    const rp_conv_spec *conv = &spec->conv;
    const int64_t p =
        side_of(in->dim[1], conv->kernel.h, conv->stride.h, conv->pad.h, spec->output_pad.h);
    const int64_t q =
        side_of(in->dim[2], conv->kernel.w, conv->stride.w, conv->pad.w, spec->output_pad.w);
    if (p < 1 || q < 1 || p > INT32_MAX || q > INT32_MAX) {
        return false;
    }
    *out = rp_shape_3(spec->conv.out, (uint32_t)p, (uint32_t)q);
    return rp_shape_check(out);
}

static rp_err plan_convtranspose2d(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const convtranspose_spec *spec = layer->spec;
    const rp_conv_spec *conv = &spec->conv;
    rp_shape shape;
    rp_err err = rp_layer_need_image(layer, in);
    if (err != RP_OK) {
        return err;
    }
    if (in->dim[0] % conv->groups != 0) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %u channels are not divisible by groups %u",
                       layer->name, in->dim[0], conv->groups);
    }
    if (!find_out(spec, in, &shape)) {
        char text[RP_LAYER_SHAPE_TEXT];
        char stride[RP_LAYER_PAIR_TEXT];
        char pad[RP_LAYER_PAIR_TEXT];
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': a %ux%u kernel with stride %s, pad %s gives no image, or one "
                       "of 2^31 elements, from %s",
                       layer->name, conv->kernel.h, conv->kernel.w,
                       rp_layer_pair_text(conv->stride, stride), rp_layer_pair_text(conv->pad, pad),
                       rp_layer_shape_text(in, text));
    }
    const uint32_t kg = conv->out / conv->groups;
    const rp_shape weight = rp_shape_4(in->dim[0], kg, conv->kernel.h, conv->kernel.w);
    const double taps = (double)kg * conv->kernel.h * conv->kernel.w;
    const float bound = (float)(1.0 / sqrt(taps)); /* torch counts axis 1 as the inputs */
    const double products = 2 * taps * (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = shape,
        .param_count = spec->bias ? 2 : 1,
        .param = {[RP_CONV_WEIGHT] = {"weight", weight, RP_PARAM_TRAINED, RP_INIT_UNIFORM, bound},
                  [RP_CONV_BIAS] = {"bias", rp_shape_1(conv->out), RP_PARAM_TRAINED,
                                    RP_INIT_UNIFORM, bound}},
        .needs_x = !layer->frozen,
        .flops_forward = products,
        .flops_backward = (layer->frozen ? 1 : 2) * products,
    };
    return RP_OK;
}

/* The convolution that takes y to x. */
static rp_conv conv_of(const rp_layer *layer, const rp_shape *in, const rp_shape *out, uint32_t n) {
    const convtranspose_spec *spec = layer->spec;
    const uint32_t groups = spec->conv.groups;
    return (rp_conv){.spec = &spec->conv,
                     .n = n,
                     .c = out->dim[0],
                     .h = out->dim[1],
                     .w = out->dim[2],
                     .k = in->dim[0],
                     .p = in->dim[1],
                     .q = in->dim[2],
                     .cg = out->dim[0] / groups,
                     .kg = in->dim[0] / groups,
                     .taps = spec->conv.kernel.h * spec->conv.kernel.w,
                     .transposed = true};
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    const convtranspose_spec *spec = layer->spec;
    const rp_conv v = conv_of(layer, in, &plan_of->out, n);
    const size_t bytes = rp_conv_workspace_bytes(&v, choice);
    const size_t bias = rp_layer_bias_floats(n, v.c, v.h * v.w) * sizeof(float);
    return spec->bias && bias > bytes ? bias : bytes;
}

static rp_err fill_bias(const rp_layer_call *call, const rp_conv *v) {
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "bias", "bias_fill", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    const uint32_t pixels = v->h * v->w;
    rp_arg_tensor(&launch, call->y);
    rp_arg_buffer(&launch, call->param[RP_CONV_BIAS]->buffer);
    rp_arg_u32(&launch, v->n);
    rp_arg_u32(&launch, v->c);
    rp_arg_u32(&launch, pixels);
    return rp_layer_run_items(&launch, (size_t)rp_layer_divide_up(pixels, VECTOR) * v->n * v->c,
                              GROUP_ITEMS);
}

/* The convolution's gradient of its input is added to the bias. */
static rp_err forward_convtranspose2d(const rp_layer_call *call) {
    const convtranspose_spec *spec = call->layer->spec;
    const rp_conv v = conv_of(call->layer, &call->in[0], &call->plan->out, call->n);
    rp_layer_call conv = *call;
    rp_err err = RP_OK;
    conv.dy = call->x[0];
    conv.dx[0] = call->y;
    conv.dx_add[0] = spec->bias;
    conv.want_dx = true;
    conv.want_dw = false;
    if (spec->bias) {
        RP_TRY(fill_bias(call, &v));
    }
    RP_TRY(rp_conv_backward(&conv, &v));
fail:
    return err;
}

/* dx = conv(dy). */
static rp_err find_dx(const rp_layer_call *call, rp_conv v) {
    rp_layer_call conv = *call;
    conv.x[0] = call->dy;
    conv.y = call->dx[0];
    v.add = call->dx_add[0];
    return rp_conv_forward(&conv, &v);
}

/* The convolution's gradient of its weight, with x and dy exchanged. */
static rp_err find_dw(const rp_layer_call *call, const rp_conv *v) {
    rp_layer_call conv = *call;
    conv.x[0] = call->dy;
    conv.dy = call->x[0];
    conv.want_dx = false;
    return rp_conv_backward(&conv, v);
}

static rp_err backward_convtranspose2d(const rp_layer_call *call) {
    const convtranspose_spec *spec = call->layer->spec;
    const rp_conv v = conv_of(call->layer, &call->in[0], &call->plan->out, call->n);
    rp_err err = RP_OK;
    if (call->want_dx && call->dx[0]) {
        RP_TRY(find_dx(call, v));
    }
    if (call->want_dw) {
        RP_TRY(find_dw(call, &v));
        if (spec->bias) {
            RP_TRY(rp_layer_bias_gradient(call, call->dparam[RP_CONV_BIAS]->buffer, 0,
                                          rp_layer_rows(call->dy, 0), v.n, v.c, v.h * v.w));
        }
    }
fail:
    return err;
}

const rp_layer_kind rp_layer_convtranspose2d = {
    .name = "convtranspose2d",
    .keys = "out, kernel, stride, pad, output_pad, groups, bias",
    .source = "torch.nn.ConvTranspose2d",
    .spec_bytes = sizeof(convtranspose_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_convtranspose2d,
    .plan = plan_convtranspose2d,
    .workspace_bytes = workspace_bytes,
    .forward = forward_convtranspose2d,
    .backward = backward_convtranspose2d,
};
