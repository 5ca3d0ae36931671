/* The key `input` of a model file: shape and type of a sample, or of its parts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nn/layer_common.h"
#include "nn/model_own.h"

static rp_err read_dim(const rp_node *node, uint32_t *out) {
    const char *text = rp_node_is_scalar(node) ? rp_node_text(node) : "";
    char *end = NULL;
    errno = 0;
    unsigned long long value = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    if (value == 0 || value > INT32_MAX || errno || *end) {
        return rp_node_fail(node, "expected a whole number from 1 to %d", INT32_MAX);
    }
    *out = (uint32_t)value;
    return RP_OK;
}

/* A tensor has one more dimension than its samples. */
static bool has_room_for_samples(const rp_shape *sample) {
    return sample->dims < RP_DIMS_MAX && rp_shape_check(sample);
}

static rp_err refuse_shape(const rp_node *node) {
    return rp_node_fail(node, "a sample has at most %d dimensions and 2^31 - 1 elements",
                        RP_DIMS_MAX - 1);
}

static rp_err read_shape(const rp_node *node, const rp_model_data *data, rp_shape *out) {
    rp_err err;
    if (rp_node_is_scalar(node) && strcmp(rp_node_text(node), "data") == 0) {
        if (data->sample.dims == 0) {
            return rp_node_fail(node, "this data set has no sample shape of its own: expected a "
                                      "list like [3, 32, 32]");
        }
        if (!has_room_for_samples(&data->sample)) {
            return refuse_shape(node);
        }
        *out = data->sample;
        return RP_OK;
    }
    if (!rp_node_is_list(node) || rp_node_count(node) == 0 || rp_node_count(node) >= RP_DIMS_MAX) {
        return rp_node_fail(node,
                            "expected `data`, a list of 1 to %d sizes like [3, 32, 32], or "
                            "{shape: [64], type: i32}",
                            RP_DIMS_MAX - 1);
    }
    *out = (rp_shape){.dims = rp_node_count(node)};
    for (uint32_t i = 0; i < out->dims; i++) {
        RP_TRY(read_dim(rp_node_item(node, i), &out->dim[i]));
    }
    return has_room_for_samples(out) ? RP_OK : refuse_shape(node);
fail:
    return err;
}

static rp_err check_input(const rp_node *node, const rp_model_data *data, const rp_model *model) {
    char a[RP_LAYER_SHAPE_TEXT];
    char b[RP_LAYER_SHAPE_TEXT];
    if (data->sample.dims == 0 || (rp_shape_count(&data->sample) == rp_shape_count(&model->input) &&
                                   data->type == model->input_type)) {
        return RP_OK;
    }
    const bool types = data->type != model->input_type;
    const rp_err err = rp_node_fail(
        node, "the model expects samples %s%s%s, the data set has %s%s%s",
        rp_layer_shape_text(&model->input, a), types ? " of " : "",
        types ? rp_dtype_name(model->input_type) : "", rp_layer_shape_text(&data->sample, b),
        types ? " of " : "", types ? rp_dtype_name(data->type) : "");
    return err == RP_OK ? err : RP_ERR_SHAPE;
}

/* `{shape: [64], type: i32}` */
static rp_err read_typed(rp_node *node, const rp_model_data *data, rp_shape *shape,
                         rp_dtype *type) {
    static const char *const types[] = {"f32", "i32", NULL};
    uint32_t ids = 0;
    rp_err err;
    RP_TRY(rp_node_need(node, "shape"));
    RP_TRY(read_shape(rp_node_find(node, "shape"), data, shape));
    RP_TRY(rp_node_word(node, "type", types, &ids));
    RP_TRY(rp_node_done(node));
    *type = ids ? RP_I32 : RP_F32;
fail:
    return err;
}

/* Adds an input along axis 0 of those before. */
static rp_err append_input(const rp_node *node, const rp_shape *shape, rp_dtype type,
                           rp_model *model) {
    rp_shape same = *shape;
    same.dim[0] = model->input.dim[0];
    if (model->input_count == 0) {
        model->input = *shape;
        model->input_type = type;
        return RP_OK;
    }
    if (type != model->input_type) {
        return rp_node_fail(node,
                            "expected the type of the first input, %s: the inputs of a model have "
                            "one type, found %s",
                            rp_dtype_name(model->input_type), rp_dtype_name(type));
    }
    if (!rp_shape_equal(&model->input, &same)) {
        return rp_node_fail(node, "expected a shape that differs from that of the first input only "
                                  "in the first size");
    }
    if (shape->dim[0] > INT32_MAX - model->input.dim[0]) {
        return refuse_shape(node);
    }
    model->input.dim[0] += shape->dim[0];
    return has_room_for_samples(&model->input) ? RP_OK : refuse_shape(node);
}

rp_err rp_model_read_inputs(rp_node *node, rp_model *model, uint32_t size[RP_LAYER_INPUTS_MAX]) {
    static const rp_model_data nothing = {0};
    const uint32_t count = rp_node_count(node);
    rp_shape shape;
    rp_dtype type = RP_F32;
    rp_err err = RP_OK;
    if (count < 2 || count > RP_LAYER_INPUTS_MAX) {
        return rp_node_fail(node,
                            "expected `shape` and `type`, or 2 to %d inputs like `source: {shape: "
                            "[40], type: i32}`",
                            RP_LAYER_INPUTS_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
        rp_node *input = rp_node_find(node, rp_node_key(node, i));
        if (!rp_node_is_map(input)) {
            return rp_node_fail(input, "expected an input like {shape: [40], type: i32}");
        }
        RP_TRY(read_typed(input, &nothing, &shape, &type));
        RP_TRY(append_input(input, &shape, type, model));
        size[i] = shape.dim[0];
        model->input_count++;
    }
fail:
    return err;
}

bool rp_model_names_inputs(const rp_node *input) {
    return input && rp_node_is_map(input) &&
           (rp_node_count(input) == 0 || rp_node_is_map(rp_node_item(input, 0)));
}

/* `input: [3, 32, 32]`, `input: data`, `input: {shape: [64], type: i32}`, or several by name. */
rp_err rp_model_read_input(rp_node *root, const rp_model_data *data, rp_model *model,
                           uint32_t size[RP_LAYER_INPUTS_MAX]) {
    rp_err err;
    RP_TRY(rp_node_need(root, "input"));
    rp_node *node = rp_node_find(root, "input");
    if (rp_model_names_inputs(node)) {
        RP_TRY(rp_model_read_inputs(node, model, size));
    } else if (rp_node_is_map(node)) {
        RP_TRY(read_typed(node, data, &model->input, &model->input_type));
    } else {
        RP_TRY(read_shape(node, data, &model->input));
        model->input_type = rp_node_is_list(node) ? RP_F32 : data->type;
    }
    RP_TRY(check_input(node, data, model));
fail:
    return err;
}
