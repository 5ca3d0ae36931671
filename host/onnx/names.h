/* Names of layers and of their tensors. Private to the room. */
#ifndef RP_ONNX_NAMES_H
#define RP_ONNX_NAMES_H

#include "onnx/graph.h"

/* Names the live layers and their parameters. A tensor keeps its name, which is that of PyTorch's
 * state_dict; a layer is called by the common part of its tensors' names, or by the module and the
 * kind. Names that no model file can have are findings, or are changed with a note. So are names
 * that an exporter made up: with `accept_folded` the parameter gets no name. errors MEMORY */
rp_err rp_onnx_name_layers(rp_onnx_graph *graph, bool accept_folded,
                           rp_onnx_findings *findings) RP_MUST_CHECK;

/* Whether an exporter made the name of an initialiser up, because it computed the values. */
bool rp_onnx_name_is_made_up(const char *name);
/* The name of the only initialiser whose elements a value has, if it may be trained and no exporter
 * made the name up; otherwise NULL. `value` may be NULL. */
const char *rp_onnx_weight_name(const rp_onnx_graph *graph, const rp_onnx_value *value);

#endif
