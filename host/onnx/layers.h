/* Layers of the model file: making one, and reading a value as the output of one. Private to the
 * room. */
#ifndef RP_ONNX_LAYERS_H
#define RP_ONNX_LAYERS_H

#include "onnx/graph.h"

/* A layer that reads `from`, with its own keys as in a model file. */
rp_err rp_onnx_draft(const rp_onnx_visit *visit, const char *kind, uint32_t from,
                     rp_onnx_layer *out, const char *keys, ...) RP_MUST_CHECK RP_PRINTF(5, 6);
/* Adds a parameter whose elements are those of a view over initialisers. */
void rp_onnx_draft_param(rp_onnx_layer *draft, const char *suffix, const rp_onnx_view *view);

/* Adds the layer, if its kind accepts keys, inputs and parameters; otherwise the node is refused
 * with the kind's message. A layer that computes the same as an earlier one is that one.
 * errors MEMORY */
rp_err rp_onnx_emit(const rp_onnx_visit *visit, const rp_onnx_layer *draft, uint32_t *layer,
                    bool *done) RP_MUST_CHECK;
/* Emits the layer and makes output 0 of the node its output. */
rp_err rp_onnx_emit_output(const rp_onnx_visit *visit, const rp_onnx_layer *draft,
                           bool *done) RP_MUST_CHECK;

/* The layer whose output is exactly this arrangement, if need be with a layer that arranges:
 * flatten, sequence, slice or seqpool. The first size of the view is the batch. *done is false, and
 * the node is refused, if no layer arranges like this; without a reason if the view depends on a
 * node that is refused itself. errors MEMORY */
rp_err rp_onnx_read_layer(const rp_onnx_visit *visit, const rp_onnx_view *view, uint32_t *layer,
                          bool *done) RP_MUST_CHECK;
/* rp_onnx_read_layer() of input `i` of the node. */
rp_err rp_onnx_read_input(const rp_onnx_visit *visit, uint32_t i, uint32_t *layer,
                          bool *done) RP_MUST_CHECK;

/* The view of input `i` if it has elements of initialisers only; otherwise the node is refused and
 * *out is NULL. `what` is for the message. errors MEMORY */
rp_err rp_onnx_read_param(const rp_onnx_visit *visit, uint32_t i, const char *what,
                          const rp_onnx_view **out) RP_MUST_CHECK;
/* Whether input `i` is absent, or a constant of zeros. */
bool rp_onnx_is_zero(const rp_onnx_visit *visit, uint32_t i);

/* The axes of a mean or sum over axes: bit i for axis i; 0: not known, or all. errors MEMORY */
rp_err rp_onnx_reduced_axes(const rp_onnx_visit *visit, uint32_t rank, uint32_t *out) RP_MUST_CHECK;

/* Refuses the node for the operands that it has, unless one of them depends on a node that is
 * refused itself. errors MEMORY */
rp_err rp_onnx_refuse_operands(const rp_onnx_visit *visit, const char *reason) RP_MUST_CHECK;

/* The node that gives input `i`, if it is a dynamic value and the node has this operator. */
bool rp_onnx_producer(const rp_onnx_visit *visit, uint32_t i, const char *op, rp_onnx_visit *out);
/* Whether two inputs, of two nodes perhaps, are one value. */
bool rp_onnx_same_value(const rp_onnx_visit *a, uint32_t i, const rp_onnx_visit *b, uint32_t k);

#endif
