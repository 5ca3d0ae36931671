/* y = f(a, b) or f(a, b, c) element by element, with broadcast operands; the loop is that of
 * axes.clh, over the elements of y. FORWARD and BACKWARD name the functions, OPERANDS is 2 or 3,
 * and with IDS the first operand is token ids. Element 0 of each tensor is at `<name>_first` of its
 * buffer.
 *
 *   float16 f_<kind>(float16 a, float16 b, float16 c)                          y
 *   float16 g_<kind>(float16 dy, float16 a, float16 b, float16 c, uint which)
 *       the gradient of an operand
 *
 * A NaN of an operand whose value is used stays a NaN, except in kinds that compare. */
#include "axes.clh"

#if IDS
#define FIRST int
#define LOAD_FIRST load_ids
#else
#define FIRST float
#define LOAD_FIRST load_apart
#endif

/* 1 where the condition holds. */
static float16 truth(int16 condition) {
    return select((float16)0.0f, (float16)1.0f, condition);
}

/* dy for the operand that is larger, half of it if both are equal. */
static float16 share(float16 dy, float16 own, float16 other) {
    float16 d = select(dy, 0.5f * dy, own == other);
    return select(d, (float16)0.0f, own < other);
}

static float16 f_add(float16 a, float16 b, float16 c) {
    return a + b;
}
static float16 f_sub(float16 a, float16 b, float16 c) {
    return a - b;
}
static float16 f_mul(float16 a, float16 b, float16 c) {
    return a * b;
}
static float16 g_mul(float16 dy, float16 a, float16 b, float16 c, uint which) {
    return dy * (which == 0 ? b : a);
}
static float16 f_div(float16 a, float16 b, float16 c) {
    return a / b;
}
static float16 g_div(float16 dy, float16 a, float16 b, float16 c, uint which) {
    return which == 0 ? dy / b : -dy * (a / b) / b;
}
static float16 f_max(float16 a, float16 b, float16 c) {
    return select(b, a, a > b || isnan(a));
}
static float16 g_max(float16 dy, float16 a, float16 b, float16 c, uint which) {
    return which == 0 ? share(dy, a, b) : share(dy, b, a);
}
static float16 f_min(float16 a, float16 b, float16 c) {
    return select(b, a, a < b || isnan(a));
}
static float16 g_min(float16 dy, float16 a, float16 b, float16 c, uint which) {
    return which == 0 ? share(dy, -a, -b) : share(dy, -b, -a);
}
static float16 f_where(float16 a, float16 b, float16 c) {
    return select(c, b, a != 0.0f);
}
static float16 g_where(float16 dy, float16 a, float16 b, float16 c, uint which) {
    int16 holds = a != 0.0f;
    return which == 1 ? select((float16)0.0f, dy, holds) : select(dy, (float16)0.0f, holds);
}
static float16 f_equal(float16 a, float16 b, float16 c) {
    return truth(a == b);
}
static float16 f_less(float16 a, float16 b, float16 c) {
    return truth(a < b);
}
static float16 f_greater(float16 a, float16 b, float16 c) {
    return truth(a > b);
}
static float16 f_and(float16 a, float16 b, float16 c) {
    return truth(a != 0.0f && b != 0.0f);
}
static float16 f_or(float16 a, float16 b, float16 c) {
    return truth(a != 0.0f || b != 0.0f);
}

static float16 load_ids(global const int *from, int step, uint left) {
    float lane[16];
    for (uint l = 0; l < 16; l++) {
        lane[l] = l < left ? (float)from[(long)l * step] : 0.0f;
    }
    return vload16(0, lane);
}

#define OPERANDS_ARGS                                                                              \
    global const FIRST *a, ulong a_first, global const float *b, ulong b_first,                    \
        global const float *c, ulong c_first, SIZES, STEPS(u), STEPS(v), STEPS(w)

#define LOAD_OPERANDS                                                                              \
    float16 of_a = LOAD_FIRST(a + a_first + ELEMENT(&p, u), u5, p.left);                           \
    float16 of_b = load_apart(b + b_first + ELEMENT(&p, v), v5, p.left);                           \
    float16 of_c =                                                                                 \
        OPERANDS == 3 ? load_apart(c + c_first + ELEMENT(&p, w), w5, p.left) : (float16)0.0f

/* Grid: the loop. */
kernel void map_forward(global float *y, ulong y_first, OPERANDS_ARGS) {
    place p = PLACE;
    if (p.left > 0) {
        LOAD_OPERANDS;
        store16(FORWARD(of_a, of_b, of_c), y + y_first + p.row * d5 + p.i, p.left);
    }
}

#ifdef BACKWARD
/* The gradient of operand `which`, for each element of y. Grid: the loop. */
kernel void map_backward(global float *dx, ulong dx_first, global const float *dy, ulong dy_first,
                         OPERANDS_ARGS, uint which, uint add) {
    place p = PLACE;
    if (p.left > 0) {
        LOAD_OPERANDS;
        ulong at = p.row * d5 + p.i;
        float16 d = load16(dy + dy_first + at, p.left, 0.0f);
        put16(BACKWARD(d, of_a, of_b, of_c, which), dx + dx_first + at, p.left, add);
    }
}
#endif
