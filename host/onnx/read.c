/* Reads a model: the graph, then whether it is one. */
#include <inttypes.h>
#include <string.h>

#include "base/input.h"
#include "onnx/info_read.h"
#include "onnx/node_read.h"
#include "onnx/tensor_read.h"
#include "onnx_read.pb.h"

/* A model while it is decoded. */
typedef struct {
    rp_onnx_decoder *decoder;
    rp_onnx_model *model;
    rp_onnx_symbols values;
    uint32_t graphs;
    uint32_t node_room, tensor_room, input_room, output_room, info_room, info_count;
    struct stated {
        uint32_t value;
        rp_onnx_info info;
    } * stated; /* shapes, in the order of the file */
} reader;

/* ---- the graph ------------------------------------------------------------------------------- */

static bool take_node(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    reader *r = *arg;
    rp_onnx_model *model = r->model;
    (void)field;
    if (!rp_onnx_make_room(r->decoder, (void **)&model->node, sizeof *model->node,
                           model->node_count, &r->node_room, RP_ONNX_NODES_MAX, "nodes") ||
        !rp_onnx_read_node(r->decoder, stream, &r->values, &model->node[model->node_count])) {
        return false;
    }
    model->node_count++;
    return true;
}

static bool take_initialiser(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    reader *r = *arg;
    rp_onnx_model *model = r->model;
    (void)field;
    if (!rp_onnx_make_room(r->decoder, (void **)&model->tensor, sizeof *model->tensor,
                           model->tensor_count, &r->tensor_room, RP_ONNX_TENSORS_MAX,
                           "initialisers") ||
        !rp_onnx_read_tensor(r->decoder, stream, &model->tensor[model->tensor_count])) {
        return false;
    }
    if (!model->tensor[model->tensor_count].name[0]) {
        return rp_onnx_decode_fail(r->decoder, RP_ERR_FORMAT, "%s: initialiser %u has no name",
                                   r->decoder->file, model->tensor_count);
    }
    model->tensor_count++;
    return true;
}

/* Keeps the description of a value; *value is the value. */
static bool add_info(reader *r, pb_istream_t *stream, uint32_t *value) {
    const char *name;
    if (!rp_onnx_make_room(r->decoder, (void **)&r->stated, sizeof *r->stated, r->info_count,
                           &r->info_room, RP_ONNX_VALUES_MAX, "described values") ||
        !rp_onnx_read_info(r->decoder, stream, &name, &r->stated[r->info_count].info)) {
        return false;
    }
    r->decoder->err = rp_onnx_symbols_add(&r->values, name, value);
    r->stated[r->info_count++].value = *value;
    return r->decoder->err == RP_OK;
}

static bool take_info(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    uint32_t value;
    (void)field;
    return add_info(*arg, stream, &value);
}

static bool add_end(reader *r, pb_istream_t *stream, uint32_t **list, uint32_t *count,
                    uint32_t *room, const char *what) {
    uint32_t value;
    if (!rp_onnx_make_room(r->decoder, (void **)list, sizeof **list, *count, room,
                           RP_ONNX_TENSORS_MAX, what) ||
        !add_info(r, stream, &value)) {
        return false;
    }
    (*list)[(*count)++] = value;
    return true;
}

static bool take_input(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    reader *r = *arg;
    (void)field;
    return add_end(r, stream, &r->model->input, &r->model->input_count, &r->input_room, "inputs");
}

static bool take_output(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    reader *r = *arg;
    (void)field;
    return add_end(r, stream, &r->model->output, &r->model->output_count, &r->output_room,
                   "outputs");
}

static bool take_property(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    reader *r = *arg;
    rp_onnx_bytes_field value;
    const char *key;
    (void)field;
    if (!rp_onnx_decode_pair(r->decoder, stream, &key, &value)) {
        return false;
    }
    if (strcmp(key, "pkg.torch.export.ExportedProgram.graph_signature") == 0) {
        r->model->signature = (const char *)value.at;
        r->model->signature_bytes = value.count;
    }
    return true;
}

static bool take_graph(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    reader *r = *arg;
    onnx_GraphProto message = onnx_GraphProto_init_zero;
    (void)field;
    if (r->graphs++ > 0) {
        return rp_onnx_decode_fail(r->decoder, RP_ERR_FORMAT, "%s: more than one graph",
                                   r->decoder->file);
    }
    message.node = rp_onnx_call(take_node, r);
    message.initializer = rp_onnx_call(take_initialiser, r);
    message.input = rp_onnx_call(take_input, r);
    message.output = rp_onnx_call(take_output, r);
    message.value_info = rp_onnx_call(take_info, r);
    message.sparse_initializer = rp_onnx_call(rp_onnx_count_fields, &r->model->sparse);
    message.metadata_props = rp_onnx_call(take_property, r);
    return rp_onnx_decode(r->decoder, stream, onnx_GraphProto_fields, &message, "the graph");
}

/* ---- the model ------------------------------------------------------------------------------- */

static bool take_opset(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    reader *r = *arg;
    onnx_OperatorSetIdProto message = onnx_OperatorSetIdProto_init_zero;
    rp_onnx_text_field domain = {.decoder = r->decoder, .text = ""};
    (void)field;
    message.domain = rp_onnx_call(rp_onnx_take_text, &domain);
    if (!rp_onnx_decode(r->decoder, stream, onnx_OperatorSetIdProto_fields, &message,
                        "an operator set")) {
        return false;
    }
    if (!domain.text[0] || strcmp(domain.text, "ai.onnx") == 0) {
        r->model->opset = message.version;
    }
    return true;
}

static rp_err decode_model(reader *r) {
    rp_onnx_decoder *decoder = r->decoder;
    rp_onnx_model *model = r->model;
    onnx_ModelProto message = onnx_ModelProto_init_zero;
    rp_onnx_text_field producer = {.decoder = decoder, .text = ""};
    rp_onnx_text_field version = {.decoder = decoder, .text = ""};
    pb_istream_t stream = pb_istream_from_buffer(decoder->bytes, decoder->count);
    message.producer_name = rp_onnx_call(rp_onnx_take_text, &producer);
    message.producer_version = rp_onnx_call(rp_onnx_take_text, &version);
    message.graph = rp_onnx_call(take_graph, r);
    message.opset_import = rp_onnx_call(take_opset, r);
    message.functions = rp_onnx_call(rp_onnx_count_fields, &model->functions);
    if (!rp_onnx_decode(decoder, &stream, onnx_ModelProto_fields, &message, "the file")) {
        return decoder->err;
    }
    model->ir_version = message.ir_version;
    model->producer = producer.text;
    model->producer_version = version.text;
    return r->graphs > 0
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: is not an ONNX model: it has no graph", decoder->file);
}

/* ---- whether it is a graph ------------------------------------------------------------------- */

/* Makes tables by value out of lists. */
static rp_err index_values(reader *r) {
    rp_onnx_model *model = r->model;
    rp_err err = RP_OK;
    uint32_t value;
    RP_TRY(RP_ARENA_NEW(r->decoder->arena, model->tensor_count + 1, &model->tensor_value));
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        RP_TRY(rp_onnx_symbols_add(&r->values, model->tensor[i].name, &value));
        model->tensor_value[i] = value;
    }
    model->value_count = r->values.count;
    model->value = r->values.name;
    if (model->value_count > RP_ONNX_VALUES_MAX) {
        return rp_fail(RP_ERR_LIMIT, "%s: more than %d values", model->file, RP_ONNX_VALUES_MAX);
    }
    RP_TRY(RP_ARENA_NEW(r->decoder->arena, model->value_count + 1, &model->info));
    RP_TRY(RP_ARENA_NEW(r->decoder->arena, model->value_count + 1, &model->tensor_of));
    for (uint32_t i = 0; i < r->info_count; i++) {
        model->info[r->stated[i].value] = r->stated[i].info;
    }
    for (uint32_t i = 0; i < model->value_count; i++) {
        model->tensor_of[i] = RP_ONNX_NONE;
    }
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        value = model->tensor_value[i];
        if (model->tensor_of[value] != RP_ONNX_NONE) {
            return rp_fail(RP_ERR_FORMAT, "%s: two initialisers are called %s", model->file,
                           model->value[value]);
        }
        model->tensor_of[value] = i;
    }
fail:
    return err;
}

/* Removes inputs that are initialisers: older files list them as both. */
static void drop_initialised_inputs(rp_onnx_model *model) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < model->input_count; i++) {
        if (model->tensor_of[model->input[i]] == RP_ONNX_NONE) {
            model->input[kept++] = model->input[i];
        }
    }
    model->input_count = kept;
}

static rp_err give_value(const rp_onnx_model *model, bool *given, uint32_t value,
                         const char *node) {
    if (given[value]) {
        return rp_fail(RP_ERR_FORMAT, "%s: %s%s gives %s, which has another source already",
                       model->file, node[0] ? "node " : "the graph", node, model->value[value]);
    }
    given[value] = true;
    return RP_OK;
}

static rp_err check_node(const rp_onnx_model *model, bool *given, const rp_onnx_node *node) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t value = node->input[i];
        if (value != RP_ONNX_NONE && !given[value]) {
            return rp_fail(RP_ERR_FORMAT, "%s: node %s (%s) reads %s, which no earlier node gives",
                           model->file, node->name, node->op, model->value[value]);
        }
    }
    for (uint32_t i = 0; i < node->output_count && err == RP_OK; i++) {
        err = node->output[i] == RP_ONNX_NONE
                  ? RP_OK
                  : give_value(model, given, node->output[i], node->name);
    }
    return err;
}

/* Each value has one source, and no node reads a value before it is given, so there is no cycle. */
static rp_err check_order(rp_arena *arena, const rp_onnx_model *model) {
    bool *given;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, model->value_count + 1, &given));
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        given[model->tensor_value[i]] = true;
    }
    for (uint32_t i = 0; i < model->input_count; i++) {
        RP_TRY(give_value(model, given, model->input[i], ""));
    }
    for (uint32_t i = 0; i < model->node_count; i++) {
        RP_TRY(check_node(model, given, &model->node[i]));
    }
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (!given[model->output[i]]) {
            return rp_fail(RP_ERR_FORMAT, "%s: no node gives the output %s", model->file,
                           model->value[model->output[i]]);
        }
    }
fail:
    return err;
}

/* ---- opening --------------------------------------------------------------------------------- */

static rp_err read_bytes(rp_onnx_decoder *decoder, rp_onnx_model *model) {
    reader r = {.decoder = decoder, .model = model};
    rp_err err;
    rp_onnx_symbols_init(&r.values, decoder->arena);
    RP_TRY(decode_model(&r));
    RP_TRY(index_values(&r));
    drop_initialised_inputs(model);
    RP_TRY(check_order(decoder->arena, model));
fail:
    return err;
}

static rp_err open_model(rp_arena *arena, const char *path, const void *bytes, size_t count,
                         const char *name, rp_onnx_model **out) {
    rp_onnx_decoder decoder = {
        .arena = arena, .file = name, .bytes = bytes, .count = count, .node = ""};
    rp_onnx_model *model = NULL;
    rp_err err;
    *out = NULL;
    RP_TRY(RP_ARENA_NEW(arena, 1, &model));
    model->file = name;
    RP_TRY(rp_onnx_maps_new(arena, path, &model->maps));
    decoder.maps = model->maps;
    if (path) {
        RP_TRY(rp_onnx_maps_model(model->maps, &decoder.bytes, &decoder.count));
    }
    RP_TRY(read_bytes(&decoder, model));
    *out = model;
    return RP_OK;
fail:
    rp_onnx_close(&model);
    return err;
}

rp_err rp_onnx_open(rp_arena *arena, const char *path, rp_onnx_model **out) {
    return open_model(arena, rp_input_path(path), NULL, 0, rp_input_name(path), out);
}

rp_err rp_onnx_open_bytes(rp_arena *arena, const void *bytes, size_t count, const char *name,
                          rp_onnx_model **out) {
    return open_model(arena, NULL, bytes, count, name, out);
}

void rp_onnx_close(rp_onnx_model **model) {
    if (*model) {
        rp_onnx_maps_close((*model)->maps);
        *model = NULL;
    }
}
