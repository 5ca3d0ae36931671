/* Code shared by attention.c and attention_heads.c. */
#ifndef RP_NN_ATTENTION_OWN_H
#define RP_NN_ATTENTION_OWN_H

#include "nn/attention.h"
#include "nn/layer_common.h"

enum { RP_ATTENTION_TOKENS = 32 }; /* of a panel, as in kernels/attention.clh */

#define RP_ATTENTION_LOG2_E 1.4426950408889634

/* The factor of scores. */
float rp_attention_scale(const rp_attention_spec *spec, const rp_attention_inputs *of);
/* Writes the mask of n samples from sample `first` on to element `to` of the workspace. */
rp_err rp_attention_mask(const rp_layer_call *call, const rp_attention_inputs *of, uint64_t to,
                         uint32_t first, uint32_t n) RP_MUST_CHECK;
/* The arguments from `levels` to `keep` of the kernels, from sample `first` of the call on. */
void rp_attention_arg_heads(const rp_layer_call *call, const rp_attention_inputs *of,
                            uint32_t first, rp_launch *launch);

#endif
