/* An activation layer is a table of facts and its two functions in kernels/<kind>.cl:
 *
 *   const rp_layer_kind rp_layer_relu = {
 *       .name = "relu",
 *       .source = "torch.nn.ReLU",
 *       .facts = &(const rp_activation){.from_y = true, .flops_forward = 1, .flops_backward = 1},
 *       RP_ACTIVATION_FUNCTIONS,
 *   };
 */
#ifndef RP_NN_ACTIVATION_H
#define RP_NN_ACTIVATION_H

#include "nn/layer.h"

typedef struct {
    /* The derivative is computed from y, so forward may work in place; otherwise from x. */
    bool from_y;
    double flops_forward, flops_backward; /* per element */
    float slope;                          /* default of the kind's only key, if it has `keys` */
    /* Values of the kind's only key if it takes words, NULL-terminated; the first one is the
     * default. Otherwise NULL, and the key takes a number that is not negative. */
    const char *const *words;
} rp_activation;

/* forward and backward launch the entries `<kind>_forward` and `<kind>_backward`, or
 * `<kind>_<word>_forward` and `<kind>_<word>_backward` for all words but the first. */
rp_err rp_activation_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) RP_MUST_CHECK;
rp_err rp_activation_plan(const rp_layer *layer, const rp_shape *in,
                          rp_layer_plan *out) RP_MUST_CHECK;
rp_err rp_activation_forward(const rp_layer_call *call) RP_MUST_CHECK;
rp_err rp_activation_backward(const rp_layer_call *call) RP_MUST_CHECK;

#define RP_ACTIVATION_FUNCTIONS                                                                    \
    .spec_bytes = sizeof(float), .inputs_min = 1, .inputs_max = 1, .parse = rp_activation_parse,   \
    .plan = rp_activation_plan, .forward = rp_activation_forward,                                  \
    .backward = rp_activation_backward

#endif
