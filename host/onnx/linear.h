/* Products with a weight. Private to the room. */
#ifndef RP_ONNX_LINEAR_H
#define RP_ONNX_LINEAR_H

#include "onnx/graph.h"

/* The layer that adds input `bias` of the node to the product that is its other input, as one
 * linear layer. *done is false if it is not such a sum. errors MEMORY */
rp_err rp_onnx_match_bias(const rp_onnx_visit *visit, uint32_t bias, bool *done) RP_MUST_CHECK;

#endif
