/* min(max(x, 0), 6): see activation.clh. */
#include "activation.clh"

static float16 f_relu6(float16 x, float slope) {
    return select(select(x, (float16)0.0f, x <= 0.0f), (float16)6.0f, x >= 6.0f);
}
static float16 d_relu6(float16 dy, float16 y, float slope) {
    return select(dy, (float16)0.0f, (y <= 0.0f) | (y >= 6.0f));
}

ACTIVATION(relu6)
