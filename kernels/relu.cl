/* max(x, 0): see activation.clh. */
#include "activation.clh"

static float16 f_relu(float16 x, float slope) {
    return select(x, (float16)0.0f, x <= 0.0f);
}
static float16 d_relu(float16 dy, float16 y, float slope) {
    return select(dy, (float16)0.0f, y <= 0.0f);
}

ACTIVATION(relu)
