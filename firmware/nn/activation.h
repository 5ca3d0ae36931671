/* What all activation layers share: shapes, costs, and the two launches of kernels/activation.cl.
 */
#ifndef RP_NN_ACTIVATION_H
#define RP_NN_ACTIVATION_H

#include "nn/layer.h"

/* parse of a kind without keys of its own. */
rp_err rp_activation_parse_nothing(rp_layer *layer, rp_node *keys, uint32_t classes);

/* One output per input. `from_y`: the derivative is computed from y, and then forward may be in
 * place; otherwise from x. flops are per element. */
void rp_activation_plan(const rp_shape *in, bool from_y, double flops_forward,
                        double flops_backward, rp_layer_plan *out);

/* Launches kernels/activation.cl `entry`; slope: leaky_relu's, otherwise unused. */
rp_err rp_activation_forward(const rp_layer_call *call, const char *entry,
                             float slope) RP_MUST_CHECK;
rp_err rp_activation_backward(const rp_layer_call *call, const char *entry,
                              float slope) RP_MUST_CHECK;

#endif
