/* Bytes as an ONNX model: an error, reasons to refuse, or a model file that `nn` reads, with
 * weights that can be read. */
#include "fuzz.h"

#include <string.h>

#include "base/config.h"
#include "nn/model.h"
#include "onnx/import.h"

enum { BUDGET = 1 << 20 };

/* Reads the first and the last element of each weight. */
static float read_weights(const rp_onnx_import *import) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < import->graph->layer_count; i++) {
        const rp_onnx_layer *layer = &import->graph->layer[i];
        for (uint32_t p = 0; layer->live && p < layer->param_count; p++) {
            const rp_onnx_view *view = layer->param[p].view;
            RP_ASSERT(view->dims.count == rp_shape_count(&layer->param[p].shape));
            for (uint32_t end = 0; end < 2; end++) {
                sum += rp_onnx_weight_at(import, view, end ? view->dims.count - 1 : 0);
            }
        }
    }
    return sum;
}

/* The model file has the parameters of the layers. */
static void read_model(rp_arena *arena, const rp_onnx_import *import) {
    const rp_model_data nothing = {0};
    rp_model *model;
    rp_node *root;
    rp_err err = rp_config_read_text(arena, import->text, strlen(import->text), "fuzz", &root);
    err = err == RP_OK ? rp_model_parse(arena, root, &nothing, &model) : err;
    RP_ASSERT(err == RP_OK || err == RP_ERR_MEMORY);
    RP_ASSERT(err != RP_OK || model->layer_count >= import->layers);
}

/* The number of bytes chooses the options, so that every mix of them is tried. */
static rp_onnx_options choose_options(size_t count) {
    static const char *const some = "*a*";
    return (rp_onnx_options){.budget = BUDGET,
                             .no_fuse = (count & 3) == 1,
                             .untie = (count & 4) != 0,
                             .accept_tied = (count & 8) != 0,
                             .accept_folded = (count & 16) != 0,
                             .freeze = &some,
                             .freeze_count = (count & 32) != 0};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    const rp_onnx_options options = choose_options(count);
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
            read_model(&arena, &import);
        }
    }
    rp_onnx_close(&model);
    rp_arena_finish(&arena);
    return 0;
}
