/* Writes the model file and the weights of an import. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/replace.h"
#include "base/safetensors.h"
#include "nn/names.h"
#include "onnx/import.h"
#include "onnx/symbols.h"
#include "onnx/tensor.h"

enum { PIECE = 4096 /* floats that are converted at a time */ };

/* ---- the weights ----------------------------------------------------------------------------- */

static rp_st_entry entry_of(const rp_onnx_param *param) {
    rp_st_entry entry = {.name = param->name, .type = RP_ST_F32};
    rp_shape shape;
    const bool fits =
        rp_names_shape(&param->shape, param->dims > 0 ? param->dims : param->shape.dims, &shape);
    RP_ASSERT(fits);
    entry.dims = shape.dims;
    for (uint32_t d = 0; d < shape.dims; d++) {
        entry.dim[d] = shape.dim[d];
    }
    return entry;
}

/* The tensors by name; one that layers share is listed once. */
static rp_err list_weights(rp_arena *arena, const rp_onnx_import *import, rp_st_entry **entries,
                           const rp_onnx_param ***params, uint32_t *count) {
    const rp_onnx_graph *graph = import->graph;
    rp_onnx_symbols names;
    uint32_t ignored;
    rp_err err;
    rp_onnx_symbols_init(&names, arena);
    RP_TRY(RP_ARENA_NEW(arena, import->tensors + 1, entries));
    RP_TRY(RP_ARENA_NEW(arena, import->tensors + 1, params));
    *count = 0;
    for (uint32_t i = 0; i < graph->layer_count; i++) {
        const rp_onnx_layer *layer = &graph->layer[i];
        for (uint32_t p = 0; layer->live && p < layer->param_count; p++) {
            const rp_onnx_param *param = &layer->param[p];
            if (rp_onnx_symbols_find(&names, param->name) != UINT32_MAX) {
                continue;
            }
            RP_TRY(rp_onnx_symbols_add(&names, param->name, &ignored));
            RP_ASSERT(*count < import->tensors);
            (*entries)[*count] = entry_of(param);
            (*params)[(*count)++] = param;
        }
    }
fail:
    return err;
}

float rp_onnx_weight_at(const rp_onnx_import *import, const rp_onnx_view *view, uint64_t i) {
    const rp_onnx_model *model = import->model;
    const rp_onnx_source source = rp_onnx_view_source(view, i);
    const rp_onnx_value *value = &import->graph->value[source.leaf];
    if (value->state == RP_ONNX_CONST) {
        return value->whole ? (float)value->ints[source.index] : value->floats[source.index];
    }
    return rp_onnx_float_at(&model->tensor[model->tensor_of[source.leaf]], source.index);
}

static rp_err fail_value(const rp_onnx_import *import, const char *name) {
    return rp_fail(RP_ERR_FORMAT, "%s: tensor %s has a value that is not finite",
                   import->model->file, name);
}

/* Writes a tensor piece by piece, in the order in which the layer has its elements. */
static rp_err write_tensor(const rp_onnx_import *import, const rp_onnx_param *param, uint32_t index,
                           rp_st_writer *writer) {
    const rp_onnx_model *model = import->model;
    const uint64_t count = param->view->dims.count;
    const uint32_t leaf = rp_onnx_view_only_leaf(param->view);
    const bool computed = leaf != RP_ONNX_NONE && import->graph->value[leaf].state == RP_ONNX_CONST;
    const rp_onnx_tensor *only =
        leaf == RP_ONNX_NONE || computed ? NULL : &model->tensor[model->tensor_of[leaf]];
    const bool in_order =
        only && (param->view->op == RP_ONNX_LEAF ||
                 (param->view->op == RP_ONNX_RESHAPE && param->view->in[0]->op == RP_ONNX_LEAF));
    float piece[PIECE];
    for (uint64_t first = 0; first < count; first += PIECE) {
        const uint64_t n = count - first < PIECE ? count - first : PIECE;
        for (uint64_t i = 0; i < n; i++) {
            piece[i] = in_order ? rp_onnx_float_at(only, first + i)
                                : rp_onnx_weight_at(import, param->view, first + i);
            if (param->constant && isinf(piece[i])) {
                piece[i] = copysignf(FLT_MAX, piece[i]);
            }
            if (!isfinite(piece[i])) {
                return fail_value(import, param->name);
            }
        }
        const rp_err err =
            rp_st_write(writer, index, first * sizeof *piece, piece, n * sizeof *piece);
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

static rp_err write_weights(rp_arena *arena, const rp_onnx_import *import, const char *path) {
    static const char *const meta[] = {"format", "pt", NULL};
    rp_st_entry *entries;
    const rp_onnx_param **params;
    uint32_t count;
    rp_st_writer *writer = NULL;
    rp_err err;
    RP_TRY(list_weights(arena, import, &entries, &params, &count));
    RP_TRY(rp_st_create(arena, path, entries, count, meta, false, &writer));
    for (uint32_t i = 0; i < count; i++) {
        RP_TRY(write_tensor(import, params[i], i, writer));
    }
    RP_TRY(rp_st_commit(&writer));
fail:
    rp_st_abandon(&writer);
    return err;
}

/* ---- the model file -------------------------------------------------------------------------- */

static rp_err write_model(const rp_onnx_import *import, const char *path) {
    FILE *file = rp_replace_begin(path);
    const bool good = file && fputs(import->text, file) >= 0;
    return rp_replace_end(file, path, good);
}

rp_err rp_onnx_write(rp_arena *arena, const rp_onnx_import *import, const char *model_path,
                     const char *weights_path) {
    const rp_err err = write_weights(arena, import, weights_path);
    return err == RP_OK ? write_model(import, model_path) : err;
}
