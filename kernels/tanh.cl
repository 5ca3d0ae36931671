/* tanh(x): see activation.clh. */
#include "activation.clh"

static float16 f_tanh(float16 x, float slope) {
    return tanh(x);
}
static float16 d_tanh(float16 dy, float16 y, float slope) {
    return dy * (1.0f - y * y);
}

ACTIVATION(tanh)
