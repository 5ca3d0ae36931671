/* Visits the nodes of a graph in order: constants are computed, arrangements followed, layers
 * found. Private to the room. */
#ifndef RP_ONNX_VISIT_H
#define RP_ONNX_VISIT_H

#include "onnx/graph.h"

/* `no_fuse`: a node is the layer of its operator, if there is such a kind. errors MEMORY */
rp_err rp_onnx_visit_nodes(rp_onnx_graph *graph, bool no_fuse) RP_MUST_CHECK;

/* Visits again the nodes that the output depends on and no layer computes. Each one is then the
 * layer of its operator, unless it is part of a pattern. errors MEMORY */
rp_err rp_onnx_visit_again(rp_onnx_graph *graph) RP_MUST_CHECK;

/* Marks what the output depends on: layers as live, and nodes that no layer computes as findings.
 * *layer is the layer that gives the output, RP_ONNX_NONE if none does. errors MEMORY */
rp_err rp_onnx_collect(rp_onnx_graph *graph, rp_onnx_findings *findings,
                       uint32_t *layer) RP_MUST_CHECK;

#endif
