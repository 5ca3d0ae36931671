/* x / (1 + exp(-x)): see activation.clh. */
#include "activation.clh"

static float16 f_silu(float16 x, float slope) {
    return x / (1.0f + exp(-x));
}
static float16 d_silu(float16 dy, float16 x, float slope) {
    float16 s = 1.0f / (1.0f + exp(-x));
    return dy * s * (1.0f + x * (1.0f - s));
}

ACTIVATION(silu)
