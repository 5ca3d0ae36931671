/* The model file of an import. Private to the room. */
#ifndef RP_ONNX_MODEL_TEXT_H
#define RP_ONNX_MODEL_TEXT_H

#include "onnx/graph.h"

/* Writes the live layers, one on a line. errors MEMORY */
rp_err rp_onnx_model_text(const rp_onnx_graph *graph, char **out) RP_MUST_CHECK;

/* Layers that are inputs of the model and live. */
uint32_t rp_onnx_live_inputs(const rp_onnx_graph *graph);

#endif
