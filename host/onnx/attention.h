/* Attention that is written as several nodes. Private to the room. */
#ifndef RP_ONNX_ATTENTION_H
#define RP_ONNX_ATTENTION_H

#include "onnx/graph.h"

/* Finds softmax(scale q k' + mask) v whose last product is this node. errors MEMORY */
rp_err rp_onnx_match_attention(const rp_onnx_visit *visit, bool *done) RP_MUST_CHECK;

#endif
