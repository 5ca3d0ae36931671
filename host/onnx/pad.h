/* Zeros around images. Private to the room. */
#ifndef RP_ONNX_PAD_H
#define RP_ONNX_PAD_H

#include "onnx/graph.h"

/* Whether input `i` of a node is the output of a Pad node that puts zeros around images; *pad is
 * that node, and before and after are the zeros along height and width. errors MEMORY */
rp_err rp_onnx_find_pad(const rp_onnx_visit *visit, uint32_t i, rp_onnx_visit *pad,
                        int64_t before[2], int64_t after[2], bool *yes) RP_MUST_CHECK;

#endif
