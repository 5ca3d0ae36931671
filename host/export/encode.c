#include "export/encode.h"

#include <pb_encode.h>
#include <string.h>

#include "onnx_read.pb.h"

enum {
    PIECE_BYTES = 1 << 20,
    EXTERNAL = 1, /* DataLocation */
    DIGITS = 24
};

/* What all callbacks get. */
typedef struct {
    const rp_export_graph *graph;
    const rp_export_external *external;
} context;

/* A part of a list of messages, and the context. */
typedef struct {
    const context *of;
    const void *part;
    uint32_t index;
} part;

typedef bool encoder(pb_ostream_t *stream, const pb_field_t *field, void *const *arg);

static pb_callback_t callback(encoder *encode, const void *arg) {
    pb_callback_t made = {.arg = (void *)(uintptr_t)arg};
    made.funcs.encode = encode;
    return made;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static bool put_text(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const char *text = *arg;
    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_string(stream, (const pb_byte_t *)text, strlen(text));
}

static pb_callback_t text_field(const char *text) {
    return callback(put_text, text);
}

/* A submessage, whose callbacks are set. */
static bool put_message(pb_ostream_t *stream, const pb_field_t *field, const pb_msgdesc_t *type,
                        const void *message) {
    return pb_encode_tag_for_field(stream, field) && pb_encode_submessage(stream, type, message);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static bool put_dims(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const rp_onnx_tensor *tensor = *arg;
    bool good = true;
    for (uint32_t i = 0; good && i < tensor->rank; i++) {
        good = pb_encode_tag_for_field(stream, field) &&
               pb_encode_varint(stream, (uint64_t)tensor->dim[i]);
    }
    return good;
}

static uint64_t bytes_of(const rp_onnx_tensor *tensor) {
    return tensor->count * (tensor->type == RP_ONNX_INT64  ? sizeof(int64_t)
                            : tensor->type == RP_ONNX_BOOL ? 1
                                                           : sizeof(float));
}

static bool put_elements(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const rp_onnx_tensor *tensor = *arg;
    const uint64_t bytes = bytes_of(tensor);
    bool good = pb_encode_tag(stream, PB_WT_STRING, field->tag) && pb_encode_varint(stream, bytes);
    for (uint64_t at = 0; good && at < bytes; at += PIECE_BYTES) {
        const size_t count = bytes - at < PIECE_BYTES ? (size_t)(bytes - at) : PIECE_BYTES;
        good = pb_write(stream, tensor->data + at, count);
    }
    return good;
}

static bool put_pair(pb_ostream_t *stream, const pb_field_t *field, const char *key,
                     const char *value) {
    const onnx_StringStringEntryProto pair = {.key = text_field(key), .value = text_field(value)};
    return put_message(stream, field, onnx_StringStringEntryProto_fields, &pair);
}

/* Where the elements of a tensor are. */
static bool put_place(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const part *p = *arg;
    char offset[DIGITS];
    char length[DIGITS];
    (void)snprintf(offset, sizeof offset, "%llu",
                   (unsigned long long)p->of->external->offset[p->index]);
    (void)snprintf(length, sizeof length, "%llu", (unsigned long long)bytes_of(p->part));
    return put_pair(stream, field, "location", p->of->external->location) &&
           put_pair(stream, field, "offset", offset) && put_pair(stream, field, "length", length);
}

/* A tensor with its elements; or with their place, if `place` is not NULL. */
static onnx_TensorProto tensor_message(const rp_onnx_tensor *tensor, const part *place) {
    onnx_TensorProto message = {.dims = callback(put_dims, tensor), .data_type = tensor->type};
    if (tensor->name[0]) {
        message.name = text_field(tensor->name);
    }
    if (place) {
        message.external_data = callback(put_place, place);
        message.data_location = EXTERNAL;
    } else {
        message.raw_data = callback(put_elements, tensor);
    }
    return message;
}

static bool put_initialisers(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const context *of = *arg;
    bool good = true;
    for (uint32_t i = 0; good && i < of->graph->tensor_count; i++) {
        const rp_onnx_tensor *tensor = &of->graph->tensor[i];
        const part place = {of, tensor, i};
        const onnx_TensorProto message =
            tensor_message(tensor, of->external->location ? &place : NULL);
        good = put_message(stream, field, onnx_TensorProto_fields, &message);
    }
    return good;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool put_ints(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const rp_export_attribute *attribute = *arg;
    bool good = true;
    for (uint32_t i = 0; good && i < attribute->int_count; i++) {
        good = pb_encode_tag(stream, PB_WT_VARINT, field->tag) &&
               pb_encode_varint(stream, (uint64_t)attribute->ints[i]);
    }
    return good;
}

static bool put_tensor(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const onnx_TensorProto message = tensor_message(*arg, NULL);
    return put_message(stream, field, onnx_TensorProto_fields, &message);
}

static bool put_attributes(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const rp_export_node *node = *arg;
    bool good = true;
    for (uint32_t i = 0; good && i < node->attribute_count; i++) {
        const rp_export_attribute *a = &node->attribute[i];
        onnx_AttributeProto message = {
            .name = text_field(a->name), .f = a->f, .i = a->i, .type = (int32_t)a->type};
        if (a->type == RP_ONNX_HAS_S) {
            message.s = text_field(a->s);
        } else if (a->type == RP_ONNX_HAS_INTS) {
            message.ints = callback(put_ints, a);
        } else if (a->type == RP_ONNX_HAS_TENSOR) {
            message.t = callback(put_tensor, a->tensor);
        }
        good = put_message(stream, field, onnx_AttributeProto_fields, &message);
    }
    return good;
}

static bool put_names(pb_ostream_t *stream, const pb_field_t *field, const char *const *name,
                      uint32_t count) {
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++) {
        good = pb_encode_tag_for_field(stream, field) &&
               pb_encode_string(stream, (const pb_byte_t *)name[i], strlen(name[i]));
    }
    return good;
}

static bool put_node_inputs(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const rp_export_node *node = *arg;
    return put_names(stream, field, node->input, node->input_count);
}

static bool put_node_outputs(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const rp_export_node *node = *arg;
    return put_names(stream, field, node->output, node->output_count);
}

static bool put_nodes(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const context *of = *arg;
    bool good = true;
    for (uint32_t i = 0; good && i < of->graph->node_count; i++) {
        const rp_export_node *node = &of->graph->node[i];
        const onnx_NodeProto message = {.input = callback(put_node_inputs, node),
                                        .output = callback(put_node_outputs, node),
                                        .name = text_field(node->name),
                                        .op_type = text_field(node->op),
                                        .attribute = callback(put_attributes, node)};
        good = put_message(stream, field, onnx_NodeProto_fields, &message);
    }
    return good;
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

/* The batch, and the sizes of a sample. */
static bool put_sizes(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const rp_export_value *value = *arg;
    const onnx_Dimension batch = {.dim_param = text_field("batch")};
    bool good = put_message(stream, field, onnx_Dimension_fields, &batch);
    for (uint32_t i = 0; good && i < value->sample.dims; i++) {
        const onnx_Dimension size = {.dim_value = value->sample.dim[i]};
        good = put_message(stream, field, onnx_Dimension_fields, &size);
    }
    return good;
}

static bool put_shape(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const onnx_TensorShapeProto message = {.dim = callback(put_sizes, *arg)};
    return put_message(stream, field, onnx_TensorShapeProto_fields, &message);
}

static bool put_tensor_type(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const rp_export_value *value = *arg;
    const onnx_TensorTypeProto message = {.elem_type = value->ids ? RP_ONNX_INT64 : RP_ONNX_FLOAT,
                                          .shape = callback(put_shape, value)};
    return put_message(stream, field, onnx_TensorTypeProto_fields, &message);
}

static bool put_type(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const onnx_TypeProto message = {.tensor_type = callback(put_tensor_type, *arg)};
    return put_message(stream, field, onnx_TypeProto_fields, &message);
}

static bool put_value(pb_ostream_t *stream, const pb_field_t *field, const rp_export_value *value) {
    const onnx_ValueInfoProto message = {.name = text_field(value->name),
                                         .type = callback(put_type, value)};
    return put_message(stream, field, onnx_ValueInfoProto_fields, &message);
}

static bool put_inputs(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const context *of = *arg;
    bool good = true;
    for (uint32_t i = 0; good && i < of->graph->input_count; i++) {
        good = put_value(stream, field, &of->graph->input[i]);
    }
    return good;
}

static bool put_output(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const context *of = *arg;
    return put_value(stream, field, &of->graph->output);
}

/* ---- the model ------------------------------------------------------------------------------- */

static bool put_graph(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const context *of = *arg;
    const onnx_GraphProto message = {.node = callback(put_nodes, of),
                                     .name = text_field("model"),
                                     .initializer = callback(put_initialisers, of),
                                     .input = callback(put_inputs, of),
                                     .output = callback(put_output, of)};
    return put_message(stream, field, onnx_GraphProto_fields, &message);
}

static bool put_opset(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const context *of = *arg;
    const onnx_OperatorSetIdProto message = {.version = of->graph->form.opset};
    return put_message(stream, field, onnx_OperatorSetIdProto_fields, &message);
}

/* The oldest version of the format that has an opset. source: ONNX's docs/Versioning.md */
static int64_t ir_version_of(uint32_t opset) {
    return opset >= 23 ? 11 : opset >= 21 ? 10 : opset >= 19 ? 9 : opset >= 15 ? 8 : 7;
}

static bool encode(pb_ostream_t *stream, const rp_export_graph *graph,
                   const rp_export_external *external) {
    const context of = {graph, external};
    const onnx_ModelProto message = {.ir_version = ir_version_of(graph->form.opset),
                                     .producer_name = text_field("ringpipe"),
                                     .producer_version = text_field(RP_VERSION),
                                     .graph = callback(put_graph, &of),
                                     .opset_import = callback(put_opset, &of)};
    return pb_encode(stream, onnx_ModelProto_fields, &message);
}

uint64_t rp_export_encoded_bytes(const rp_export_graph *graph, const rp_export_external *external) {
    pb_ostream_t stream = PB_OSTREAM_SIZING;
    return encode(&stream, graph, external) ? stream.bytes_written : UINT64_MAX;
}

static bool write_file(pb_ostream_t *stream, const pb_byte_t *bytes, size_t count) {
    return fwrite(bytes, 1, count, stream->state) == count;
}

bool rp_export_encode(const rp_export_graph *graph, const rp_export_external *external,
                      FILE *file) {
    pb_ostream_t stream = {.callback = write_file, .state = file, .max_size = SIZE_MAX};
    return encode(&stream, graph, external);
}
