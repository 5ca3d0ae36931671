/* Layers that the user does not want to train. Private to the room. */
#ifndef RP_ONNX_FREEZE_H
#define RP_ONNX_FREEZE_H

#include "onnx/graph.h"

/* Freezes the live layers whose name matches one of the shell patterns, so that the model file says
 * `train: false`. A pattern that matches no layer is a finding. errors MEMORY */
rp_err rp_onnx_freeze_layers(rp_onnx_graph *graph, const char *const *pattern, uint32_t count,
                             rp_onnx_findings *findings) RP_MUST_CHECK;

#endif
