/* Sums, products and parts of values, and what drops some of them. */
#include "export/layer.h"

const char *rp_export_write_add(rp_export_layer *l) {
    const char *sum = l->x[0];
    for (uint32_t i = 1; i < l->input_count; i++) {
        sum = RP_EXPORT_OP(l, "Add", sum, l->x[i]);
    }
    return sum;
}

/* A gate [C] of an image gets axes of size 1; everything else broadcasts as in NumPy. */
const char *rp_export_write_mul(rp_export_layer *l) {
    static const int64_t axes[] = {2, 3};
    const char *gate = l->x[1];
    if (l->in[0].dims == 3 && l->in[1].dims == 1) {
        gate = rp_export_unsqueeze(l, gate, 2, axes);
    }
    return RP_EXPORT_OP(l, "Mul", l->x[0], gate);
}

/* Whether the layer's value has a batch of 1, because it depends on parameters only. */
static bool is_still(const rp_model *model, uint32_t index) {
    if (index == RP_LAYER_DATA || index < model->input_count) {
        return false;
    }
    const rp_layer *layer = &model->layer[index];
    bool still = true;
    for (uint32_t i = 0; i < layer->input_count && still; i++) {
        still = is_still(model, layer->input[i]);
    }
    return still;
}

/* Concat does not broadcast: a value with a batch of 1 is expanded to the batch of `like`. */
static const char *expand_batch(rp_export_layer *l, const char *x, const char *like,
                                uint32_t dims) {
    int64_t ones[RP_DIMS_MAX];
    for (uint32_t i = 0; i < dims; i++) {
        ones[i] = 1;
    }
    const char *batch = rp_export_batch(l, like);
    const char *rest = rp_export_whole(l, dims, ones);
    const char *shape = RP_EXPORT_OP(l, "Concat", batch, rest);
    rp_export_int(l, "axis", 0);
    return RP_EXPORT_OP(l, "Expand", x, shape);
}

const char *rp_export_write_concat(rp_export_layer *l) {
    const rp_model *model = l->graph->net->model;
    const uint32_t axis = rp_export_key_u32(l, "axis", 0);
    const char *x[RP_LAYER_INPUTS_MAX];
    const char *like = NULL;
    for (uint32_t i = 0; i < l->input_count; i++) {
        like = !like && !is_still(model, l->layer->input[i]) ? l->x[i] : like;
    }
    for (uint32_t i = 0; i < l->input_count; i++) {
        x[i] = like && is_still(model, l->layer->input[i])
                   ? expand_batch(l, l->x[i], like, l->in[i].dims)
                   : l->x[i];
    }
    const char *y = rp_export_op(l, "Concat", l->input_count, x);
    rp_export_int(l, "axis", axis + (int64_t)1);
    return y;
}

const char *rp_export_write_slice(rp_export_layer *l) {
    const uint32_t axis = rp_export_key_u32(l, "axis", 0);
    const uint32_t start = rp_export_key_u32(l, "start", 0);
    const uint32_t end = rp_export_key_u32(l, "end", l->in[0].dim[axis]);
    return rp_export_slice(l, l->x[0], axis + (int64_t)1, start, end);
}

const char *rp_export_write_flatten(rp_export_layer *l) {
    const char *y = RP_EXPORT_OP(l, "Flatten", l->x[0]);
    rp_export_int(l, "axis", 1);
    return y;
}

const char *rp_export_write_dropout(rp_export_layer *l) {
    return rp_export_dropout(l, l->x[0], rp_export_key_f64(l, "p", 0.5));
}

/* Whole samples are dropped: dropout of one number for each sample. */
const char *rp_export_write_droppath(rp_export_layer *l) {
    static const int64_t one[] = {1};
    const double p = rp_export_key_f64(l, "p", 0.0);
    int64_t ones[RP_DIMS_MAX];
    const uint32_t dims = l->in[0].dims;
    if (!l->train || p <= 0.0) {
        return l->x[0];
    }
    for (uint32_t i = 0; i < dims; i++) {
        ones[i] = 1;
    }
    const char *batch = rp_export_batch(l, l->x[0]);
    const char *rest = rp_export_whole(l, dims, ones);
    const char *shape = RP_EXPORT_OP(l, "Concat", batch, rest);
    rp_export_int(l, "axis", 0);
    const char *number = rp_export_table(l, 1, one, (const float[]){1.0f});
    const char *samples = RP_EXPORT_OP(l, "Expand", number, shape);
    const char *mask = rp_export_dropout(l, samples, p);
    return RP_EXPORT_OP(l, "Mul", l->x[0], mask);
}
