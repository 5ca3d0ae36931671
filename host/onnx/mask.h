/* Masks of attention: which keys a query sees. Private to the room. */
#ifndef RP_ONNX_MASK_H
#define RP_ONNX_MASK_H

#include "onnx/graph.h"

typedef enum {
    RP_ONNX_MASK_ADDED,     /* 0 is seen, a large negative number is not */
    RP_ONNX_MASK_TRUE_SEES, /* booleans */
    RP_ONNX_MASK_TRUE_HIDES
} rp_onnx_mask_kind;

typedef struct {
    bool causal; /* a query sees no later key */
    uint32_t
        ids; /* layer of token ids: keys with the id `padding` are hidden; RP_ONNX_NONE: none */
    int32_t padding;
} rp_onnx_mask;

/* Joins the mask of input `i` of a node, [.., T, S] or absent, with what *mask has already. A mask
 * that is computed from token ids is evaluated for some ids and compared. *done is false if it is
 * another mask. errors MEMORY */
rp_err rp_onnx_join_mask(const rp_onnx_visit *visit, uint32_t i, rp_onnx_mask_kind kind,
                         rp_onnx_mask *mask, bool *done) RP_MUST_CHECK;

#endif
