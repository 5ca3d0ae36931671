#include "onnx/freeze.h"

#include <fnmatch.h>

rp_err rp_onnx_freeze_layers(rp_onnx_graph *graph, const char *const *pattern, uint32_t count,
                             rp_onnx_findings *findings) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < count; i++) {
        bool found = false;
        for (uint32_t k = graph->model->input_count; k < graph->layer_count; k++) {
            rp_onnx_layer *layer = &graph->layer[k];
            if (layer->live && fnmatch(pattern[i], layer->name, 0) == 0) {
                layer->frozen = true;
                found = true;
            }
        }
        if (!found) {
            RP_TRY(rp_onnx_add_finding(findings, "option",
                                       "--freeze: '%.200s' matches no layer of the model",
                                       pattern[i]));
        }
    }
fail:
    return err;
}
