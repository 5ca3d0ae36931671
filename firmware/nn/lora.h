/* Low-rank adaptation of a matrix product over rows: y += scale (x A') B', where W and the bias of
 * the layer do not change, and A [rank, in] and B [out, rank] are trained. B begins with zeros, so
 * the layer begins as without it. Private to the room.
 *
 * source  Hu et al. 2021; names and initial values of PEFT's LoraLayer */
#ifndef RP_NN_LORA_H
#define RP_NN_LORA_H

#include "nn/products.h"

typedef struct {
    uint32_t rank;  /* 0: the layer has none */
    float scale;    /* alpha / rank */
    double dropout; /* of x, before A */
} rp_lora;

/* Reads the key `lora` of a layer: {rank, alpha, dropout}; absent: rank 0. A layer with it is not
 * frozen as a whole. errors USAGE */
rp_err rp_lora_parse(rp_layer *layer, rp_node *keys, rp_lora *out) RP_MUST_CHECK;
/* Adds A and B to the plan of the layer, whose own parameters become frozen. `sizes`: the layer's
 * product for one sample. errors SHAPE: the rank is not below both sizes of W */
rp_err rp_lora_plan(const rp_layer *layer, const rp_lora *lora, const rp_products *sizes,
                    rp_layer_plan *plan) RP_MUST_CHECK;
/* Floats at the start of the workspace that any product of A or B needs. */
size_t rp_lora_products_floats(const rp_lora *lora, const rp_products *sizes,
                               rp_gemm_choice choice);
/* Floats of the workspace from `first` on that the two functions below use. */
size_t rp_lora_floats(const rp_lora *lora, const rp_products *sizes);
/* After the layer's own product. */
rp_err rp_lora_forward(const rp_layer_call *call, const rp_lora *lora, const rp_products *sizes,
                       uint64_t first) RP_MUST_CHECK;
/* After the layer's own dx: adds to dx, and stores or adds the gradients of A and B. */
rp_err rp_lora_backward(const rp_layer_call *call, const rp_lora *lora, const rp_products *sizes,
                        uint64_t first) RP_MUST_CHECK;

#endif
