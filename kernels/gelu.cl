/* x Phi(x), by erf or by tanh: see activation.clh. */
#include "activation.clh"

#define INV_SQRT2 0.70710678118654752f
#define INV_SQRT_2PI 0.39894228040143268f

/* Phi(x), given e = exp(-x^2 / 2). With z = |x| / sqrt(2) and t = 1 / (1 + 0.4 z), the tail
 * Phi(-|x|) is e t P(t) / 2, where t P(t) = exp(z^2) erfc(z). P is the polynomial of degree 8 whose
 * largest relative error for z in [0, 10] is least, 7e-8. Built-in erf takes 6 times as long on a
 * CPU, and 1 + erf loses the digits of the left tail. */
static float16 cdf_by_exp(float16 x, float16 e) {
    float16 t = 1.0f / (1.0f + (0.4f * INV_SQRT2) * fabs(x));
    float16 p = 0.040790532f;
    p = p * t - 0.13812232f;
    p = p * t + 0.079568990f;
    p = p * t + 0.092862524f;
    p = p * t + 0.076493502f;
    p = p * t + 0.19472629f;
    p = p * t + 0.20156239f;
    p = p * t + 0.22648631f;
    p = p * t + 0.22563183f;
    float16 tail = 0.5f * e * t * p;
    return select(tail, 1.0f - tail, x > 0.0f);
}
static float16 f_gelu(float16 x, float slope) {
    return x * cdf_by_exp(x, exp(-0.5f * x * x));
}
static float16 d_gelu(float16 dy, float16 x, float slope) {
    float16 e = exp(-0.5f * x * x);
    return dy * (cdf_by_exp(x, e) + x * e * INV_SQRT_2PI);
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
