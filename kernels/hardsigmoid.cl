/* clamp(x + 3, 0, 6) / 6: see activation.clh. */
#include "activation.clh"

static float16 f_hardsigmoid(float16 x, float slope) {
    return select(select(x + 3.0f, (float16)0.0f, x <= -3.0f), (float16)6.0f, x >= 3.0f) / 6.0f;
}
static float16 d_hardsigmoid(float16 dy, float16 x, float slope) {
    return select(dy / 6.0f, (float16)0.0f, (x <= -3.0f) | (x >= 3.0f));
}

ACTIVATION(hardsigmoid)
