/* Layers as nodes of an ONNX graph, in the order of the model. */
#include <stdio.h>
#include <string.h>

#include "export/layer.h"

/* ---- one layer ------------------------------------------------------------------------------- */

/* A key that the writer has not asked for may change what the layer computes. */
static void refuse_unknown_keys(rp_export_layer *l) {
    const bool held = rp_err_hold(true);
    const rp_err err = rp_node_done(l->keys);
    (void)rp_err_hold(held);
    if (err != RP_OK) {
        (void)rp_export_refuse(l, "a key of it cannot be exported: %s", rp_err_message());
    }
}

static const char *write_layer(rp_export_layer *l) {
    static const char *const common[] = {"name", "kind", "from", "train", "names"};
    rp_export_writer *write = rp_export_find_writer(l->layer->kind->name);
    const uint32_t refusals = l->graph->refusals->count;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        rp_export_ignore(l, common[i]);
    }
    if (!write) {
        return rp_export_refuse(l, "no standard operators are known for this kind");
    }
    const char *y = write(l);
    if (l->graph->refusals->count == refusals) {
        refuse_unknown_keys(l);
    }
    return y;
}

/* The value of each layer; value[layer_count] is the input of a model with one input. */
static const char *value_of(const rp_model *model, const char **value, uint32_t layer) {
    return value[layer == RP_LAYER_DATA ? model->layer_count : layer];
}

static void write_layers(rp_export_graph *graph, const char **value) {
    const rp_export_net *net = graph->net;
    const rp_model *model = net->model;
    for (uint32_t i = model->input_count; i < model->layer_count && graph->err == RP_OK; i++) {
        const rp_layer *layer = &model->layer[i];
        rp_export_layer l = {.graph = graph,
                             .opset = graph->form.opset,
                             .index = i,
                             .layer = layer,
                             .plan = &model->plan[i],
                             .in = model->in[i],
                             .train = graph->form.train && !layer->frozen,
                             .keys = rp_node_item(net->layers, i - model->input_count),
                             .input_count = layer->input_count,
                             .first_node = graph->node_count};
        for (uint32_t k = 0; k < layer->input_count; k++) {
            l.x[k] = value_of(model, value, layer->input[k]);
        }
        value[i] = write_layer(&l);
    }
}

/* ---- the graph ------------------------------------------------------------------------------- */

static void add_inputs(rp_export_graph *graph, const char **value) {
    const rp_model *model = graph->net->model;
    graph->input_count = rp_export_input_count(graph->net);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const bool only = model->input_count == 0;
        graph->input[i] = (rp_export_value){.name = rp_export_input_name(graph->net, i),
                                            .ids = model->input_type == RP_I32,
                                            .sample = only ? model->input : model->plan[i].out};
        value[only ? model->layer_count : i] = graph->input[i].name;
    }
    if (model->input_count > 0) {
        value[model->layer_count] = "";
    }
}

/* All values of a graph have different names; those of nodes begin with a slash. */
static rp_err check_names(const rp_export_graph *graph) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i <= graph->input_count; i++) {
        const char *name = i < graph->input_count ? graph->input[i].name : graph->output.name;
        bool taken = name[0] == '/';
        for (uint32_t k = 0; k < i; k++) {
            taken |= strcmp(graph->input[k].name, name) == 0;
        }
        for (uint32_t k = 0; k < graph->tensor_count; k++) {
            taken |= strcmp(graph->tensor[k].name, name) == 0;
        }
        if (taken) {
            RP_TRY(rp_onnx_add_finding(graph->refusals, "name",
                                       "'%s' is also the name of another value: set the names of "
                                       "inputs and outputs with `onnx` in the model file",
                                       name));
        }
    }
fail:
    return err;
}

/* Several inputs are read by name; what reads all of them at once has no ONNX input. */
static rp_err check_data(const rp_export_graph *graph) {
    const rp_model *model = graph->net->model;
    for (uint32_t i = model->input_count; model->input_count > 0 && i < model->layer_count; i++) {
        for (uint32_t k = 0; k < model->layer[i].input_count; k++) {
            if (model->layer[i].input[k] == RP_LAYER_DATA) {
                return rp_onnx_add_finding(graph->refusals, "layer",
                                           "layer '%s' reads all inputs at once (`data`); an ONNX "
                                           "model has them one by one",
                                           model->layer[i].name);
            }
        }
    }
    return RP_OK;
}

rp_err rp_export_build(const rp_export_net *net, const rp_export_form *form,
                       rp_onnx_findings *refusals, rp_export_graph **out) {
    const rp_model *model = net->model;
    rp_export_graph *graph;
    const char **value;
    rp_err err;
    rp_onnx_findings_init(refusals, net->arena);
    if (form->opset < RP_ONNX_OPSET_FIRST || form->opset > RP_ONNX_OPSET_LAST) {
        return rp_fail(RP_ERR_USAGE, "--opset: expected %d to %d, found %u", RP_ONNX_OPSET_FIRST,
                       RP_ONNX_OPSET_LAST, form->opset);
    }
    RP_TRY(RP_ARENA_NEW(net->arena, 1, &graph));
    *graph = (rp_export_graph){
        .net = net,
        .form = *form,
        .refusals = refusals,
        .output = {.name = rp_export_output_name(net), .sample = *rp_model_out(model)}};
    RP_TRY(RP_ARENA_NEW(net->arena, model->param_count + 1, &graph->tensor));
    RP_TRY(RP_ARENA_NEW(net->arena, model->param_count + 1, &graph->has_tensor));
    RP_TRY(RP_ARENA_NEW(net->arena, model->layer_count + 1, &value));
    add_inputs(graph, value);
    write_layers(graph, value);
    RP_TRY(graph->err);
    RP_TRY(check_names(graph));
    RP_TRY(check_data(graph));
    if (refusals->count == 0) {
        rp_export_name_output(graph, value[model->layer_count - 1]);
    }
    RP_TRY(graph->err);
    *out = graph;
fail:
    return err;
}
