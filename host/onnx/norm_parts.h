/* Norms that are written as several nodes. Private to the room. */
#ifndef RP_ONNX_NORM_PARTS_H
#define RP_ONNX_NORM_PARTS_H

#include "onnx/graph.h"

/* Finds (x - mean) / sqrt(variance + eps) * weight + bias over the last axis, whose last node is
 * this sum, or x / sqrt(mean of squares + eps) * weight, whose last node is this product. errors
 * MEMORY */
rp_err rp_onnx_match_norm(const rp_onnx_visit *visit, bool *done) RP_MUST_CHECK;

/* Finds GroupNormalization, or InstanceNormalization of joined channels, times a weight plus a bias
 * of channels. The sum is the last node. errors MEMORY */
rp_err rp_onnx_match_groupnorm(const rp_onnx_visit *visit, bool *done) RP_MUST_CHECK;

#endif
