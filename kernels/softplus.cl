/* log(1 + exp(x)): see activation.clh. */
#include "activation.clh"

static float16 f_softplus(float16 x, float slope) {
    return select(x, (float16)0.0f, x <= 0.0f) + log1p(exp(-fabs(x)));
}
/* The derivative is 1 / (1 + exp(-x)) = 1 - exp(-y). */
static float16 d_softplus(float16 dy, float16 y, float slope) {
    return dy * -expm1(-y);
}

ACTIVATION(softplus)
