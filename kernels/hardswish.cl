/* x clamp(x + 3, 0, 6) / 6: see activation.clh. */
#include "activation.clh"

static float16 f_hardswish(float16 x, float slope) {
    float16 gate = select(select(x + 3.0f, (float16)0.0f, x <= -3.0f), (float16)6.0f, x >= 3.0f);
    return x * (gate / 6.0f);
}
static float16 d_hardswish(float16 dy, float16 x, float slope) {
    float16 inside = dy * (x / 3.0f + 0.5f);
    return select(select(inside, (float16)0.0f, x <= -3.0f), dy, x >= 3.0f);
}

ACTIVATION(hardswish)
