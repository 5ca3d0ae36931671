/* What Adam and AdamW share; private to the room. */
#ifndef RP_OPTIM_ADAM_H
#define RP_OPTIM_ADAM_H

#include "optim/optim.h"

extern const char *const rp_adam_state_names[];
uint32_t rp_adam_state_count(const rp_optim *optim);

/* beta1, beta2 or PyTorch's `betas: [b1, b2]`, eps, weight_decay with this default. */
rp_err rp_adam_parse(rp_optim *optim, rp_node *keys, double weight_decay) RP_MUST_CHECK;

/* Of a decoupled kind (AdamW): w *= 1 - lr weight_decay first, otherwise g += weight_decay w. */
rp_err rp_adam_step(const rp_optim_call *call) RP_MUST_CHECK;

/* w - s lr m^ / (sqrt(v^) + eps). A decoupled kind and optim->predict_decay: w shrinks first by
 * (1 - lr weight_decay)^s (METHODS 6, FTPipe); PipeOptim's paper does not predict the decay. */
rp_err rp_adam_predict(const rp_optim_call *call, rp_buffer *out, float s) RP_MUST_CHECK;

#endif
