/* x for x > 0, otherwise slope (exp(x) - 1): see activation.clh. */
#include "activation.clh"

static float16 f_elu(float16 x, float slope) {
    return select(slope * expm1(x), x, x > 0.0f);
}
static float16 d_elu(float16 dy, float16 y, float slope) {
    return select(dy * (y + slope), dy, y > 0.0f);
}

ACTIVATION(elu)
