/* The mask of dropout; see layer_dropout.c. Private to the room. */
#ifndef RP_NN_DROPOUT_H
#define RP_NN_DROPOUT_H

#include "nn/layer_common.h"

/* to (+)= from times the mask of the layer, for the samples of the call in the shape of its first
 * input, without gaps between rows. Evaluation keeps everything. */
rp_err rp_dropout_mask(const rp_layer_call *call, rp_rows to, rp_rows from, double p,
                       bool add) RP_MUST_CHECK;

#endif
