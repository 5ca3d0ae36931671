/* x for x > 0, otherwise slope x: see activation.clh. */
#include "activation.clh"

static float16 f_leaky_relu(float16 x, float slope) {
    return select(x * slope, x, x > 0.0f);
}
static float16 d_leaky_relu(float16 dy, float16 y, float slope) {
    return select(dy * slope, dy, y > 0.0f);
}

ACTIVATION(leaky_relu)
