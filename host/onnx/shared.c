#include "onnx/shared.h"

#include <string.h>

#include "onnx/symbols.h"

/* ---- names ----------------------------------------------------------------------------------- */

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

/* ---- which layers may share ------------------------------------------------------------------ */

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

/* ---- uses ------------------------------------------------------------------------------------ */

typedef struct {
    rp_onnx_graph *graph;
    const rp_onnx_sharing *how;
    rp_onnx_findings *findings;
    rp_onnx_symbols taken; /* names of all tensors */
    rp_onnx_symbols names; /* those of layers before */
    uint32_t *owner;       /* by name: the first layer with it */
    uint32_t *param;       /* and the parameter's index there */
    uint32_t uses;
} sharing;

/* Whether both uses have the elements in one order. Costs budget. */
static bool same_order(rp_onnx_graph *graph, const rp_onnx_view *a, const rp_onnx_view *b) {
    const uint64_t cost = a->dims.count * (a->depth + b->depth + 1);
    bool same = a->dims.count == b->dims.count;
    if (a == b || (a->op == RP_ONNX_LEAF && b->op == RP_ONNX_LEAF)) {
        return same;
    }
    if (cost > graph->budget) {
        return false;
    }
    graph->budget -= cost;
    for (uint64_t i = 0; same && i < a->dims.count; i++) {
        same = rp_onnx_view_source(a, i).index == rp_onnx_view_source(b, i).index;
    }
    return same;
}

/* Gives a later use a tensor of its own, called by its layer. */
static rp_err untie(sharing *s, const rp_onnx_layer *layer, rp_onnx_param *param) {
    char *name;
    uint32_t number = 0;
    uint32_t ignored;
    rp_err err;
    RP_TRY(rp_arena_printf(s->graph->arena, &name, "%s.%s", layer->name, param->suffix));
    while (rp_onnx_symbols_find(&s->taken, name) != UINT32_MAX) {
        RP_TRY(rp_arena_printf(s->graph->arena, &name, "%s.%s_%u", layer->name, param->suffix,
                               ++number));
    }
    RP_TRY(rp_onnx_symbols_add(&s->taken, name, &ignored));
    RP_TRY(rp_onnx_symbols_add(&s->names, name, &ignored));
    param->name = name;
fail:
    return err;
}

static rp_err add_use(sharing *s, uint32_t index, uint32_t p) {
    rp_onnx_layer *layer = &s->graph->layer[index];
    rp_onnx_param *param = &layer->param[p];
    const uint32_t before = s->names.count;
    uint32_t name;
    rp_err err;
    RP_TRY(rp_onnx_symbols_add(&s->names, param->name, &name));
    if (s->names.count > before) {
        s->owner[name] = index;
        s->param[name] = p;
        return RP_OK;
    }
    s->uses++;
    if (s->how->untie) {
        return untie(s, layer, param);
    }
    const rp_onnx_layer *owner = &s->graph->layer[s->owner[name]];
    if (!same_order(s->graph, owner->param[s->param[name]].view, param->view)) {
        return rp_onnx_add_finding(
            s->findings, "parameter",
            "layers %s and %s have the elements of %s in two orders, so they "
            "cannot share it here (--untie)",
            owner->name, layer->name, param->name);
    }
    if (!s->how->accept_all && !may_share(owner, layer)) {
        return rp_onnx_add_finding(
            s->findings, "parameter",
            "%s is the %s of layers %s and %s: equal values were merged by the exporter (export "
            "again with ringpipe_export.py), or the net shares it (--tied accept)",
            param->name, param->suffix, owner->name, layer->name);
    }
fail:
    return err;
}

rp_err rp_onnx_share_tensors(rp_onnx_graph *graph, const rp_onnx_sharing *how,
                             rp_onnx_findings *findings, uint32_t *tensors, uint32_t *uses) {
    sharing s = {.graph = graph, .how = how, .findings = findings};
    uint32_t room = 1;
    uint32_t ignored;
    rp_err err;
    rp_onnx_symbols_init(&s.names, graph->arena);
    rp_onnx_symbols_init(&s.taken, graph->arena);
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        room += graph->layer[i].param_count;
    }
    RP_TRY(RP_ARENA_NEW(graph->arena, room, &s.owner));
    RP_TRY(RP_ARENA_NEW(graph->arena, room, &s.param));
    RP_TRY(name_the_rest(graph));
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        for (uint32_t p = 0; graph->layer[i].live && p < graph->layer[i].param_count; p++) {
            RP_TRY(rp_onnx_symbols_add(&s.taken, graph->layer[i].param[p].name, &ignored));
        }
    }
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        for (uint32_t p = 0; graph->layer[i].live && p < graph->layer[i].param_count; p++) {
            RP_TRY(add_use(&s, i, p));
        }
    }
    *tensors = s.names.count;
    *uses = s.uses;
fail:
    return err;
}
