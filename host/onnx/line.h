/* Signals [N, C, L], which layers compute as images [N, C, 1, L]. A value that such a layer gives
 * is its output without the axis of 1, so that layers in a row need no arrangement between them.
 * Private to the room. */
#ifndef RP_ONNX_LINE_H
#define RP_ONNX_LINE_H

#include "onnx/graph.h"

/* The layer whose output [C, 1, L] is the view [N, C, L]; RP_ONNX_NONE: the view is no such value.
 */
uint32_t rp_onnx_line_layer(const rp_onnx_graph *graph, const rp_onnx_view *view);
/* Whether input `i` is such a value. */
bool rp_onnx_is_line(const rp_onnx_visit *visit, uint32_t i);

/* The layer that has input `i`, [N, C, L], as [C, 1, L], if need be with a layer that reshapes.
 * *done is false, and the node is refused, if no layers arrange like this. errors MEMORY */
rp_err rp_onnx_read_line(const rp_onnx_visit *visit, uint32_t i, uint32_t *from,
                         bool *done) RP_MUST_CHECK;

/* Emits a layer whose output is [C, 1, L] and gives it to output 0 as [N, C, L]. errors MEMORY */
rp_err rp_onnx_emit_line(const rp_onnx_visit *visit, const rp_onnx_layer *draft,
                         bool *done) RP_MUST_CHECK;

#endif
