/* Activations that are written as several nodes. Private to the room. */
#ifndef RP_ONNX_ACTIVATION_H
#define RP_ONNX_ACTIVATION_H

#include "onnx/graph.h"

/* Finds a layer that computes the node together with the elementwise nodes before it: their formula
 * is evaluated at some numbers and compared with each activation. So gelu, silu, mish, hardswish
 * and others are found in whatever way they are written. errors MEMORY */
rp_err rp_onnx_match_activation(const rp_onnx_visit *visit, bool *done) RP_MUST_CHECK;

#endif
