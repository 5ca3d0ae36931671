/* Dropout that is written as a product with random numbers. Private to the room. */
#ifndef RP_ONNX_NOISE_H
#define RP_ONNX_NOISE_H

#include "onnx/graph.h"

/* Finds x times a mask of random zeros, divided by the chance of a one: dropout if each element is
 * drawn, droppath if each sample is. The product is the last node. errors MEMORY */
rp_err rp_onnx_match_noise(const rp_onnx_visit *visit, bool *done) RP_MUST_CHECK;

#endif
