/* Tensors that several layers have. Private to the room. */
#ifndef RP_ONNX_SHARED_H
#define RP_ONNX_SHARED_H

#include "onnx/graph.h"

/* What happens to a tensor that several layers have. */
typedef struct {
    bool untie;      /* each layer gets a tensor of its own with the same start */
    bool accept_all; /* layers of any kinds may share, otherwise those that do in PyTorch's nets */
} rp_onnx_sharing;

/* Names each parameter that has no name yet after its layer, then lets layers share, or unties
 * them. *tensors is the number of different tensors; *uses that of uses of a tensor after its first
 * one. Findings name tensors that may not be shared. errors MEMORY */
rp_err rp_onnx_share_tensors(rp_onnx_graph *graph, const rp_onnx_sharing *how,
                             rp_onnx_findings *findings, uint32_t *tensors,
                             uint32_t *uses) RP_MUST_CHECK;

#endif
