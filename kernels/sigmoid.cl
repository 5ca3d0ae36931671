/* 1 / (1 + exp(-x)): see activation.clh. */
#include "activation.clh"

static float16 f_sigmoid(float16 x, float slope) {
    return 1.0f / (1.0f + exp(-x));
}
static float16 d_sigmoid(float16 dy, float16 y, float slope) {
    return dy * ((1.0f - y) * y);
}

ACTIVATION(sigmoid)
