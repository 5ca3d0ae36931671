/* Recurrent layers on sequences [T, I]: a table of facts, for which kernels/recurrent.cl has the
 * time steps.
 *
 *   const rp_layer_kind rp_layer_lstm = {
 *       .name = "lstm",
 *       .source = "torch.nn.LSTM",
 *       .facts = &(const rp_recurrent){.gates = 4},
 *       RP_RECURRENT_FUNCTIONS,
 *   };
 *
 * Keys: hidden H; bidirectional; reverse (the only direction runs from the end to the beginning);
 * output: all (y [T, D H], D directions side by side) or last (y [D H]: h of each direction after
 * its last step, torch's h_n; a reverse direction ends at t = 0); lengths, padding.
 *
 * With `lengths` a second input has token ids [T], and ids equal to `padding` at the end of a
 * sample are no part of it: a reverse direction begins at the last real token, outputs after it are
 * 0 and have no gradient, and `last` is that of the real tokens, as for torch's
 * pack_padded_sequence. A sample of padding only has the output 0. Without `lengths` padding is a
 * token like others.
 *
 * Initial states are 0. Parameters of each direction: weight_ih_l0 [G H, I], weight_hh_l0 [G H, H],
 * bias_ih_l0, bias_hh_l0 [G H], with G gates in torch's order; those of the second direction end in
 * _reverse. They begin as torch's, U(-1/sqrt(H), 1/sqrt(H)).
 *
 * x Wi' + bi of all rows is one product a direction, and so is every gradient but that of h, which
 * goes through time. Saved are the gates, 4 H floats a row and direction, and c of lstm. */
#ifndef RP_NN_RECURRENT_H
#define RP_NN_RECURRENT_H

#include "nn/layer.h"

typedef struct {
    uint32_t gates; /* 4: lstm; 3: gru */
} rp_recurrent;

typedef struct {
    uint32_t hidden, output, padding;
    bool bidirectional, reverse, lengths;
} rp_recurrent_spec;

rp_err rp_recurrent_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) RP_MUST_CHECK;
rp_err rp_recurrent_plan(const rp_layer *layer, const rp_shape *in,
                         rp_layer_plan *out) RP_MUST_CHECK;
size_t rp_recurrent_workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan,
                                    const rp_shape *in, uint32_t n, rp_gemm_choice choice);
rp_err rp_recurrent_forward(const rp_layer_call *call) RP_MUST_CHECK;
rp_err rp_recurrent_backward(const rp_layer_call *call) RP_MUST_CHECK;

#define RP_RECURRENT_FUNCTIONS                                                                     \
    .keys = "hidden, bidirectional, reverse, output, lengths, padding",                            \
    .spec_bytes = sizeof(rp_recurrent_spec), .inputs_min = 1, .inputs_max = 2,                     \
    .parse = rp_recurrent_parse, .plan = rp_recurrent_plan,                                        \
    .workspace_bytes = rp_recurrent_workspace_bytes, .forward = rp_recurrent_forward,              \
    .backward = rp_recurrent_backward

#endif
