/* Values that are computed when a model is read. Private to the room. */
#ifndef RP_ONNX_CONSTANTS_H
#define RP_ONNX_CONSTANTS_H

#include "onnx/graph.h"

enum { RP_ONNX_CONST_MAX = 1 << 22 /* elements of a computed constant */ };

/* Room for the elements of a constant, which costs budget; both are NULL if there are too many.
 * errors  MEMORY */
rp_err rp_onnx_new_const(rp_onnx_graph *graph, bool whole, uint64_t count, int64_t **ints,
                         float **floats) RP_MUST_CHECK;

/* Element of a constant value that a view with constant leaves has at `index`. */
int64_t rp_onnx_int_of(const rp_onnx_graph *graph, const rp_onnx_view *view, uint64_t index);
float rp_onnx_float_of(const rp_onnx_graph *graph, const rp_onnx_view *view, uint64_t index);

/* Makes a constant of input `i` if it has elements of initialisers that are not parameters, such as
 * a mask's or a table's. errors MEMORY */
rp_err rp_onnx_make_const(const rp_onnx_visit *visit, uint32_t i) RP_MUST_CHECK;
/* Likewise, with parameters too unless the user named them: something computes with them before a
 * layer reads the result, so that they cannot be trained. errors MEMORY */
rp_err rp_onnx_fold_param(const rp_onnx_visit *visit, uint32_t i) RP_MUST_CHECK;

/* Sets output `i` to the elements that a view of constants has. *done is false if there are too
 * many. errors MEMORY */
rp_err rp_onnx_give_arranged(const rp_onnx_visit *visit, uint32_t i, bool whole,
                             const rp_onnx_view *view, bool *done) RP_MUST_CHECK;

#endif
