/* x tanh(log(1 + exp(x))): see activation.clh. With w = exp(x), tanh(log(1 + w)) = m / (m + 2)
 * where m = w (w + 2): no difference of close numbers, and no overflow for x <= 20, above which it
 * is 1. */
#include "activation.clh"

static float16 exp_limited(float16 x) {
    return exp(min(x, 20.0f));
}
static float16 f_mish(float16 x, float slope) {
    float16 w = exp_limited(x);
    float16 m = w * (w + 2.0f);
    return x * (m / (m + 2.0f));
}
/* tanh + x (1 - tanh^2) / (1 + exp(-x)) */
static float16 d_mish(float16 dy, float16 x, float slope) {
    float16 w = exp_limited(x);
    float16 m = w * (w + 2.0f);
    float16 rest = 4.0f * (m + 1.0f) / ((m + 2.0f) * (m + 2.0f));
    return dy * (m / (m + 2.0f) + x * rest * (w / (1.0f + w)));
}

ACTIVATION(mish)
