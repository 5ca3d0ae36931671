/* Elementary kinds: one operator each. Values have the batch in front; a parameter or constant has
 * a batch of 1, which is broadcast. */
#include <string.h>

#include "base/err.h"
#include "export/layer.h"

enum { FLOATS = 1, BOOLS = 9 /* types of ONNX */, LIST_MAX = 2 * RP_DIMS_MAX, INDICES_MAX = 4096 };

static const char *cast(rp_export_layer *l, const char *x, int64_t type) {
    const char *y = RP_EXPORT_OP(l, "Cast", x);
    rp_export_int(l, "to", type);
    return y;
}

/* Input `i` with as many axes as the input with most of them: NumPy adds axes in front, here they
 * follow the batch. */
static const char *align(rp_export_layer *l, uint32_t i) {
    int64_t axes[RP_DIMS_MAX];
    uint32_t dims = 0;
    for (uint32_t k = 0; k < l->input_count; k++) {
        dims = l->in[k].dims > dims ? l->in[k].dims : dims;
    }
    const uint32_t missing = dims - l->in[i].dims;
    for (uint32_t k = 0; k < missing; k++) {
        axes[k] = k + 1;
    }
    return missing > 0 ? rp_export_unsqueeze(l, l->x[i], missing, axes) : l->x[i];
}

/* A list of whole numbers of the model file; returns its length. */
static uint32_t read_list(rp_export_layer *l, const char *key, int64_t *out, uint32_t most) {
    const rp_node *list = rp_node_find(l->keys, key);
    const uint32_t count = list && rp_node_is_list(list) ? rp_node_count(list) : 0;
    for (uint32_t i = 0; i < count && i < most; i++) {
        uint32_t number = 0;
        if (rp_node_item_u32(list, i, 0, INT32_MAX, &number) != RP_OK) {
            return 0;
        }
        out[i] = number;
    }
    return count < most ? count : most;
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* An operator of `words`, a pair for each kind. */
static const char *find_op(const rp_export_layer *l, const char *const (*words)[2]) {
    while (strcmp((*words)[0], l->layer->kind->name) != 0) {
        words++;
        RP_ASSERT((*words)[0]);
    }
    return (*words)[1];
}

const char *rp_export_write_unary(rp_export_layer *l) {
    static const char *const ops[][2] = {
        {"neg", "Neg"}, {"abs", "Abs"},   {"exp", "Exp"},
        {"log", "Log"}, {"sqrt", "Sqrt"}, {"reciprocal", "Reciprocal"},
        {"erf", "Erf"}, {NULL, NULL},
    };
    return RP_EXPORT_OP(l, find_op(l, ops), l->x[0]);
}

const char *rp_export_write_pow(rp_export_layer *l) {
    const char *exponent = rp_export_number(l, rp_export_key_f64(l, "exponent", 1));
    return RP_EXPORT_OP(l, "Pow", l->x[0], exponent);
}

const char *rp_export_write_clip(rp_export_layer *l) {
    const bool low = rp_node_find(l->keys, "min");
    const bool high = rp_node_find(l->keys, "max");
    const char *least = low ? rp_export_number(l, rp_export_key_f64(l, "min", 0)) : "";
    return high ? RP_EXPORT_OP(l, "Clip", l->x[0], least,
                               rp_export_number(l, rp_export_key_f64(l, "max", 0)))
                : RP_EXPORT_OP(l, "Clip", l->x[0], least);
}

const char *rp_export_write_not(rp_export_layer *l) {
    return cast(l, RP_EXPORT_OP(l, "Not", cast(l, l->x[0], BOOLS)), FLOATS);
}

const char *rp_export_write_isnan(rp_export_layer *l) {
    return cast(l, RP_EXPORT_OP(l, "IsNaN", l->x[0]), FLOATS);
}

const char *rp_export_write_binary(rp_export_layer *l) {
    static const char *const ops[][2] = {
        {"sub", "Sub"}, {"div", "Div"}, {"min", "Min"}, {"max", "Max"}, {NULL, NULL}};
    const char *a = align(l, 0);
    const char *b = align(l, 1);
    return RP_EXPORT_OP(l, find_op(l, ops), a, b);
}

/* Comparisons give 0 or 1. */
const char *rp_export_write_compare(rp_export_layer *l) {
    static const char *const ops[][2] = {
        {"equal", "Equal"}, {"less", "Less"}, {"greater", "Greater"}, {NULL, NULL}};
    const char *a = align(l, 0);
    const char *b = align(l, 1);
    return cast(l, RP_EXPORT_OP(l, find_op(l, ops), a, b), FLOATS);
}

const char *rp_export_write_logic(rp_export_layer *l) {
    static const char *const ops[][2] = {{"and", "And"}, {"or", "Or"}, {NULL, NULL}};
    const char *a = cast(l, align(l, 0), BOOLS);
    const char *b = cast(l, align(l, 1), BOOLS);
    return cast(l, RP_EXPORT_OP(l, find_op(l, ops), a, b), FLOATS);
}

const char *rp_export_write_where(rp_export_layer *l) {
    const char *mask = cast(l, align(l, 0), BOOLS);
    const char *a = align(l, 1);
    const char *b = align(l, 2);
    return RP_EXPORT_OP(l, "Where", mask, a, b);
}

/* ---- sums and products ----------------------------------------------------------------------- */

const char *rp_export_write_reduce(rp_export_layer *l) {
    static const char *const ops[][2] = {
        {"mean", "ReduceMean"}, {"sum", "ReduceSum"}, {"max-over", "ReduceMax"}, {NULL, NULL}};
    int64_t axes[LIST_MAX];
    uint32_t count = read_list(l, "axes", axes, LIST_MAX);
    if (count == 0) { /* all axes of a sample */
        for (; count < l->in[0].dims; count++) {
            axes[count] = count;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        axes[i]++;
    }
    /* Without any axis left, a sample is one number in a row. */
    const bool keep = rp_export_key_bool(l, "keep", false);
    const char *y =
        rp_export_reduce(l, find_op(l, ops), l->x[0], count, axes, keep || count == l->in[0].dims);
    const int64_t one[] = {0, 1};
    return !keep && count == l->in[0].dims ? rp_export_reshape(l, y, 2, one) : y;
}

const char *rp_export_write_softmax(rp_export_layer *l) {
    static const char *const ops[][2] = {
        {"softmax", "Softmax"}, {"logsoftmax", "LogSoftmax"}, {NULL, NULL}};
    const uint32_t axis = rp_export_key_u32(l, "axis", l->in[0].dims - 1);
    const char *y = RP_EXPORT_OP(l, find_op(l, ops), l->x[0]);
    rp_export_int(l, "axis", axis + (int64_t)1);
    return y;
}

const char *rp_export_write_matmul(rp_export_layer *l) {
    int64_t perm[RP_DIMS_MAX + 1];
    const char *a = align(l, 0);
    const char *b = align(l, 1);
    const uint32_t dims = l->in[0].dims > l->in[1].dims ? l->in[0].dims : l->in[1].dims;
    if (rp_export_key_bool(l, "transpose", false)) {
        for (uint32_t i = 0; i <= dims; i++) {
            perm[i] = i;
        }
        perm[dims] = dims - (int64_t)1;
        perm[dims - 1] = dims;
        b = rp_export_transpose(l, b, dims + 1, perm);
    }
    return RP_EXPORT_OP(l, "MatMul", a, b);
}

/* ---- arrangements ---------------------------------------------------------------------------- */

const char *rp_export_write_transpose(rp_export_layer *l) {
    int64_t perm[LIST_MAX + 1] = {0};
    const uint32_t dims = read_list(l, "perm", perm + 1, LIST_MAX);
    for (uint32_t i = 1; i <= dims; i++) {
        perm[i]++;
    }
    return rp_export_transpose(l, l->x[0], dims + 1, perm);
}

/* The shape of a sample with `batch` in front. */
static uint32_t shape_of(const rp_export_layer *l, int64_t batch, int64_t *dim) {
    const rp_shape *out = &l->plan->out;
    dim[0] = batch;
    for (uint32_t i = 0; i < out->dims; i++) {
        dim[i + 1] = out->dim[i];
    }
    return out->dims + 1;
}

const char *rp_export_write_reshape(rp_export_layer *l) {
    int64_t dim[RP_DIMS_MAX + 1];
    rp_export_ignore(l, "shape");
    const uint32_t rank = shape_of(l, 0, dim);
    return rp_export_reshape(l, l->x[0], rank, dim);
}

const char *rp_export_write_expand(rp_export_layer *l) {
    int64_t dim[RP_DIMS_MAX + 1];
    int64_t axes[RP_DIMS_MAX];
    rp_export_ignore(l, "shape");
    const uint32_t rank = shape_of(l, 1, dim); /* 1: the batch stays */
    const uint32_t missing = l->plan->out.dims - l->in[0].dims;
    for (uint32_t i = 0; i < missing; i++) {
        axes[i] = i + 1;
    }
    const char *x = missing > 0 ? rp_export_unsqueeze(l, l->x[0], missing, axes) : l->x[0];
    return RP_EXPORT_OP(l, "Expand", x, rp_export_whole(l, rank, dim));
}

const char *rp_export_write_pad(rp_export_layer *l) {
    int64_t given[LIST_MAX];
    int64_t pads[LIST_MAX + 2] = {0};
    const uint32_t dims = read_list(l, "pads", given, LIST_MAX) / 2;
    for (uint32_t i = 0; i < dims; i++) {
        pads[i + 1] = given[i];
        pads[dims + 2 + i] = given[dims + i];
    }
    const char *sides = rp_export_whole(l, 2 * dims + 2, pads);
    return RP_EXPORT_OP(l, "Pad", l->x[0], sides,
                        rp_export_number(l, rp_export_key_f64(l, "value", 0)));
}

const char *rp_export_write_gather(rp_export_layer *l) {
    int64_t index[INDICES_MAX];
    const uint32_t axis = rp_export_key_u32(l, "axis", 0);
    const uint32_t count = read_list(l, "indices", index, INDICES_MAX);
    if (count != l->plan->out.dim[axis]) {
        return rp_export_refuse(l, "it has more than %d indices", INDICES_MAX);
    }
    const char *y = RP_EXPORT_OP(l, "Gather", l->x[0], rp_export_whole(l, count, index));
    rp_export_int(l, "axis", axis + (int64_t)1);
    return y;
}

/* ---- values without an input ----------------------------------------------------------------- */

const char *rp_export_write_parameter(rp_export_layer *l) {
    static const int64_t front[] = {0};
    rp_export_ignore(l, "shape");
    rp_export_ignore(l, "std");
    rp_export_ignore(l, "value");
    return rp_export_unsqueeze(l, rp_export_param(l, "weight"), 1, front);
}
