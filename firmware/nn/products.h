/* The three matrix products of y = x W' over rows, shared by dense, linear and the recurrent kinds.
 * Private to the room. All of them use the first floats of the call's workspace. */
#ifndef RP_NN_PRODUCTS_H
#define RP_NN_PRODUCTS_H

#include "nn/layer_common.h"

/* x [rows, in], y [rows, out]; W is stored [out, in], or [in, out] if `in_out`. */
typedef struct {
    uint32_t rows, in, out;
    bool in_out;
} rp_products;

/* Floats at the start of the workspace that any of the three needs. */
size_t rp_products_floats(const rp_products *sizes, rp_gemm_choice choice);

/* y = x W', then the epilogue. The strides of all rows are read, here and below. */
rp_err rp_products_forward(const rp_layer_call *call, const rp_products *sizes, rp_rows y,
                           rp_rows x, const rp_buffer *w,
                           const rp_epilogue *epilogue) RP_MUST_CHECK;
/* dx (+)= dy W */
rp_err rp_products_input(const rp_layer_call *call, const rp_products *sizes, rp_rows dx,
                         rp_rows dy, const rp_buffer *w, bool add) RP_MUST_CHECK;
/* dw (+)= dy' x, in the order in which W is stored; added if call->accumulate */
rp_err rp_products_weight(const rp_layer_call *call, const rp_products *sizes, const rp_buffer *dw,
                          rp_rows dy, rp_rows x) RP_MUST_CHECK;

#endif
