#include "onnx/import.h"

#include <string.h>

#include "nn/model.h"
#include "onnx/freeze.h"
#include "onnx/model_text.h"
#include "onnx/names.h"
#include "onnx/shared.h"
#include "onnx/signature.h"
#include "onnx/symbols.h"
#include "onnx/tensor.h"
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

/* ---- one batch size -------------------------------------------------------------------------- */

/* A pass for one size of the batch. */
typedef struct {
    const rp_onnx_options *options;
    const rp_onnx_dims *inputs;
    const rp_onnx_symbols *names; /* NULL: not given */
    int64_t batch;
} pass;

/* Findings on the output and the number of layers. */
static rp_err check_output(const rp_onnx_model *model, uint32_t output, uint32_t layers,
                           rp_onnx_findings *refusals) {
    rp_err err = RP_OK;
    if (output == RP_ONNX_NONE && model->output_count > 0 && refusals->count == 0) {
        RP_TRY(rp_onnx_add_finding(refusals, "output", "no layer gives the output %s",
                                   model->value[model->output[0]]));
    }
    if (output != RP_ONNX_NONE && layers == 0) {
        RP_TRY(
            rp_onnx_add_finding(refusals, "output", "the output is an input: there is no layer"));
    }
    if (layers > RP_MODEL_LAYERS_MAX - model->input_count) {
        RP_TRY(rp_onnx_add_finding(refusals, "output",
                                   "the net has %u layers, at most %d are "
                                   "supported",
                                   layers, RP_MODEL_LAYERS_MAX));
    }
fail:
    return err;
}

/* Notes initialisers of other types than float32. */
static rp_err note_conversions(const rp_onnx_model *model, rp_onnx_findings *notes) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        const int32_t type = model->tensor[i].type;
        count += rp_onnx_type_is_float(type) && type != RP_ONNX_FLOAT;
    }
    return count == 0 ? RP_OK
                      : rp_onnx_add_finding(notes, "assumed",
                                            "%u tensors of FLOAT16, BFLOAT16 or DOUBLE become "
                                            "float32",
                                            count);
}

/* Names layers and tensors, and applies what the user wants of them. */
static rp_err name_all(const pass *p, rp_onnx_graph *graph, rp_onnx_findings *refusals,
                       rp_onnx_import *out) {
    const rp_onnx_options *options = p->options;
    const rp_onnx_sharing sharing = {.untie = options->untie, .accept_all = options->accept_tied};
    uint32_t uses;
    rp_err err;
    RP_TRY(note_conversions(graph->model, &out->notes));
    RP_TRY(rp_onnx_name_layers(graph, options->accept_folded, refusals));
    RP_TRY(rp_onnx_share_tensors(graph, &sharing, refusals, &out->tensors, &uses));
    const rp_onnx_folding folding = {.tied = uses, .accept = options->accept_folded};
    if (p->names) {
        RP_TRY(rp_onnx_check_state(graph->model, p->names, options->names_file, &folding, refusals,
                                   &out->notes));
    } else {
        RP_TRY(rp_onnx_check_signature(graph->model, &folding, refusals, &out->notes));
    }
    RP_TRY(rp_onnx_freeze_layers(graph, options->freeze, options->freeze_count, refusals));
fail:
    return err;
}

static rp_err look(rp_arena *arena, const rp_onnx_model *model, const pass *p,
                   rp_onnx_findings *refusals, rp_onnx_import *out) {
    rp_onnx_graph *graph;
    char *text = NULL;
    rp_err err;
    rp_onnx_findings_init(&out->notes, arena);
    RP_TRY(RP_ARENA_NEW(arena, 1, &graph));
    RP_TRY(rp_onnx_graph_init(arena, model, p->inputs, p->batch, p->options->budget, p->names,
                              &out->notes, graph));
    RP_TRY(rp_onnx_visit_nodes(graph, p->options->no_fuse));
    if (!p->options->no_fuse) {
        RP_TRY(rp_onnx_visit_again(graph));
    }
    RP_TRY(rp_onnx_collect(graph, refusals, &out->output));
    RP_TRY(name_all(p, graph, refusals, out));
    out->graph = graph;
    out->layers = 0;
    for (uint32_t i = model->input_count; i < graph->layer_count; i++) {
        out->layers += graph->layer[i].live;
    }
    RP_TRY(check_output(model, out->output, out->layers, refusals));
    if (out->output != RP_ONNX_NONE && refusals->count == 0) {
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

static rp_err list_names(rp_arena *arena, const rp_onnx_options *options, rp_onnx_symbols *out) {
    rp_err err = RP_OK;
    uint32_t ignored;
    rp_onnx_symbols_init(out, arena);
    for (uint32_t i = 0; i < options->name_count && err == RP_OK; i++) {
        err = rp_onnx_symbols_add(out, options->names[i], &ignored);
    }
    return err;
}

rp_err rp_onnx_analyse(rp_arena *arena, const rp_onnx_model *model, const rp_onnx_options *options,
                       rp_onnx_import *out) {
    rp_onnx_dims *inputs;
    rp_onnx_import second;
    rp_onnx_findings ignored;
    rp_onnx_symbols names;
    pass p = {.options = options};
    int64_t batch;
    rp_err err;
    *out = (rp_onnx_import){.model = model};
    rp_onnx_findings_init(&out->refusals, arena);
    RP_TRY(RP_ARENA_NEW(arena, model->input_count + 1, &inputs));
    RP_TRY(check_file(model, &out->refusals));
    RP_TRY(
        rp_onnx_bind(model, options->shapes, options->shape_count, &out->refusals, inputs, &batch));
    if (options->names) {
        RP_TRY(list_names(arena, options, &names));
        p.names = &names;
    }
    p.inputs = inputs;
    p.batch = batch > 0 ? batch : batches[0];
    RP_TRY(look(arena, model, &p, &out->refusals, out));
    if (out->text && batch == 0) {
        rp_onnx_findings_init(&ignored, arena);
        p.batch = batches[1];
        RP_TRY(look(arena, model, &p, &ignored, &second));
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
