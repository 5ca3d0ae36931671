/* Activations, and gates without weights. */
#include <string.h>

#include "export/layer.h"

const char *rp_export_write_plain(rp_export_layer *l) {
    static const char *const ops[][2] = {
        {"relu", "Relu"}, {"tanh", "Tanh"}, {"sigmoid", "Sigmoid"}, {"softplus", "Softplus"}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(ops[i][0], l->layer->kind->name) == 0) {
            return RP_EXPORT_OP(l, ops[i][1], l->x[0]);
        }
    }
    RP_ASSERT(false);
    return "";
}

const char *rp_export_write_relu6(rp_export_layer *l) {
    const char *least = rp_export_number(l, 0.0);
    const char *most = rp_export_number(l, 6.0);
    return RP_EXPORT_OP(l, "Clip", l->x[0], least, most);
}

const char *rp_export_write_leaky_relu(rp_export_layer *l) {
    const char *y = RP_EXPORT_OP(l, "LeakyRelu", l->x[0]);
    rp_export_float(l, "alpha", rp_export_key_f64(l, "slope", 0.01));
    return y;
}

const char *rp_export_write_elu(rp_export_layer *l) {
    const char *y = RP_EXPORT_OP(l, "Elu", l->x[0]);
    rp_export_float(l, "alpha", rp_export_key_f64(l, "alpha", 1.0));
    return y;
}

const char *rp_export_write_hardsigmoid(rp_export_layer *l) {
    const char *y = RP_EXPORT_OP(l, "HardSigmoid", l->x[0]);
    rp_export_float(l, "alpha", 1.0 / 6.0); /* ONNX's default is 0.2 */
    rp_export_float(l, "beta", 0.5);
    return y;
}

const char *rp_export_write_hardswish(rp_export_layer *l) {
    if (l->opset >= 14) {
        return RP_EXPORT_OP(l, "HardSwish", l->x[0]);
    }
    const char *gate = rp_export_write_hardsigmoid(l);
    return RP_EXPORT_OP(l, "Mul", l->x[0], gate);
}

static const char *multiply_by_sigmoid(rp_export_layer *l, const char *x) {
    const char *gate = RP_EXPORT_OP(l, "Sigmoid", x);
    return RP_EXPORT_OP(l, "Mul", x, gate);
}

const char *rp_export_write_silu(rp_export_layer *l) {
    return multiply_by_sigmoid(l, l->x[0]);
}

const char *rp_export_write_mish(rp_export_layer *l) {
    if (l->opset >= 18) {
        return RP_EXPORT_OP(l, "Mish", l->x[0]);
    }
    const char *plus = RP_EXPORT_OP(l, "Softplus", l->x[0]);
    const char *gate = RP_EXPORT_OP(l, "Tanh", plus);
    return RP_EXPORT_OP(l, "Mul", l->x[0], gate);
}

/* x / sqrt(2) */
static const char *argument_of_erf(rp_export_layer *l) {
    const char *root = rp_export_number(l, 1.4142135623730951);
    return RP_EXPORT_OP(l, "Div", l->x[0], root);
}

/* sqrt(2 / pi) (x + 0.044715 x^3) */
static const char *argument_of_tanh(rp_export_layer *l) {
    const char *x = l->x[0];
    const char *square = RP_EXPORT_OP(l, "Mul", x, x);
    const char *cube = RP_EXPORT_OP(l, "Mul", square, x);
    const char *factor = rp_export_number(l, 0.044715);
    const char *part = RP_EXPORT_OP(l, "Mul", cube, factor);
    const char *sum = RP_EXPORT_OP(l, "Add", x, part);
    const char *scale = rp_export_number(l, 0.7978845608028654);
    return RP_EXPORT_OP(l, "Mul", sum, scale);
}

const char *rp_export_write_gelu(rp_export_layer *l) {
    static const char *const forms[] = {"none", "tanh", NULL};
    const bool by_tanh = rp_export_key_word(l, "approximate", forms) == 1;
    if (l->opset >= 20) {
        const char *y = RP_EXPORT_OP(l, "Gelu", l->x[0]);
        if (by_tanh) {
            rp_export_word(l, "approximate", "tanh");
        }
        return y;
    }
    const char *argument = by_tanh ? argument_of_tanh(l) : argument_of_erf(l);
    const char *bend =
        by_tanh ? RP_EXPORT_OP(l, "Tanh", argument) : RP_EXPORT_OP(l, "Erf", argument);
    const char *one = rp_export_number(l, 1.0);
    const char *sum = RP_EXPORT_OP(l, "Add", bend, one);
    const char *product = RP_EXPORT_OP(l, "Mul", l->x[0], sum);
    const char *half = rp_export_number(l, 0.5);
    return RP_EXPORT_OP(l, "Mul", product, half);
}

/* Slopes of an image's channels are [C, 1, 1]; others are along the last axis. */
const char *rp_export_write_prelu(rp_export_layer *l) {
    static const int64_t axes[] = {1, 2};
    const bool shared = rp_export_key_bool(l, "shared", false);
    const char *slope = rp_export_param(l, "weight");
    if (!shared && l->in[0].dims == 3) {
        slope = rp_export_unsqueeze(l, slope, 2, axes);
    }
    return RP_EXPORT_OP(l, "PRelu", l->x[0], slope);
}

const char *rp_export_write_glu(rp_export_layer *l) {
    const uint32_t axis = l->in[0].dims;
    const uint32_t half = l->plan->out.dim[axis - 1];
    const char *a = rp_export_slice(l, l->x[0], axis, 0, half);
    const char *b = rp_export_slice(l, l->x[0], axis, half, 2 * (int64_t)half);
    const char *gate = RP_EXPORT_OP(l, "Sigmoid", b);
    return RP_EXPORT_OP(l, "Mul", a, gate);
}

const char *rp_export_write_swiglu(rp_export_layer *l) {
    const char *gate = multiply_by_sigmoid(l, l->x[0]);
    return RP_EXPORT_OP(l, "Mul", gate, l->x[1]);
}
