/* Gates r z n: h' = (1 - z) n + z h, n = tanh(x Wn' + bn + r (h Un' + cn)), where r and z are
 * sigmoids. The reset gate comes after the product with h (ONNX: linear_before_reset = 1). */
#include "nn/recurrent.h"

const rp_layer_kind rp_layer_gru = {
    .name = "gru",
    .source = "Cho et al. 2014; torch.nn.GRU",
    .facts = &(const rp_recurrent){.gates = 3},
    RP_RECURRENT_FUNCTIONS,
};
