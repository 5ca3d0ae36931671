/* x Phi(x), by erf: see activation.clh. */
#include "activation.clh"

#define INV_SQRT2 0.70710678118654752f
#define INV_SQRT_2PI 0.39894228040143268f

static float16 f_gelu(float16 x, float slope) {
    return x * 0.5f * (1.0f + erf(x * INV_SQRT2));
}
static float16 d_gelu(float16 dy, float16 x, float slope) {
    float16 cdf = 0.5f * (1.0f + erf(x * INV_SQRT2));
    float16 pdf = exp(-0.5f * x * x) * INV_SQRT_2PI;
    return dy * (cdf + x * pdf);
}

ACTIVATION(gelu)
