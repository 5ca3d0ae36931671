/* Gates i f g o: c' = f c + i g, h' = o tanh c', where i, f, o are sigmoids and g is the tanh of
 * their part of x Wi' + bi + h Wh' + bh. */
#include "nn/recurrent.h"

const rp_layer_kind rp_layer_lstm = {
    .name = "lstm",
    .source = "Hochreiter & Schmidhuber 1997; torch.nn.LSTM",
    .facts = &(const rp_recurrent){.gates = 4},
    RP_RECURRENT_FUNCTIONS,
};
