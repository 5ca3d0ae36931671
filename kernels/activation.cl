/* Activations, PyTorch's formulas; a NaN stays a NaN.
 *
 *   <kind>_forward (y, x, count, slope)            y[i] = f(x[i]); y may be x
 *   <kind>_backward(dx, dy, ref, count, add, slope) dx[i] (+)= dy[i] * f'(...); dx may be dy
 * `ref` is y for relu, leaky_relu, tanh, sigmoid and x for gelu, silu. `slope`: leaky_relu only.
 * Element 0 of each tensor is at `<name>_first` of its buffer.
 * Grid: one work-item per 16 elements. */
#include "vec16.clh"

#define INV_SQRT2 0.70710678118654752f
#define INV_SQRT_2PI 0.39894228040143268f

static float16 f_relu(float16 x, float slope) {
    return select(x, (float16)0.0f, x <= 0.0f);
}
static float16 d_relu(float16 dy, float16 y, float slope) {
    return select(dy, (float16)0.0f, y <= 0.0f);
}

static float16 f_leaky_relu(float16 x, float slope) {
    return select(x * slope, x, x > 0.0f);
}
static float16 d_leaky_relu(float16 dy, float16 y, float slope) {
    return select(dy * slope, dy, y > 0.0f);
}

static float16 f_tanh(float16 x, float slope) {
    return tanh(x);
}
static float16 d_tanh(float16 dy, float16 y, float slope) {
    return dy * (1.0f - y * y);
}

static float16 f_sigmoid(float16 x, float slope) {
    return 1.0f / (1.0f + exp(-x));
}
static float16 d_sigmoid(float16 dy, float16 y, float slope) {
    return dy * ((1.0f - y) * y);
}

static float16 f_gelu(float16 x, float slope) {
    return x * 0.5f * (1.0f + erf(x * INV_SQRT2));
}
static float16 d_gelu(float16 dy, float16 x, float slope) {
    float16 cdf = 0.5f * (1.0f + erf(x * INV_SQRT2));
    float16 pdf = exp(-0.5f * x * x) * INV_SQRT_2PI;
    return dy * (cdf + x * pdf);
}

static float16 f_silu(float16 x, float slope) {
    return x / (1.0f + exp(-x));
}
static float16 d_silu(float16 dy, float16 x, float slope) {
    float16 s = 1.0f / (1.0f + exp(-x));
    return dy * s * (1.0f + x * (1.0f - s));
}

#define ACTIVATION(name)                                                                           \
    kernel void name##_forward(global float *y, ulong y_first, global const float *x,              \
                               ulong x_first, uint count, float slope) {                           \
        uint i = (uint)get_global_id(0) * 16;                                                      \
        uint left = count - i;                                                                     \
        if (i < count) {                                                                           \
            float16 from = load16(x + x_first + i, left, 0.0f);                                    \
            store16(f_##name(from, slope), y + y_first + i, left);                                 \
        }                                                                                          \
    }                                                                                              \
    kernel void name##_backward(global float *dx, ulong dx_first, global const float *dy,          \
                                ulong dy_first, global const float *ref, ulong ref_first,          \
                                uint count, uint add, float slope) {                               \
        uint i = (uint)get_global_id(0) * 16;                                                      \
        uint left = count - i;                                                                     \
        if (i < count) {                                                                           \
            float16 d = load16(dy + dy_first + i, left, 0.0f);                                     \
            float16 at = load16(ref + ref_first + i, left, 0.0f);                                  \
            put16(d_##name(d, at, slope), dx + dx_first + i, left, add);                           \
        }                                                                                          \
    }

ACTIVATION(relu)
ACTIVATION(leaky_relu)
ACTIVATION(tanh)
ACTIVATION(sigmoid)
ACTIVATION(gelu)
ACTIVATION(silu)
