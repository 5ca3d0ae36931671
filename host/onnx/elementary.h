/* Operators as layers of their own, for nodes that no pattern has. Private to the room. */
#ifndef RP_ONNX_ELEMENTARY_H
#define RP_ONNX_ELEMENTARY_H

#include "onnx/graph.h"

enum { RP_ONNX_INDICES_MAX = 1 << 16 /* of a gather in a model file */ };

/* The layer of the node's operator, if there is such a kind. *done is false, and the node is
 * refused, if an operand cannot be read. errors MEMORY */
rp_err rp_onnx_element(const rp_onnx_visit *visit, bool *done) RP_MUST_CHECK;

/* Whether there is a kind for the operator. */
bool rp_onnx_has_element(const char *op);

/* elementary_read.c: an operand as the output of a layer. Weights are `parameter` layers, constants
 * are `constant` layers, and arrangements are layers too.
 *
 * The layer's output has the axes of the view without the first `skip` ones: 1 for values that
 * depend on an input, whose first axis is the batch; 1 for others that have one row for all
 * samples. *done is false, and the node is refused, if no layers give it. errors MEMORY */
rp_err rp_onnx_element_view(const rp_onnx_visit *visit, const rp_onnx_value *value,
                            const rp_onnx_view *view, uint32_t skip, uint32_t *layer,
                            bool *done) RP_MUST_CHECK;
/* rp_onnx_element_view() of a value that depends on an input, as an rp_onnx_reader. */
rp_onnx_reader rp_onnx_element_steps;
/* Input `i` as an operand of a node whose output has `rank` axes with the batch: NumPy's rule then
 * holds for samples too. */
rp_err rp_onnx_element_operand(const rp_onnx_visit *visit, uint32_t i, uint32_t rank,
                               uint32_t *layer, bool *done) RP_MUST_CHECK;
/* The view of a weight or of a constant as such an operand: its first axis is dropped if it stands
 * where the batch is, and has one row or the same row for all samples. */
rp_err rp_onnx_element_shared(const rp_onnx_visit *visit, const rp_onnx_value *in,
                              const rp_onnx_view *view, uint32_t rank, uint32_t *layer,
                              bool *done) RP_MUST_CHECK;

/* Rows of one weight that are there many times, as BERT adds one row to all tokens. It is found by
 * the map of the elements, so that the layers are the same whatever steps an exporter took: the
 * whole weight, a slice of its rows, a repetition. */
typedef struct {
    const rp_onnx_view *whole; /* of the initialiser */
    uint64_t row;              /* elements of one row of it */
    uint64_t start, count;     /* elements of it that are repeated */
    uint32_t axis;             /* the view's axes from this one on are one block */
} rp_onnx_block;

/* elementary_block.c: finds the smallest such block of whole rows, which costs budget. */
bool rp_onnx_find_block(rp_onnx_graph *graph, const rp_onnx_view *view, rp_onnx_block *out);
/* Writes "KEY: [1, 2, 3]". errors MEMORY */
rp_err rp_onnx_element_list(rp_arena *arena, const char *key, const int64_t *list, uint64_t count,
                            const char **out) RP_MUST_CHECK;
/* The layer `from`, or one that gives its output another shape. Rank 0 is [1]. */
rp_err rp_onnx_element_reshape(const rp_onnx_visit *visit, uint32_t from, uint32_t rank,
                               const int64_t *dim, uint32_t *layer, bool *done) RP_MUST_CHECK;

#endif
