/* Launches a kernel of kernels/optim.cl over the flat block; private to the room. */
#ifndef RP_OPTIM_OPTIM_OWN_H
#define RP_OPTIM_OPTIM_OWN_H

#include "device/program.h"
#include "optim/optim.h"

/* Prepares `launch` for its arguments. */
rp_err rp_optim_begin(const rp_optim_call *call, const char *entry,
                      rp_launch *launch) RP_MUST_CHECK;
rp_err rp_optim_run(const rp_optim_call *call, rp_launch *launch) RP_MUST_CHECK;

/* out = w - lr * s * direction; a copy of w when t == 0 or s == 0.
 * errors  USAGE when direction is NULL, because the optimiser was not set up to predict */
rp_err rp_optim_predict_along(const rp_optim_call *call, const rp_buffer *direction, rp_buffer *out,
                              float s) RP_MUST_CHECK;

/* out = w. */
rp_err rp_optim_copy(const rp_optim_call *call, rp_buffer *out) RP_MUST_CHECK;

/* Parses `weight_decay`, which every kind has. */
rp_err rp_optim_parse_decay(rp_optim *optim, rp_node *keys) RP_MUST_CHECK;

#endif
