/* Numbers that nodes compute from token ids. Private to the room. */
#ifndef RP_ONNX_EVALUATE_H
#define RP_ONNX_EVALUATE_H

#include "onnx/graph.h"

/* An evaluation with ids of the caller for the only input that the value depends on. */
typedef struct {
    rp_onnx_graph *graph;
    int64_t (*id)(uint64_t seed, uint64_t index); /* element `index` of the input */
    uint64_t seed;
    uint32_t input; /* the layer of the input; RP_ONNX_NONE: none was needed so far */
    uint64_t steps; /* nodes that were visited */
    bool good; /* false: a node is unknown, two inputs are needed, or there are too many steps */
} rp_onnx_evaluation;

/* Element `index` of a view: 0 or 1 for booleans. */
double rp_onnx_evaluate(rp_onnx_evaluation *e, const rp_onnx_view *view, uint64_t index);

#endif
