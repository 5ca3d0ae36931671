#include "onnx/model_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/quote.h"

/* A text that grows in the arena. */
typedef struct {
    const rp_onnx_graph *graph;
    uint32_t inputs; /* live ones */
    char *text;
    size_t used, room;
    rp_err err;
} writer;

/* Makes room for `more` bytes and a final 0. */
static bool grow(writer *w, size_t more) {
    const size_t room = 2 * (w->used + more) + 4096;
    char *text;
    if (w->err == RP_OK && w->used + more + 1 > w->room) {
        w->err = RP_ARENA_NEW(w->graph->arena, room, &text);
        if (w->err == RP_OK) {
            memcpy(text, w->text ? w->text : "", w->used);
            w->text = text;
            w->room = room;
        }
    }
    return w->err == RP_OK;
}

static void RP_PRINTF(2, 3) put(writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (bytes > 0 && grow(w, (size_t)bytes)) {
        va_start(args, format);
        (void)vsnprintf(w->text + w->used, (size_t)bytes + 1, format, args);
        va_end(args);
        w->used += (size_t)bytes;
    }
}

uint32_t rp_onnx_live_inputs(const rp_onnx_graph *graph) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->model->input_count; i++) {
        count += graph->layer[i].live;
    }
    return count;
}

/* A text of the model in a comment: printable, on one line. */
static void write_comment(writer *w, const char *text) {
    char safe[200];
    rp_printable(text, false, safe, sizeof safe);
    put(w, "%s", safe);
}

static void write_shape(writer *w, const rp_shape *shape) {
    for (uint32_t i = 0; i < shape->dims; i++) {
        put(w, "%s%u", i > 0 ? ", " : "[", shape->dim[i]);
    }
    put(w, "]");
}

static void write_typed(writer *w, const rp_onnx_layer *input) {
    put(w, "{shape: ");
    write_shape(w, &input->out);
    put(w, ", type: %s}", input->ids ? "i32" : "f32");
}

static void write_input(writer *w) {
    const char *before = "{";
    put(w, "input: ");
    for (uint32_t i = 0; i < w->graph->model->input_count; i++) {
        const rp_onnx_layer *input = &w->graph->layer[i];
        if (!input->live) {
            continue;
        }
        if (w->inputs > 1) {
            put(w, "%s%s: ", before, input->name);
            before = ", ";
        }
        if (w->inputs > 1 || input->ids) {
            write_typed(w, input);
        } else {
            write_shape(w, &input->out);
        }
    }
    put(w, "%s\n", w->inputs > 1 ? "}" : "");
}

/* A name of the ONNX model, in quotes unless it is a plain word. */
static void write_name(writer *w, const char *name) {
    const char *quoted = "";
    if (rp_is_plain_name(name)) {
        put(w, "%s", name);
    } else if (w->err == RP_OK) {
        w->err = rp_quote(w->graph->arena, name, &quoted);
        put(w, "%s", quoted);
    }
}

/* Names by which an export calls inputs and output again. */
static void write_onnx(writer *w) {
    const rp_onnx_model *model = w->graph->model;
    const char *before = "";
    put(w, "onnx: {inputs: [");
    for (uint32_t i = 0; i < model->input_count; i++) {
        if (w->graph->layer[i].live) {
            put(w, "%s", before);
            write_name(w, model->value[model->input[i]]);
            before = ", ";
        }
    }
    put(w, "], outputs: [");
    write_name(w, model->value[model->output[0]]);
    put(w, "]}\n");
}

static const char *name_of(const writer *w, uint32_t layer) {
    const bool only = w->inputs == 1 && layer < w->graph->model->input_count;
    return only ? "data" : w->graph->layer[layer].name;
}

/* `previous` is the layer of the line before; the first line follows the input if there is one. */
static void write_from(writer *w, const rp_onnx_layer *layer, uint32_t previous) {
    if (layer->from_count == 0 || (layer->from_count == 1 && layer->from[0] == previous)) {
        return;
    }
    for (uint32_t i = 0; i < layer->from_count; i++) {
        put(w, "%s%s", i > 0 ? ", " : ", from: [", name_of(w, layer->from[i]));
    }
    put(w, "]");
}

static void write_names(writer *w, const rp_onnx_layer *layer) {
    const char *before = ", names: {";
    for (uint32_t i = 0; i < layer->param_count; i++) {
        const rp_onnx_param *param = &layer->param[i];
        char usual[RP_LAYER_NAME_MAX + 40];
        (void)snprintf(usual, sizeof usual, "%s.%s", layer->name, param->suffix);
        if (!param->name) {
            continue;
        }
        if (param->dims > 0 && param->dims != param->shape.dims) {
            put(w, "%s%s: {name: %s, dims: %u}", before, param->suffix, param->name, param->dims);
            before = ", ";
        } else if (strcmp(param->name, usual) != 0) {
            put(w, "%s%s: %s", before, param->suffix, param->name);
            before = ", ";
        }
    }
    put(w, "%s", before[2] == 'n' ? "" : "}");
}

static void write_layer(writer *w, const rp_onnx_layer *layer, uint32_t previous) {
    const rp_onnx_model *model = w->graph->model;
    put(w, "  - {name: %s, kind: %s", layer->name, layer->kind);
    write_from(w, layer, previous);
    if (layer->keys[0]) {
        put(w, ", %s", layer->keys);
    }
    write_names(w, layer);
    put(w, "%s}", layer->frozen ? ", train: false" : "");
    if (layer->node < model->node_count) {
        put(w, "  # ");
        write_comment(w, model->node[layer->node].op);
        put(w, " ");
        write_comment(w, model->node[layer->node].name);
    }
    put(w, "\n");
}

static void write_head(writer *w) {
    const rp_onnx_model *model = w->graph->model;
    const char *slash = strrchr(model->file, '/');
    put(w, "# Imported by `ringpipe import` from ");
    write_comment(w, slash ? slash + 1 : model->file);
    put(w, " (");
    write_comment(w, model->producer);
    put(w, " ");
    write_comment(w, model->producer_version);
    put(w, ", opset %lld). After # is the node that\n# gives the layer's output.\n",
        (long long)model->opset);
}

static void write_all(writer *w) {
    const rp_onnx_graph *graph = w->graph;
    uint32_t previous = RP_ONNX_NONE;
    write_head(w);
    write_input(w);
    write_onnx(w);
    put(w, "layers:\n");
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        if (!graph->layer[i].live) {
            continue;
        }
        if (graph->layer[i].kind) {
            write_layer(w, &graph->layer[i], previous);
            previous = i;
        } else if (w->inputs == 1) {
            previous = i;
        }
    }
}

rp_err rp_onnx_model_text(const rp_onnx_graph *graph, char **out) {
    writer w = {.graph = graph, .inputs = rp_onnx_live_inputs(graph)};
    write_all(&w);
    *out = w.text;
    return w.err;
}
