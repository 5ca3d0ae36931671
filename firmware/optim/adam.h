/* Code shared by Adam and AdamW; private to the room. */
#ifndef RP_OPTIM_ADAM_H
#define RP_OPTIM_ADAM_H

#include "optim/optim.h"

extern const char *const rp_adam_state_names[];
uint32_t rp_adam_state_count(const rp_optim *optim);

/* Parses beta1, beta2 or PyTorch's `betas: [b1, b2]`, eps, and weight_decay with this default. */
rp_err rp_adam_parse(rp_optim *optim, rp_node *keys, double weight_decay) RP_MUST_CHECK;

/* One step. A decoupled kind (AdamW) first scales w *= 1 - lr weight_decay; otherwise g +=
 * weight_decay w. */
rp_err rp_adam_step(const rp_optim_call *call) RP_MUST_CHECK;

/* out = w - s lr m^ / (sqrt(v^) + eps). With a decoupled kind and optim->predict_decay, w is first
 * scaled by (1 - lr weight_decay)^s (METHODS 6, FTPipe); PipeOptim's paper does not predict the
 * decay. */
rp_err rp_adam_predict(const rp_optim_call *call, rp_buffer *out, float s) RP_MUST_CHECK;

#endif
