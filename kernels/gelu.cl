/* x Phi(x), by erf or by tanh: see activation.clh. */
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

#define SQRT_2_BY_PI 0.79788456080286536f
#define CUBIC 0.044715f

/* x, within a range outside of which the tanh is +-1, so that its powers are finite. */
static float16 in_range(float16 x) {
    return clamp(x, -16.0f, 16.0f);
}
/* 0.5 (1 + tanh(z)) = 1 / (1 + exp(-2 z)), z = sqrt(2 / pi) (x + 0.044715 x^3) */
static float16 cdf_by_tanh(float16 x) {
    float16 v = in_range(x);
    return 1.0f / (1.0f + exp(-2.0f * SQRT_2_BY_PI * (v + CUBIC * v * v * v)));
}
static float16 f_gelu_tanh(float16 x, float slope) {
    return x * cdf_by_tanh(x);
}
static float16 d_gelu_tanh(float16 dy, float16 x, float slope) {
    float16 cdf = cdf_by_tanh(x);
    float16 v = in_range(x);
    float16 dz = SQRT_2_BY_PI * (1.0f + 3.0f * CUBIC * v * v);
    return dy * (cdf + 2.0f * x * cdf * (1.0f - cdf) * dz);
}

ACTIVATION(gelu_tanh)
