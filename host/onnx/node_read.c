#include "onnx/node_read.h"

#include <string.h>

#include "onnx/tensor_read.h"
#include "onnx_read.pb.h"

enum { ATTRIBUTES_MAX = 256, SCOPES_MAX = 1 << 16 };

/* A node while it is decoded. */
typedef struct {
    rp_onnx_decoder *decoder;
    rp_onnx_symbols *values;
    rp_onnx_node *node;
    uint32_t input_room, output_room, attribute_room;
} parts;

/* ---- attributes ------------------------------------------------------------------------------ */

static bool take_tensor(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    rp_onnx_tensor *tensor;
    (void)field;
    p->decoder->err = RP_ARENA_NEW(p->decoder->arena, 1, &tensor);
    if (p->decoder->err != RP_OK || !rp_onnx_read_tensor(p->decoder, stream, tensor)) {
        return false;
    }
    p->node->attribute[p->node->attribute_count].tensor = tensor;
    return true;
}

static bool take_attribute(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    rp_onnx_decoder *decoder = p->decoder;
    rp_onnx_node *node = p->node;
    onnx_AttributeProto message = onnx_AttributeProto_init_zero;
    rp_onnx_text_field name = {.decoder = decoder, .text = ""};
    rp_onnx_text_field text = {.decoder = decoder, .text = ""};
    rp_onnx_whole_field ints = {
        .decoder = decoder, .what = "numbers in an attribute", .most = RP_ONNX_LIST_MAX};
    rp_onnx_real_field floats = {.decoder = decoder, .width = sizeof(float)};
    uint32_t graphs = 0;
    (void)field;
    if (!rp_onnx_make_room(decoder, (void **)&node->attribute, sizeof *node->attribute,
                           node->attribute_count, &p->attribute_room, ATTRIBUTES_MAX,
                           "attributes")) {
        return false;
    }
    rp_onnx_attribute *out = &node->attribute[node->attribute_count];
    *out = (rp_onnx_attribute){0};
    message.name = rp_onnx_call(rp_onnx_take_text, &name);
    message.s = rp_onnx_call(rp_onnx_take_text, &text);
    message.t = rp_onnx_call(take_tensor, p);
    message.g = rp_onnx_call(rp_onnx_count_fields, &graphs);
    message.graphs = rp_onnx_call(rp_onnx_count_fields, &graphs);
    message.floats = rp_onnx_call(rp_onnx_take_real, &floats);
    message.ints = rp_onnx_call(rp_onnx_take_whole, &ints);
    if (!rp_onnx_decode(decoder, stream, onnx_AttributeProto_fields, &message, "an attribute")) {
        return false;
    }
    out->name = name.text;
    out->type = message.type;
    out->f = message.f;
    out->i = message.i;
    out->s = text.text;
    out->ints = ints.item;
    out->int_count = ints.count;
    out->float_count =
        (uint32_t)(floats.bytes / sizeof(float) < RP_ONNX_LIST_MAX ? floats.bytes / sizeof(float)
                                                                   : RP_ONNX_LIST_MAX);
    if (out->float_count > 0) {
        float *copy;
        decoder->err = RP_ARENA_NEW(decoder->arena, out->float_count, &copy);
        if (decoder->err != RP_OK) {
            return false;
        }
        memcpy(copy, floats.at, out->float_count * sizeof *copy);
        out->floats = copy;
    }
    node->has_graph |= graphs > 0;
    node->attribute_count++;
    return true;
}

/* ---- the node -------------------------------------------------------------------------------- */

static bool take_value(parts *p, pb_istream_t *stream, uint32_t **list, uint32_t *count,
                       uint32_t *room, const char *what) {
    rp_onnx_text_field name = {.decoder = p->decoder, .text = ""};
    void *arg = &name;
    uint32_t value = RP_ONNX_NONE;
    if (!rp_onnx_take_text(stream, NULL, &arg) ||
        !rp_onnx_make_room(p->decoder, (void **)list, sizeof **list, *count, room,
                           RP_ONNX_INPUTS_MAX, what)) {
        return false;
    }
    if (p->values->count > RP_ONNX_VALUES_MAX) {
        return rp_onnx_decode_fail(p->decoder, RP_ERR_LIMIT, "%s: more than %d values",
                                   p->decoder->file, RP_ONNX_VALUES_MAX);
    }
    if (name.text[0]) {
        p->decoder->err = rp_onnx_symbols_add(p->values, name.text, &value);
        if (p->decoder->err != RP_OK) {
            return false;
        }
    }
    (*list)[(*count)++] = value;
    return true;
}

static bool take_input(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    (void)field;
    return take_value(p, stream, &p->node->input, &p->node->input_count, &p->input_room, "inputs");
}

static bool take_output(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    (void)field;
    return take_value(p, stream, &p->node->output, &p->node->output_count, &p->output_room,
                      "outputs");
}

/* The name is also that in messages about the rest of the node. */
static bool take_name(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    rp_onnx_text_field name = {.decoder = p->decoder, .text = ""};
    void *text = &name;
    const bool taken = rp_onnx_take_text(stream, field, &text);
    p->node->name = name.text;
    p->decoder->node = name.text;
    return taken;
}

/* Keeps PyTorch's list of the modules that a node is in. */
static bool take_property(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    parts *p = *arg;
    rp_onnx_bytes_field value;
    const char *key;
    char *text;
    (void)field;
    if (!rp_onnx_decode_pair(p->decoder, stream, &key, &value)) {
        return false;
    }
    if (strcmp(key, "pkg.torch.onnx.name_scopes") == 0 && value.count < SCOPES_MAX) {
        p->decoder->err =
            rp_arena_text(p->decoder->arena, (const char *)value.at, value.count, &text);
        p->node->scopes = text;
    }
    return p->decoder->err == RP_OK;
}

bool rp_onnx_read_node(rp_onnx_decoder *decoder, pb_istream_t *stream, rp_onnx_symbols *values,
                       rp_onnx_node *out) {
    onnx_NodeProto message = onnx_NodeProto_init_zero;
    rp_onnx_text_field op = {.decoder = decoder, .text = ""};
    rp_onnx_text_field domain = {.decoder = decoder, .text = ""};
    parts p = {.decoder = decoder, .values = values, .node = out};
    *out = (rp_onnx_node){.name = ""};
    message.input = rp_onnx_call(take_input, &p);
    message.output = rp_onnx_call(take_output, &p);
    message.name = rp_onnx_call(take_name, &p);
    message.op_type = rp_onnx_call(rp_onnx_take_text, &op);
    message.attribute = rp_onnx_call(take_attribute, &p);
    message.domain = rp_onnx_call(rp_onnx_take_text, &domain);
    message.metadata_props = rp_onnx_call(take_property, &p);
    if (!rp_onnx_decode(decoder, stream, onnx_NodeProto_fields, &message, "a node")) {
        return false;
    }
    decoder->node = "";
    out->op = op.text;
    out->domain = strcmp(domain.text, "ai.onnx") == 0 ? "" : domain.text;
    /* a node without a name is called by its first output */
    if (!out->name[0] && out->output_count > 0 && out->output[0] != RP_ONNX_NONE) {
        out->name = values->name[out->output[0]];
    }
    return true;
}
