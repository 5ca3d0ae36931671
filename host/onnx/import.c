#include "onnx/import.h"

#include <string.h>

#include "nn/model.h"
#include "onnx/model_text.h"
#include "onnx/names.h"
#include "onnx/symbols.h"
#include "onnx/visit.h"

/* Batch sizes for which a net with a free batch is looked at. */
static const int64_t batches[] = {5, 7};

/* ---- the file as such ------------------------------------------------------------------------ */

static rp_err check_file(const rp_onnx_model *model, rp_onnx_findings *findings) {
    rp_err err = RP_OK;
    if (model->opset < RP_ONNX_OPSET_FIRST || model->opset > RP_ONNX_OPSET_LAST) {
        RP_TRY(rp_onnx_add_finding(findings, "file", "opset %lld: %d to %d can be read",
                                   (long long)model->opset, RP_ONNX_OPSET_FIRST,
                                   RP_ONNX_OPSET_LAST));
    }
    if (model->ir_version < 1 || model->ir_version > RP_ONNX_IR_LAST) {
        RP_TRY(rp_onnx_add_finding(findings, "file", "IR version %lld: 1 to %d can be read",
                                   (long long)model->ir_version, RP_ONNX_IR_LAST));
    }
    if (model->functions > 0) {
        RP_TRY(rp_onnx_add_finding(findings, "file",
                                   "%u functions of its own: export without them (inline)",
                                   model->functions));
    }
    if (model->sparse > 0) {
        RP_TRY(rp_onnx_add_finding(findings, "file", "%u sparse initialisers cannot be read",
                                   model->sparse));
    }
    if (model->output_count != 1) {
        RP_TRY(rp_onnx_add_finding(findings, "output",
                                   "%u outputs; expected one, which the loss reads",
                                   model->output_count));
    }
fail:
    return err;
}

/* ---- tensors that several layers have -------------------------------------------------------- */

static bool is_kind(const rp_onnx_layer *layer, const char *kind) {
    return strcmp(layer->kind, kind) == 0;
}

/* An embedding and the output layer, or one module that is called twice. */
static bool may_share(const rp_onnx_layer *a, const rp_onnx_layer *b) {
    const bool embeds = is_kind(a, "embedding") || is_kind(b, "embedding");
    const bool multiplies = is_kind(a, "linear") || is_kind(b, "linear") || is_kind(a, "dense") ||
                            is_kind(b, "dense") || is_kind(a, "parameter") ||
                            is_kind(b, "parameter");
    bool same = is_kind(a, b->kind) && a->param_count == b->param_count;
    for (uint32_t i = 0; same && i < a->param_count; i++) {
        same =
            a->param[i].name && b->param[i].name && strcmp(a->param[i].name, b->param[i].name) == 0;
    }
    return same || (embeds && multiplies);
}

/* Counts tensors, and their uses in further layers. */
static rp_err check_shared(rp_onnx_graph *graph, rp_onnx_findings *findings, rp_onnx_import *out,
                           uint32_t *tied) {
    rp_onnx_symbols names;
    uint32_t *owner;
    uint32_t room = 1;
    rp_err err;
    rp_onnx_symbols_init(&names, graph->arena);
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        room += graph->layer[i].param_count;
    }
    RP_TRY(RP_ARENA_NEW(graph->arena, room, &owner));
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        const rp_onnx_layer *layer = &graph->layer[i];
        for (uint32_t p = 0; layer->live && p < layer->param_count; p++) {
            const uint32_t before = names.count;
            uint32_t name;
            if (!layer->param[p].name) {
                continue;
            }
            RP_TRY(rp_onnx_symbols_add(&names, layer->param[p].name, &name));
            *tied += names.count == before;
            if (names.count > before) {
                owner[name] = i;
            } else if (!may_share(&graph->layer[owner[name]], layer)) {
                RP_TRY(rp_onnx_add_finding(
                    findings, "parameter",
                    "%s is the %s of layers %s and %s: equal values were merged by the exporter, "
                    "or the net shares it in a way that cannot be trained here",
                    layer->param[p].name, layer->param[p].suffix, graph->layer[owner[name]].name,
                    layer->name));
            }
        }
    }
    out->tensors = names.count;
fail:
    return err;
}

/* ---- one batch size -------------------------------------------------------------------------- */

/* Each parameter without a name of its own is called by the layer. */
static rp_err name_the_rest(rp_onnx_graph *graph) {
    rp_err err = RP_OK;
    char *name;
    for (uint32_t i = graph->model->input_count; i < graph->layer_count; i++) {
        rp_onnx_layer *layer = &graph->layer[i];
        for (uint32_t p = 0; layer->live && p < layer->param_count; p++) {
            if (!layer->param[p].name) {
                RP_TRY(rp_arena_printf(graph->arena, &name, "%s.%s", layer->name,
                                       layer->param[p].suffix));
                layer->param[p].name = name;
            }
        }
    }
fail:
    return err;
}

static rp_err look(rp_arena *arena, const rp_onnx_model *model, const rp_onnx_dims *inputs,
                   int64_t batch, const rp_onnx_options *options, rp_onnx_findings *refusals,
                   rp_onnx_import *out) {
    rp_onnx_graph *graph;
    uint32_t output;
    uint32_t tied = 0;
    char *text = NULL;
    rp_err err;
    rp_onnx_findings_init(&out->notes, arena);
    RP_TRY(RP_ARENA_NEW(arena, 1, &graph));
    RP_TRY(rp_onnx_graph_init(arena, model, inputs, batch, options->budget, &out->notes, graph));
    RP_TRY(rp_onnx_visit_nodes(graph, options->no_fuse));
    if (!options->no_fuse) {
        RP_TRY(rp_onnx_visit_again(graph));
    }
    RP_TRY(rp_onnx_collect(graph, refusals, &output));
    RP_TRY(rp_onnx_name_layers(graph, refusals));
    RP_TRY(name_the_rest(graph));
    RP_TRY(check_shared(graph, refusals, out, &tied));
    RP_TRY(rp_onnx_check_signature(model, tied, refusals, &out->notes));
    out->graph = graph;
    out->layers = 0;
    for (uint32_t i = model->input_count; i < graph->layer_count; i++) {
        out->layers += graph->layer[i].live;
    }
    if (output == RP_ONNX_NONE && model->output_count > 0 && refusals->count == 0) {
        RP_TRY(rp_onnx_add_finding(refusals, "output", "no layer gives the output %s",
                                   model->value[model->output[0]]));
    }
    if (output != RP_ONNX_NONE && out->layers == 0) {
        RP_TRY(
            rp_onnx_add_finding(refusals, "output", "the output is an input: there is no layer"));
    }
    if (out->layers > RP_MODEL_LAYERS_MAX - model->input_count) {
        RP_TRY(rp_onnx_add_finding(refusals, "output",
                                   "the net has %u layers, at most %d are "
                                   "supported",
                                   out->layers, RP_MODEL_LAYERS_MAX));
    }
    if (output != RP_ONNX_NONE && refusals->count == 0) {
        RP_TRY(rp_onnx_model_text(graph, &text));
    }
    out->text = text;
fail:
    return err;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* The model file must be one, whose output has the shape that the graph says. */
static rp_err check_text(rp_arena *arena, rp_onnx_import *out) {
    static const rp_model_data nothing = {0};
    rp_node *root;
    rp_model *parsed = NULL;
    const bool held = rp_err_hold(true);
    rp_err err = rp_config_read_text(arena, out->text, strlen(out->text), "model.yaml", &root);
    err = err == RP_OK ? rp_model_parse(arena, root, &nothing, &parsed) : err;
    (void)rp_err_hold(held);
    if (err == RP_ERR_MEMORY) {
        return err;
    }
    if (err != RP_OK) {
        out->text = NULL;
        return rp_onnx_add_finding(&out->refusals, "output", "the layers are no valid model: %s",
                                   rp_err_message());
    }
    out->parameters = rp_model_tensor_count(parsed, RP_PARAM_TRAINED);
    return RP_OK;
}

rp_err rp_onnx_analyse(rp_arena *arena, const rp_onnx_model *model, const rp_onnx_options *options,
                       rp_onnx_import *out) {
    rp_onnx_dims *inputs;
    rp_onnx_import second;
    rp_onnx_findings ignored;
    int64_t batch;
    rp_err err;
    *out = (rp_onnx_import){.model = model};
    rp_onnx_findings_init(&out->refusals, arena);
    RP_TRY(RP_ARENA_NEW(arena, model->input_count + 1, &inputs));
    RP_TRY(check_file(model, &out->refusals));
    RP_TRY(
        rp_onnx_bind(model, options->shapes, options->shape_count, &out->refusals, inputs, &batch));
    RP_TRY(
        look(arena, model, inputs, batch > 0 ? batch : batches[0], options, &out->refusals, out));
    if (out->text && batch == 0) {
        rp_onnx_findings_init(&ignored, arena);
        RP_TRY(look(arena, model, inputs, batches[1], options, &ignored, &second));
        if (!second.text || strcmp(second.text, out->text) != 0) {
            out->text = NULL;
            RP_TRY(rp_onnx_add_finding(&out->refusals, "input",
                                       "the net depends on the size of the batch: export it with a "
                                       "fixed batch, or without sizes of the batch in it"));
        }
    }
    if (out->text) {
        RP_TRY(check_text(arena, out));
    }
fail:
    return err;
}
