/* y = f(x) element by element; FORWARD and BACKWARD name the functions.
 *
 *   float16 f_<kind>(float16 x, float p, float q)                y
 *   float16 d_<kind>(float16 dy, float16 ref, float p, float q)  dx; ref: x or y
 *
 * p and q are the kind's keys. A NaN stays a NaN, except in kinds whose values are 0 and 1. */
#include "vec16.clh"

#define TWO_BY_SQRT_PI 1.12837916709551257f

static float16 f_neg(float16 x, float p, float q) {
    return -x;
}
static float16 d_neg(float16 dy, float16 ref, float p, float q) {
    return -dy;
}
static float16 f_abs(float16 x, float p, float q) {
    return fabs(x);
}
static float16 d_abs(float16 dy, float16 x, float p, float q) {
    return select(select((float16)0.0f, dy, x > 0.0f), -dy, x < 0.0f);
}
static float16 f_exp(float16 x, float p, float q) {
    return exp(x);
}
static float16 d_exp(float16 dy, float16 y, float p, float q) {
    return dy * y;
}
static float16 f_log(float16 x, float p, float q) {
    return log(x);
}
static float16 d_log(float16 dy, float16 x, float p, float q) {
    return dy / x;
}
static float16 f_sqrt(float16 x, float p, float q) {
    return sqrt(x);
}
static float16 d_sqrt(float16 dy, float16 y, float p, float q) {
    return dy / (2.0f * y);
}
static float16 f_reciprocal(float16 x, float p, float q) {
    return 1.0f / x;
}
static float16 d_reciprocal(float16 dy, float16 y, float p, float q) {
    return -dy * y * y;
}
static float16 f_erf(float16 x, float p, float q) {
    return erf(x);
}
static float16 d_erf(float16 dy, float16 x, float p, float q) {
    return dy * TWO_BY_SQRT_PI * exp(-x * x);
}
static float16 power(float16 x, float exponent) {
    if (exponent == 0.0f) {
        return (float16)1.0f;
    }
    return exponent == 1.0f ? x : exponent == 2.0f ? x * x : pow(x, (float16)exponent);
}
static float16 f_pow(float16 x, float p, float q) {
    return power(x, p);
}
static float16 d_pow(float16 dy, float16 x, float p, float q) {
    return p == 0.0f ? (float16)0.0f : dy * (p * power(x, p - 1.0f));
}
static float16 f_clip(float16 x, float p, float q) {
    return select(select(x, (float16)q, x > q), (float16)p, x < p);
}
static float16 d_clip(float16 dy, float16 x, float p, float q) {
    return select(dy, (float16)0.0f, x <= p || x >= q);
}
static float16 f_not(float16 x, float p, float q) {
    return select((float16)0.0f, (float16)1.0f, x == 0.0f);
}
static float16 f_isnan(float16 x, float p, float q) {
    return select((float16)0.0f, (float16)1.0f, isnan(x));
}
static float16 d_not(float16 dy, float16 ref, float p, float q) {
    return (float16)0.0f;
}
static float16 d_isnan(float16 dy, float16 ref, float p, float q) {
    return (float16)0.0f;
}

/* y may be x. Grid: one item for each 16 elements. */
kernel void unary_forward(global float *y, ulong y_first, global const float *x, ulong x_first,
                          uint count, float p, float q) {
    uint i = (uint)get_global_id(0) * 16;
    if (i < count) {
        float16 from = load16(x + x_first + i, count - i, 0.0f);
        store16(FORWARD(from, p, q), y + y_first + i, count - i);
    }
}

/* dx may be dy. Grid: as unary_forward. */
kernel void unary_backward(global float *dx, ulong dx_first, global const float *dy,
                           ulong dy_first, global const float *ref, ulong ref_first, uint add,
                           uint count, float p, float q) {
    uint i = (uint)get_global_id(0) * 16;
    if (i < count) {
        float16 d = load16(dy + dy_first + i, count - i, 0.0f);
        float16 at = load16(ref + ref_first + i, count - i, 0.0f);
        put16(BACKWARD(d, at, p, q), dx + dx_first + i, count - i, add);
    }
}
