#include "onnx/names.h"

#include <stdio.h>
#include <string.h>

#include "nn/names.h"
#include "onnx/symbols.h"

/* A layer's name leaves room for a suffix that makes it unique. */
enum { NAME_ROOM = RP_LAYER_NAME_MAX - 8, PATH_ROOM = 512 };

typedef struct {
    rp_onnx_graph *graph;
    rp_onnx_findings *findings;
    bool accept_folded;
    rp_onnx_symbols taken;
    rp_onnx_symbols tensors; /* those of layers that were looked at */
    rp_onnx_symbols shared;  /* those that several layers have */
    const char **path;       /* by layer: its module, "" if unknown */
} naming;

/* ---- tensors --------------------------------------------------------------------------------- */

/* The initialiser that has exactly the elements of the view, in any order; RP_ONNX_NONE: none. */
static uint32_t find_tensor(const rp_onnx_graph *graph, const rp_onnx_view *view) {
    const uint32_t leaf = rp_onnx_view_source(view, 0).leaf;
    if (graph->value[leaf].view->dims.count != view->dims.count) {
        return RP_ONNX_NONE;
    }
    for (uint64_t i = 0; rp_onnx_view_only_leaf(view) == RP_ONNX_NONE && i < view->dims.count;
         i++) {
        if (rp_onnx_view_source(view, i).leaf != leaf) {
            return RP_ONNX_NONE;
        }
    }
    return graph->model->tensor_of[leaf];
}

bool rp_onnx_name_is_made_up(const char *name) {
    return strstr(name, "::") || strncmp(name, "val_", 4) == 0 || strncmp(name, "_val_", 5) == 0;
}

const char *rp_onnx_weight_name(const rp_onnx_graph *graph, const rp_onnx_value *value) {
    const rp_onnx_model *model = graph->model;
    const uint32_t leaf =
        value && value->state == RP_ONNX_PARAM ? rp_onnx_view_only_leaf(value->view) : RP_ONNX_NONE;
    const char *name = leaf != RP_ONNX_NONE ? model->tensor[model->tensor_of[leaf]].name : NULL;
    return name && !rp_onnx_name_is_made_up(name) ? name : NULL;
}

/* Characters that a name cannot have become `.` between parts of a path, or `_`. */
static void clean_name(const char *name, char *out, size_t room) {
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t used = 0;
    for (const char *at = name; *at && used + 1 < room; at++) {
        const bool edge = *at == '/' && (used == 0 || at[1] == '\0');
        if (!edge) {
            out[used++] = *at == '/' ? '.' : strchr(good, *at) ? *at : '_';
        }
    }
    out[used] = '\0';
}

/* The tensor keeps the shape of the model, such as [1, 1, 192] of a class token, if `names` of a
 * model file can state it. */
static void keep_shape(const rp_onnx_tensor *tensor, rp_onnx_param *param) {
    rp_shape shape;
    bool same = tensor->rank > 0 && rp_names_shape(&param->shape, tensor->rank, &shape);
    for (uint32_t i = 0; same && i < tensor->rank; i++) {
        same = shape.dim[i] == tensor->dim[i];
    }
    param->dims = same ? tensor->rank : 0;
}

static rp_err name_tensor(naming *n, const rp_onnx_layer *layer, rp_onnx_param *param) {
    const uint32_t tensor = find_tensor(n->graph, param->view);
    char clean[RP_PARAM_NAME_MAX];
    char *copy;
    rp_err err = RP_OK;
    /* a part of an initialiser, or a constant: it is called by the layer */
    const char *name = tensor == RP_ONNX_NONE ? NULL : n->graph->model->tensor[tensor].name;
    if (!name || (param->constant && rp_onnx_name_is_made_up(name))) {
        return RP_OK;
    }
    if (rp_onnx_name_is_made_up(name) && n->accept_folded) { /* it is called by the layer */
        return rp_onnx_add_finding(n->graph->notes, "assumed",
                                   "initialiser %s has no name of a module; it is called by its "
                                   "%s layer",
                                   name, layer->kind);
    }
    if (rp_onnx_name_is_made_up(name)) {
        return rp_onnx_add_finding(n->findings, "parameter",
                                   "initialiser %s has no name of a module: constants were folded; "
                                   "export again with ringpipe_export.py, or "
                                   "do_constant_folding=False; --accept-folded trains it as it is",
                                   name);
    }
    param->name = name;
    keep_shape(&n->graph->model->tensor[tensor], param);
    if (!rp_names_is_valid(name, RP_PARAM_NAME_MAX) || rp_names_reserved(name)) {
        clean_name(name, clean, sizeof clean);
        RP_TRY(rp_arena_string(n->graph->arena, clean, &copy));
        param->name = copy;
        RP_TRY(rp_onnx_add_finding(n->graph->notes, "assumed",
                                   "tensor %s of %s is called %s in the weights file", name,
                                   layer->kind, copy));
        if (!rp_names_is_valid(copy, RP_PARAM_NAME_MAX) || rp_names_reserved(copy)) {
            RP_TRY(rp_onnx_add_finding(n->findings, "parameter",
                                       "initialiser %s: no weights file can have this name", name));
        }
    }
fail:
    return err;
}

/* ---- modules --------------------------------------------------------------------------------- */

/* The second to last of "['', 'layer1', 'layer1.conv1', 'conv2d']". */
static void path_of_scopes(const char *scopes, char out[PATH_ROOM]) {
    char last[PATH_ROOM] = "";
    out[0] = '\0';
    for (const char *at = strchr(scopes, '\''); at;) {
        const char *end = strchr(at + 1, '\'');
        const size_t length = end ? (size_t)(end - at - 1) : 0;
        if (!end || length >= PATH_ROOM) {
            return;
        }
        memcpy(out, last, sizeof last);
        memcpy(last, at + 1, length);
        last[length] = '\0';
        at = strchr(end + 1, '\'');
    }
}

/* features.3.squeeze of "/features/features.3/squeeze/Conv": a part that repeats the path before it
 * replaces it. */
static void path_of_node(const char *name, char out[PATH_ROOM]) {
    const char *at = name;
    size_t used = 0;
    out[0] = '\0';
    while (*at == '/' && strchr(at + 1, '/')) {
        const size_t length = strcspn(at + 1, "/");
        const bool repeats =
            used > 0 && strncmp(at + 1, out, used) == 0 && at[1 + used] == '.' && length > used;
        const size_t from = repeats || used == 0 ? 0 : used + 1;
        if (from + length >= PATH_ROOM) {
            break;
        }
        if (from > 0) {
            out[used] = '.';
        }
        memcpy(out + from, at + 1, length);
        used = from + length;
        out[used] = '\0';
        at += 1 + length;
    }
}

static rp_err find_path(naming *n, uint32_t layer) {
    const rp_onnx_model *model = n->graph->model;
    const uint32_t node = n->graph->layer[layer].node;
    char path[PATH_ROOM] = "";
    char clean[PATH_ROOM];
    char *copy = NULL;
    if (node < model->node_count) {
        if (model->node[node].scopes) {
            path_of_scopes(model->node[node].scopes, path);
        } else {
            path_of_node(model->node[node].name, path);
        }
    }
    clean_name(path, clean, sizeof clean);
    const rp_err err = rp_arena_string(n->graph->arena, clean, &copy);
    n->path[layer] = copy;
    return err;
}

/* Whether the module is this layer: nothing else is in it. */
static bool is_only_one(const naming *n, uint32_t layer) {
    const char *path = n->path[layer];
    const size_t length = strlen(path);
    for (uint32_t i = 0; i < n->graph->layer_count; i++) {
        const rp_onnx_layer *other = &n->graph->layer[i];
        if (i == layer || !other->live || !other->kind || other->named_after) {
            continue;
        }
        const char *name =
            other->param_count > 0 && other->param[0].name ? other->param[0].name : n->path[i];
        if (strncmp(name, path, length) == 0 && (name[length] == '\0' || name[length] == '.')) {
            return false;
        }
    }
    return length > 0;
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Length of the part of the names before the last `.` that all tensors share. */
static size_t shared_length(const rp_onnx_layer *layer) {
    const char *first = layer->param[0].name;
    const char *dot = first ? strrchr(first, '.') : NULL;
    size_t length = dot ? (size_t)(dot - first) : first ? strlen(first) : 0;
    for (uint32_t i = 1; i < layer->param_count && length > 0; i++) {
        const char *name = layer->param[i].name;
        while (length > 0 && (!name || strncmp(name, first, length) != 0 ||
                              (name[length] != '.' && name[length] != '\0'))) {
            do {
                length--;
            } while (length > 0 && first[length] != '.');
        }
    }
    return length;
}

/* Whether other layers have all tensors of the layer, such as those of an embedding and a tied
 * output layer. An exporter keeps one of the names, so the module says which layer it is. */
static bool has_tied_only(const naming *n, const rp_onnx_layer *layer) {
    bool tied = layer->param_count > 0;
    for (uint32_t p = 0; p < layer->param_count && tied; p++) {
        const char *name = layer->param[p].name;
        tied = name && rp_onnx_symbols_find(&n->shared, name) != UINT32_MAX;
    }
    return tied;
}

/* Finds the tensors that several layers have. */
static rp_err add_tensors(naming *n, const rp_onnx_layer *layer) {
    rp_err err = RP_OK;
    uint32_t ignored;
    for (uint32_t p = 0; p < layer->param_count && err == RP_OK; p++) {
        const char *name = layer->param[p].name;
        if (name) {
            const bool again = rp_onnx_symbols_find(&n->tensors, name) != UINT32_MAX;
            err = rp_onnx_symbols_add(again ? &n->shared : &n->tensors, name, &ignored);
        }
    }
    return err;
}

static void propose_name(const naming *n, uint32_t index, char out[PATH_ROOM]) {
    const rp_onnx_layer *layer = &n->graph->layer[index];
    const char *path = n->path[index];
    size_t length = layer->param_count > 0 ? shared_length(layer) : 0;
    if (layer->named_after) {
        (void)snprintf(out, PATH_ROOM, "%s.%s", n->graph->layer[layer->from[0]].name, layer->kind);
    } else if (path[0] && has_tied_only(n, layer)) {
        (void)snprintf(out, PATH_ROOM, "%s", path);
    } else if (length > 0) {
        length = length < PATH_ROOM ? length : PATH_ROOM - 1;
        memcpy(out, layer->param[0].name, length);
        out[length] = '\0';
    } else if (is_only_one(n, index)) {
        (void)snprintf(out, PATH_ROOM, "%s", path);
    } else {
        (void)snprintf(out, PATH_ROOM, "%s%s%s", path, path[0] ? "." : "", layer->kind);
    }
    length = strlen(out);
    if (length >= NAME_ROOM) { /* the end of a long path says more than its beginning */
        memmove(out, out + length - (NAME_ROOM - 1), NAME_ROOM);
    }
}

/* The proposed name, with a number if it is taken. */
static rp_err take_name(naming *n, rp_onnx_layer *layer, const char *proposed) {
    char text[PATH_ROOM + 16];
    char *copy;
    uint32_t ignored;
    rp_err err;
    (void)snprintf(text, sizeof text, "%s", proposed);
    for (uint32_t i = 1; rp_onnx_symbols_find(&n->taken, text) != UINT32_MAX; i++) {
        (void)snprintf(text, sizeof text, "%s_%u", proposed, i);
    }
    RP_TRY(rp_onnx_symbols_add(&n->taken, text, &ignored));
    RP_TRY(rp_arena_string(n->graph->arena, text, &copy));
    layer->name = copy;
fail:
    return err;
}

/* Names of inputs are words that `from` can have. */
static rp_err name_inputs(naming *n) {
    rp_err err = RP_OK;
    uint32_t ignored;
    RP_TRY(rp_onnx_symbols_add(&n->taken, "data", &ignored));
    for (uint32_t i = 0; i < n->graph->model->input_count; i++) {
        rp_onnx_layer *layer = &n->graph->layer[i];
        char clean[NAME_ROOM];
        clean_name(layer->name, clean, sizeof clean);
        if (layer->live) {
            RP_TRY(take_name(n, layer, clean[0] ? clean : "input"));
        }
    }
fail:
    return err;
}

rp_err rp_onnx_name_layers(rp_onnx_graph *graph, bool accept_folded, rp_onnx_findings *findings) {
    naming n = {.graph = graph, .findings = findings, .accept_folded = accept_folded};
    rp_err err;
    rp_onnx_symbols_init(&n.taken, graph->arena);
    rp_onnx_symbols_init(&n.tensors, graph->arena);
    rp_onnx_symbols_init(&n.shared, graph->arena);
    RP_TRY(RP_ARENA_NEW(graph->arena, graph->layer_count + 1, &n.path));
    RP_TRY(name_inputs(&n));
    for (uint32_t i = graph->model->input_count; i < graph->layer_count; i++) {
        rp_onnx_layer *layer = &graph->layer[i];
        n.path[i] = "";
        if (layer->live) {
            RP_TRY(find_path(&n, i));
            for (uint32_t p = 0; p < layer->param_count; p++) {
                RP_TRY(name_tensor(&n, layer, &layer->param[p]));
            }
            RP_TRY(add_tensors(&n, layer));
        }
    }
    for (uint32_t i = graph->model->input_count; i < graph->layer_count; i++) {
        char proposed[PATH_ROOM];
        if (graph->layer[i].live) {
            propose_name(&n, i, proposed);
            RP_TRY(take_name(&n, &graph->layer[i], proposed));
        }
    }
fail:
    return err;
}
