/* Bytes as an ONNX model: an error, reasons to refuse, or a model file whose weights can be read.
 */
#include "fuzz.h"

#include <string.h>

#include "onnx/import.h"
#include "onnx/tensor.h"

enum { BUDGET = 1 << 20 };

/* Reads the first and the last element of each weight. */
static float read_weights(const rp_onnx_import *import) {
    const rp_onnx_model *model = import->model;
    float sum = 0.0f;
    for (uint32_t i = 0; i < import->graph->layer_count; i++) {
        const rp_onnx_layer *layer = &import->graph->layer[i];
        for (uint32_t p = 0; layer->live && p < layer->param_count; p++) {
            const rp_onnx_view *view = layer->param[p].view;
            RP_ASSERT(view->dims.count == rp_shape_count(&layer->param[p].shape));
            for (uint32_t end = 0; end < 2; end++) {
                const rp_onnx_source source =
                    rp_onnx_view_source(view, end ? view->dims.count - 1 : 0);
                const rp_onnx_tensor *tensor = &model->tensor[model->tensor_of[source.leaf]];
                RP_ASSERT(source.index < tensor->count);
                sum += rp_onnx_float_at(tensor, source.index);
            }
        }
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const rp_onnx_options options = {.budget = BUDGET};
    rp_arena arena;
    rp_onnx_model *model;
    rp_onnx_import import;
    rp_arena_init(&arena, "fuzz", 256 << 20);
    if (rp_onnx_open_bytes(&arena, bytes, count, "fuzz", &model) == RP_OK) {
        const rp_err err = rp_onnx_analyse(&arena, model, &options, &import);
        RP_ASSERT(err == RP_OK || err == RP_ERR_MEMORY);
        if (err == RP_OK && import.text) {
            RP_ASSERT(import.refusals.count == 0 && strlen(import.text) > 0);
            (void)read_weights(&import);
        }
    }
    rp_onnx_close(&model);
    rp_arena_finish(&arena);
    return 0;
}
