/* Optimiser steps over a flat parameter block, and predictions of the weights `s` steps later.
 * PyTorch's formulas (torch.optim, not "foreach" or "capturable" forms); per-step constants come
 * from the host, where they are computed in double.
 *
 * Grid: one work-item for each 16 elements of `count`. `scale`: gradient clipping, 1 = none. */
#include "vec16.clh"

/* Two kernels with the same formula must compute the same bits (`elastic` and its halves), so a
 * compiler may not combine a product and a sum into one rounding. These kernels wait for memory, so
 * this costs no time. */
#pragma OPENCL FP_CONTRACT OFF

#define AT(p) load16((p) + i, left, 0.0f)
#define PUT(p, v) store16((v), (p) + i, left)
#define BEGIN                                                                                      \
    uint i = (uint)get_global_id(0) * 16;                                                          \
    if (i >= count) {                                                                              \
        return;                                                                                    \
    }                                                                                              \
    uint left = count - i;

/* buf = first ? g : mu * buf + keep * g, keep = 1 - dampening; nesterov applies g + mu * buf. buf
 * NULL: no momentum. direction, if not NULL, is set to what was applied; for `released` to mu * buf
 * + keep * g, where g is without scale and decay. */
kernel void sgd(global float *w, global const float *g, global float *buf, global float *direction,
                uint count, float scale, float lr, float mu, float keep, float decay, uint nesterov,
                uint released, uint first) {
    BEGIN
    float16 weight = AT(w);
    float16 raw = AT(g);
    float16 twice = keep * raw;
    float16 d = raw * scale + decay * weight;
    if (buf) {
        float16 m = first ? d : mu * AT(buf) + keep * d;
        PUT(buf, m);
        twice += mu * m;
        d = nesterov ? d + mu * m : m;
    }
    if (direction) {
        PUT(direction, released ? twice : d);
    }
    PUT(w, weight - lr * d);
}

/* m = b1 m + a1 g, v = b2 v + a2 g^2 with a = 1 - b;
 * w = w * shrink - step * m / (sqrt(v) / root + eps), where step = lr / (1 - b1^t),
 * root = sqrt(1 - b2^t); decay: L2 (adam), shrink = 1 - lr * decay (adamw). */
kernel void adam(global float *w, global const float *g, global float *m, global float *v,
                 uint count, float scale, float step, float b1, float a1, float b2, float a2,
                 float root, float eps, float decay, float shrink) {
    BEGIN
    float16 weight = AT(w);
    float16 d = AT(g) * scale + decay * weight;
    float16 mean = b1 * AT(m) + a1 * d;
    float16 square = b2 * AT(v) + a2 * d * d;
    PUT(m, mean);
    PUT(v, square);
    PUT(w, weight * shrink - step * (mean / (sqrt(square) / root + eps)));
}

/* square = alpha square + keep g^2, keep = 1 - alpha; centered: mean = alpha mean + keep g, and
 * square - mean^2 under the root; d = g / (sqrt(..) + eps); buf = mu buf + d is applied. mean NULL:
 * not centered. buf NULL: no momentum. */
kernel void rmsprop(global float *w, global const float *g, global float *square, global float *buf,
                    global float *mean, uint count, float scale, float lr, float alpha, float keep,
                    float eps, float mu, float decay) {
    BEGIN
    float16 weight = AT(w);
    float16 d = AT(g) * scale + decay * weight;
    float16 second = alpha * AT(square) + keep * d * d;
    PUT(square, second);
    if (mean) {
        float16 first = alpha * AT(mean) + keep * d;
        PUT(mean, first);
        second -= first * first;
    }
    d = d / (sqrt(second) + eps);
    if (buf) {
        d = mu * AT(buf) + d;
        PUT(buf, d);
    }
    PUT(w, weight - lr * d);
}

/* g += mu (w - start) - drift. start NULL: mu is 0; drift NULL: none. */
kernel void anchor(global float *g, global const float *w, global const float *start,
                   global const float *drift, uint count, float mu) {
    BEGIN
    float16 d = AT(g);
    if (start) {
        d += mu * (AT(w) - AT(start));
    }
    if (drift) {
        d -= AT(drift);
    }
    PUT(g, d);
}

/* out = w - ahead * direction, ahead = lr * s. */
kernel void predict_direction(global float *out, global const float *w,
                              global const float *direction, uint count, float ahead) {
    BEGIN
    PUT(out, AT(w) - ahead * AT(direction));
}

/* out = w * shrink - ahead * m / (sqrt(v) / root + eps), ahead = s * lr / (1 - b1^t). */
kernel void predict_adam(global float *out, global const float *w, global const float *m,
                         global const float *v, uint count, float ahead, float root, float eps,
                         float shrink) {
    BEGIN
    PUT(out, AT(w) * shrink - ahead * (AT(m) / (sqrt(AT(v)) / root + eps)));
}

/* On entry `out` is w moved by the full prediction; on return each tensor is moved by its share: 0
 * gives w bit for bit, whatever out was, and 1 gives out. spans[2 t] = first element of tensor t,
 * ascending, a multiple of 16. */
kernel void in_shares(global float *out, global const float *w, global const uint *spans,
                      global const float *shares, uint count, uint tensors) {
    BEGIN
    uint t = 0;
    for (uint rest = tensors; rest > 1;) { /* find the last tensor that begins at i or before it */
        uint half_way = rest / 2;
        t += spans[2 * (t + half_way)] <= i ? half_way : 0;
        rest -= half_way;
    }
    float share = shares[t];
    if (share < 1.0f) {
        float16 weight = AT(w);
        PUT(out, share > 0.0f ? weight + share * (AT(out) - weight) : weight);
    }
}

/* ---- averaging (METHODS 8, 9) ---- */

/* e = alpha (x - c); x -= e; c += e. */
kernel void elastic(global float *x, global float *c, uint count, float alpha) {
    BEGIN
    float16 weight = AT(x);
    float16 centre = AT(c);
    float16 e = alpha * (weight - centre);
    PUT(x, weight - e);
    PUT(c, centre + e);
}

/* elastic in two halves around a local step: e = alpha (x - c), c += e; later x -= e. */
kernel void elastic_pull(global float *e, global const float *x, global float *c, uint count,
                         float alpha) {
    BEGIN
    float16 centre = AT(c);
    float16 pull = alpha * (AT(x) - centre);
    PUT(e, pull);
    PUT(c, centre + pull);
}

/* mean += share (x - mean). Of equal models it is that model, bit for bit. */
kernel void towards(global float *mean, global const float *x, uint count, float share) {
    BEGIN
    float16 old = AT(mean);
    PUT(mean, old + share * (AT(x) - old));
}

/* x is the weights after a local step, `before` before it: ref += share (x - before), x = (1 - a) x
 * + a ref_old. */
kernel void reference(global float *x, global float *ref, global const float *before, uint count,
                      float a, float share) {
    BEGIN
    float16 weight = AT(x);
    float16 old = AT(ref);
    PUT(ref, old + share * (weight - AT(before)));
    PUT(x, (1.0f - a) * weight + a * old);
}
