/* Normalisation. */
#include "export/layer.h"

/* Opset 14 has training_mode; before it, further outputs say that a node trains. */
const char *rp_export_write_batchnorm(rp_export_layer *l) {
    const double eps = rp_export_key_f64(l, "eps", 1e-5);
    const double momentum = rp_export_key_f64(l, "momentum", 0.1);
    rp_export_ignore(l, "deferred"); /* how statistics of microbatches are joined */
    const char *weight = rp_export_param(l, "weight");
    const char *bias = rp_export_param(l, "bias");
    const char *mean = rp_export_param(l, "running_mean");
    const char *variance = rp_export_param(l, "running_var");
    const char *y = RP_EXPORT_OP(l, "BatchNormalization", l->x[0], weight, bias, mean, variance);
    rp_export_float(l, "epsilon", eps);
    rp_export_float(l, "momentum", 1.0 - momentum);
    if (l->train) {
        rp_export_outputs(l, l->opset < 14 ? 5 : 3);
    }
    if (l->train && l->opset >= 14) {
        rp_export_int(l, "training_mode", 1);
    }
    return y;
}

/* The last `count` axes. */
static const char *mean_of_last(rp_export_layer *l, const char *x, uint32_t count) {
    int64_t axes[RP_DIMS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        axes[i] = (int64_t)i - count;
    }
    return rp_export_reduce(l, "ReduceMean", x, count, axes, true);
}

/* x / sqrt(mean of squares + eps) */
static const char *divide_by_root(rp_export_layer *l, const char *x, uint32_t count, double eps) {
    const char *square = RP_EXPORT_OP(l, "Mul", x, x);
    const char *mean = mean_of_last(l, square, count);
    const char *least = rp_export_number(l, eps);
    const char *sum = RP_EXPORT_OP(l, "Add", mean, least);
    const char *root = RP_EXPORT_OP(l, "Sqrt", sum);
    return RP_EXPORT_OP(l, "Div", x, root);
}

/* Number of last axes that are normalised together. */
static uint32_t count_axes(rp_export_layer *l, uint32_t usual) {
    const uint32_t dims = rp_export_key_u32(l, "dims", usual);
    return dims == 0 ? l->in[0].dims : dims;
}

const char *rp_export_write_layernorm(rp_export_layer *l) {
    const double eps = rp_export_key_f64(l, "eps", 1e-5);
    const uint32_t axes = count_axes(l, 0);
    const char *weight = rp_export_param(l, "weight");
    const char *bias = rp_export_param(l, "bias");
    if (l->opset >= 17) {
        const char *y = RP_EXPORT_OP(l, "LayerNormalization", l->x[0], weight, bias);
        rp_export_int(l, "axis", -(int64_t)axes);
        rp_export_float(l, "epsilon", eps);
        return y;
    }
    const char *mean = mean_of_last(l, l->x[0], axes);
    const char *centred = RP_EXPORT_OP(l, "Sub", l->x[0], mean);
    const char *row = divide_by_root(l, centred, axes, eps);
    const char *scaled = RP_EXPORT_OP(l, "Mul", row, weight);
    return RP_EXPORT_OP(l, "Add", scaled, bias);
}

const char *rp_export_write_rmsnorm(rp_export_layer *l) {
    const double eps = rp_export_key_f64(l, "eps", 1e-6);
    const uint32_t axes = count_axes(l, 1);
    const char *weight = rp_export_param(l, "weight");
    if (l->opset >= 23) {
        const char *y = RP_EXPORT_OP(l, "RMSNormalization", l->x[0], weight);
        rp_export_int(l, "axis", -(int64_t)axes);
        rp_export_float(l, "epsilon", eps);
        return y;
    }
    const char *row = divide_by_root(l, l->x[0], axes, eps);
    return RP_EXPORT_OP(l, "Mul", row, weight);
}

/* A weight [C] for images [N, C, H, W]. */
static const char *weight_of_channels(rp_export_layer *l, const char *suffix) {
    static const int64_t axes[] = {1, 2, 3, 4, 5};
    const char *weight = rp_export_param(l, suffix);
    const uint32_t after = l->in[0].dims - 1;
    return after > 0 ? rp_export_unsqueeze(l, weight, after, axes) : weight;
}

/* Groups as channels of InstanceNormalization, as PyTorch writes them: GroupNormalization has
 * weights of channels from opset 21 on. */
static const char *write_groups(rp_export_layer *l, uint32_t groups, double eps) {
    const int64_t split[] = {0, groups, -1};
    const int64_t count = groups;
    int64_t dim[RP_DIMS_MAX + 1] = {0};
    float *ones = NULL;
    float *zeros = NULL;
    RP_EXPORT_NEW(l->graph, groups, &ones);
    RP_EXPORT_NEW(l->graph, groups, &zeros);
    for (uint32_t i = 0; ones && i < groups; i++) {
        ones[i] = 1.0f;
    }
    for (uint32_t i = 0; i < l->in[0].dims; i++) {
        dim[i + 1] = l->in[0].dim[i];
    }
    const char *x = rp_export_reshape(l, l->x[0], 3, split);
    const char *scale = rp_export_table(l, 1, &count, ones);
    const char *shift = rp_export_table(l, 1, &count, zeros);
    const char *rows = RP_EXPORT_OP(l, "InstanceNormalization", x, scale, shift);
    rp_export_float(l, "epsilon", eps);
    const char *back = rp_export_reshape(l, rows, l->in[0].dims + 1, dim);
    const char *weight = weight_of_channels(l, "weight");
    const char *scaled = RP_EXPORT_OP(l, "Mul", back, weight);
    const char *bias = weight_of_channels(l, "bias");
    return RP_EXPORT_OP(l, "Add", scaled, bias);
}

const char *rp_export_write_groupnorm(rp_export_layer *l) {
    const uint32_t groups = rp_export_key_u32(l, "groups", 1);
    const double eps = rp_export_key_f64(l, "eps", 1e-5);
    if (l->opset < 21 || l->in[0].dims < 2) {
        return write_groups(l, groups, eps);
    }
    const char *weight = rp_export_param(l, "weight");
    const char *bias = rp_export_param(l, "bias");
    const char *y = RP_EXPORT_OP(l, "GroupNormalization", l->x[0], weight, bias);
    rp_export_int(l, "num_groups", groups);
    rp_export_float(l, "epsilon", eps);
    return y;
}
