#include "export/layer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- nodes ----------------------------------------------------------------------------------- */

/* "/layer/Op", with a number after the first node of this operator. */
static char *name_node(rp_export_layer *l, const char *op) {
    rp_export_graph *graph = l->graph;
    uint32_t same = 0;
    char *name = NULL;
    for (uint32_t i = l->first_node; i < graph->node_count; i++) {
        same += strcmp(graph->node[i].op, op) == 0;
    }
    if (graph->err == RP_OK) {
        graph->err =
            same == 0
                ? rp_arena_printf(graph->net->arena, &name, "/%s/%s", l->layer->name, op)
                : rp_arena_printf(graph->net->arena, &name, "/%s/%s_%u", l->layer->name, op, same);
    }
    return name;
}

const char *rp_export_op(rp_export_layer *l, const char *op, uint32_t count,
                         const char *const *input) {
    const char *name = name_node(l, op);
    const rp_export_node *node =
        l->graph->err == RP_OK ? rp_export_add_node(l->graph, op, name, count, input) : NULL;
    return node ? node->output[0] : "";
}

static rp_export_attribute *add_attribute(rp_export_layer *l, const char *name,
                                          rp_onnx_attribute_type type) {
    static rp_export_attribute ignored;
    rp_export_graph *graph = l->graph;
    if (graph->err != RP_OK || graph->node_count == l->first_node) {
        return &ignored;
    }
    rp_export_node *node = &graph->node[graph->node_count - 1];
    RP_ASSERT(node->attribute_count < RP_EXPORT_ATTRIBUTES_MAX);
    rp_export_attribute *attribute = &node->attribute[node->attribute_count++];
    *attribute = (rp_export_attribute){.name = name, .type = type};
    return attribute;
}

void rp_export_int(rp_export_layer *l, const char *name, int64_t value) {
    add_attribute(l, name, RP_ONNX_HAS_I)->i = value;
}

void rp_export_float(rp_export_layer *l, const char *name, double value) {
    add_attribute(l, name, RP_ONNX_HAS_F)->f = (float)value;
}

void rp_export_word(rp_export_layer *l, const char *name, const char *value) {
    add_attribute(l, name, RP_ONNX_HAS_S)->s = value;
}

static void *copy_of(rp_export_layer *l, const void *from, size_t bytes) {
    uint8_t *copy = NULL;
    RP_EXPORT_NEW(l->graph, bytes + 1, &copy);
    if (copy) {
        memcpy(copy, from, bytes);
    }
    return copy;
}

void rp_export_ints(rp_export_layer *l, const char *name, uint32_t count, const int64_t *values) {
    const int64_t *copy = copy_of(l, values, count * sizeof *values);
    rp_export_attribute *attribute = add_attribute(l, name, RP_ONNX_HAS_INTS);
    attribute->ints = copy;
    attribute->int_count = copy ? count : 0;
}

void rp_export_outputs(rp_export_layer *l, uint32_t count) {
    rp_export_graph *graph = l->graph;
    RP_ASSERT(count <= RP_EXPORT_OUTPUTS_MAX);
    if (graph->err != RP_OK) {
        return;
    }
    rp_export_node *node = &graph->node[graph->node_count - 1];
    for (; node->output_count < count && graph->err == RP_OK; node->output_count++) {
        char *name = NULL;
        graph->err = rp_arena_printf(graph->net->arena, &name, "%s_output_%u", node->name,
                                     node->output_count);
        node->output[node->output_count] = name ? name : "";
    }
}

const char *rp_export_output(const rp_export_layer *l, uint32_t i) {
    const rp_export_graph *graph = l->graph;
    return graph->err == RP_OK ? graph->node[graph->node_count - 1].output[i] : "";
}

/* ---- constants ------------------------------------------------------------------------------- */

static const char *add_constant(rp_export_layer *l, int32_t type, uint32_t rank, const int64_t *dim,
                                const void *values, size_t element_bytes) {
    rp_onnx_tensor *tensor = NULL;
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= (uint64_t)dim[i];
    }
    const void *copy = copy_of(l, values, count * element_bytes);
    RP_EXPORT_NEW(l->graph, 1, &tensor);
    if (!tensor) {
        return "";
    }
    *tensor =
        (rp_onnx_tensor){.name = "", .type = type, .rank = rank, .count = count, .data = copy};
    memcpy(tensor->dim, dim, rank * sizeof *dim);
    const char *value = rp_export_op(l, "Constant", 0, NULL);
    add_attribute(l, "value", RP_ONNX_HAS_TENSOR)->tensor = tensor;
    return value;
}

const char *rp_export_number(rp_export_layer *l, double value) {
    const float number = (float)value;
    return add_constant(l, RP_ONNX_FLOAT, 0, (const int64_t[]){0}, &number, sizeof number);
}

const char *rp_export_id(rp_export_layer *l, int64_t value) {
    return add_constant(l, RP_ONNX_INT64, 0, (const int64_t[]){0}, &value, sizeof value);
}

const char *rp_export_whole(rp_export_layer *l, uint32_t count, const int64_t *values) {
    const int64_t dim = count;
    return add_constant(l, RP_ONNX_INT64, 1, &dim, values, sizeof *values);
}

const char *rp_export_table(rp_export_layer *l, uint32_t rank, const int64_t *dim,
                            const float *values) {
    return values ? add_constant(l, RP_ONNX_FLOAT, rank, dim, values, sizeof *values) : "";
}

/* ---- tensors --------------------------------------------------------------------------------- */

bool rp_export_has(const rp_export_layer *l, const char *suffix) {
    const uint32_t param = rp_export_find_param(l->graph->net->model, l->index, suffix);
    return param != UINT32_MAX && l->graph->net->value[param];
}

const char *rp_export_stored(rp_export_layer *l, const char *suffix, uint32_t *dims) {
    const rp_model *model = l->graph->net->model;
    const uint32_t param = rp_export_find_param(model, l->index, suffix);
    RP_ASSERT(param != UINT32_MAX);
    *dims = model->param[param].shape.dims;
    return rp_export_add_param(l->graph, param);
}

/* `names` may ask for dimensions of 1 in front, which the layer does not have, or for none of those
 * before the last one. */
const char *rp_export_param(rp_export_layer *l, const char *suffix) {
    static const int64_t front[RP_DIMS_MAX] = {0, 1, 2, 3, 4, 5};
    const rp_model *model = l->graph->net->model;
    uint32_t stored;
    const char *value = rp_export_stored(l, suffix, &stored);
    const uint32_t index = model->param[rp_export_find_param(model, l->index, suffix)].index;
    const uint32_t dims = l->plan->param[index].shape.dims;
    if (stored > dims) {
        return rp_export_squeeze(l, value, stored - dims, front);
    }
    return stored < dims ? rp_export_unsqueeze(l, value, dims - stored, front + stored - 1) : value;
}

/* ---- arrangements ---------------------------------------------------------------------------- */

const char *rp_export_reshape(rp_export_layer *l, const char *x, uint32_t rank,
                              const int64_t *dim) {
    const char *shape = rp_export_whole(l, rank, dim);
    return RP_EXPORT_OP(l, "Reshape", x, shape);
}

const char *rp_export_transpose(rp_export_layer *l, const char *x, uint32_t rank,
                                const int64_t *perm) {
    const char *y = RP_EXPORT_OP(l, "Transpose", x);
    rp_export_ints(l, "perm", rank, perm);
    return y;
}

const char *rp_export_slice(rp_export_layer *l, const char *x, int64_t axis, int64_t start,
                            int64_t end) {
    const char *starts = rp_export_whole(l, 1, &start);
    const char *ends = rp_export_whole(l, 1, &end);
    const char *axes = rp_export_whole(l, 1, &axis);
    return RP_EXPORT_OP(l, "Slice", x, starts, ends, axes);
}

const char *rp_export_unsqueeze(rp_export_layer *l, const char *x, uint32_t count,
                                const int64_t *axes) {
    const char *list = rp_export_whole(l, count, axes);
    return RP_EXPORT_OP(l, "Unsqueeze", x, list);
}

const char *rp_export_squeeze(rp_export_layer *l, const char *x, uint32_t count,
                              const int64_t *axes) {
    const char *list = rp_export_whole(l, count, axes);
    return RP_EXPORT_OP(l, "Squeeze", x, list);
}

const char *rp_export_reduce(rp_export_layer *l, const char *op, const char *x, uint32_t count,
                             const int64_t *axes, bool keep) {
    const bool as_input = l->opset >= (strcmp(op, "ReduceSum") == 0 ? 13 : 18);
    const char *list = as_input ? rp_export_whole(l, count, axes) : "";
    const char *y = as_input ? RP_EXPORT_OP(l, op, x, list) : RP_EXPORT_OP(l, op, x);
    if (!as_input) {
        rp_export_ints(l, "axes", count, axes);
    }
    rp_export_int(l, "keepdims", keep);
    return y;
}

const char *rp_export_dropout(rp_export_layer *l, const char *x, double p) {
    static const uint8_t yes = 1;
    if (!l->train || p <= 0.0) {
        return x;
    }
    const char *ratio = rp_export_number(l, p);
    const char *mode = add_constant(l, RP_ONNX_BOOL, 0, (const int64_t[]){0}, &yes, sizeof yes);
    return RP_EXPORT_OP(l, "Dropout", x, ratio, mode);
}

const char *rp_export_batch(rp_export_layer *l, const char *x) {
    const char *shape = RP_EXPORT_OP(l, "Shape", x);
    return rp_export_slice(l, shape, 0, 0, 1);
}

const char *rp_export_real_tokens(rp_export_layer *l, const char *ids, int32_t padding) {
    const char *id = rp_export_id(l, padding);
    const char *same = RP_EXPORT_OP(l, "Equal", ids, id);
    const char *real = RP_EXPORT_OP(l, "Not", same);
    const char *y = RP_EXPORT_OP(l, "Cast", real);
    rp_export_int(l, "to", RP_ONNX_FLOAT);
    return y;
}

/* ---- the model file -------------------------------------------------------------------------- */

static void keep_error(rp_export_layer *l, rp_err err) {
    l->graph->err = l->graph->err == RP_OK ? err : l->graph->err;
}

uint32_t rp_export_key_u32(rp_export_layer *l, const char *key, uint32_t usual) {
    uint32_t value = usual;
    keep_error(l, rp_node_u32(l->keys, key, 0, UINT32_MAX, &value));
    return value;
}

int32_t rp_export_key_i32(rp_export_layer *l, const char *key, int32_t usual) {
    int32_t value = usual;
    keep_error(l, rp_node_i32(l->keys, key, &value));
    return value;
}

double rp_export_key_f64(rp_export_layer *l, const char *key, double usual) {
    double value = usual;
    keep_error(l, rp_node_f64(l->keys, key, -HUGE_VAL, HUGE_VAL, &value));
    return value;
}

bool rp_export_key_bool(rp_export_layer *l, const char *key, bool usual) {
    bool value = usual;
    keep_error(l, rp_node_bool(l->keys, key, &value));
    return value;
}

uint32_t rp_export_key_word(rp_export_layer *l, const char *key, const char *const *words) {
    uint32_t value = 0;
    keep_error(l, rp_node_word(l->keys, key, words, &value));
    return value;
}

bool rp_export_key_pair(rp_export_layer *l, const char *key, int64_t pair[2]) {
    rp_node *node = rp_node_find(l->keys, key);
    const bool list = node && rp_node_is_list(node);
    uint32_t value[2] = {0, 0};
    if (!node) {
        return false;
    }
    if (list) {
        for (uint32_t i = 0; i < 2; i++) {
            keep_error(l, rp_node_item_u32(node, i, 0, UINT32_MAX, &value[i]));
        }
    } else {
        value[0] = value[1] = rp_export_key_u32(l, key, 0);
    }
    pair[0] = value[0];
    pair[1] = value[1];
    return true;
}

void rp_export_ignore(rp_export_layer *l, const char *key) {
    (void)rp_node_find(l->keys, key);
}

const char *rp_export_refuse(rp_export_layer *l, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    keep_error(l, rp_onnx_add_finding(l->graph->refusals, "layer", "layer '%s' (%s): %s",
                                      l->layer->name, l->layer->kind->name, text));
    return "";
}
