#include "export/graph.h"

#include <string.h>

/* Makes room for another node; the list may move. */
static void grow_nodes(rp_export_graph *graph) {
    const uint32_t room = 2 * graph->node_room + 64;
    rp_export_node *grown = NULL;
    if (graph->node_count < graph->node_room) {
        return;
    }
    RP_EXPORT_NEW(graph, room, &grown);
    if (graph->err == RP_OK) {
        if (graph->node_count > 0) {
            memcpy(grown, graph->node, graph->node_count * sizeof *grown);
        }
        graph->node = grown;
        graph->node_room = room;
    }
}

rp_export_node *rp_export_add_node(rp_export_graph *graph, const char *op, const char *name,
                                   uint32_t input_count, const char *const *input) {
    const char **inputs = NULL;
    char *output = NULL;
    grow_nodes(graph);
    RP_EXPORT_NEW(graph, input_count + 1, &inputs);
    if (graph->err == RP_OK) {
        graph->err = rp_arena_printf(graph->net->arena, &output, "%s_output_0", name);
    }
    if (graph->err != RP_OK) {
        return NULL;
    }
    for (uint32_t i = 0; i < input_count; i++) {
        inputs[i] = input[i];
    }
    rp_export_node *node = &graph->node[graph->node_count++];
    *node = (rp_export_node){.op = op,
                             .name = name,
                             .input_count = input_count,
                             .input = inputs,
                             .output_count = 1,
                             .output = {output}};
    return node;
}

const char *rp_export_add_param(rp_export_graph *graph, uint32_t param) {
    const rp_model_param *of = &graph->net->model->param[param];
    const uint32_t owner = of->owner;
    if (!graph->has_tensor[owner]) {
        graph->has_tensor[owner] = true;
        rp_onnx_tensor *tensor = &graph->tensor[graph->tensor_count++];
        *tensor = (rp_onnx_tensor){.name = of->name,
                                   .type = RP_ONNX_FLOAT,
                                   .rank = of->shape.dims,
                                   .count = of->count,
                                   .data = (const uint8_t *)graph->net->value[owner]};
        for (uint32_t d = 0; d < of->shape.dims; d++) {
            tensor->dim[d] = of->shape.dim[d];
        }
    }
    return of->name;
}

void rp_export_name_output(rp_export_graph *graph, const char *value) {
    const char *name = graph->output.name;
    bool given = false;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        rp_export_node *node = &graph->node[i];
        for (uint32_t k = 0; k < node->output_count; k++) {
            if (strcmp(node->output[k], value) == 0) {
                node->output[k] = name;
                given = true;
            }
        }
        for (uint32_t k = 0; given && k < node->input_count; k++) {
            if (strcmp(node->input[k], value) == 0) {
                node->input[k] = name;
            }
        }
    }
    if (!given && graph->err == RP_OK) { /* the value is an input or a weight */
        rp_export_node *node = rp_export_add_node(graph, "Identity", "/Identity", 1, &value);
        if (node) {
            node->output[0] = name;
        }
    }
}
