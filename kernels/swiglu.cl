/* y = silu(gate) up, silu(x) = x / (1 + exp(-x)). Element 0 of each tensor is at `<name>_first` of
 * its buffer. Grid: one item for each 16 elements. */
#include "vec16.clh"

kernel void swiglu_forward(global float *y, ulong y_first, global const float *gate,
                           ulong gate_first, global const float *up, ulong up_first, uint count) {
    uint i = (uint)get_global_id(0) * 16;
    uint left = count - i;
    if (i < count) {
        float16 g = load16(gate + gate_first + i, left, 0.0f);
        float16 u = load16(up + up_first + i, left, 0.0f);
        store16(g / (1.0f + exp(-g)) * u, y + y_first + i, left);
    }
}

/* dgate (+)= dy up silu'(gate) if `add_gate`, dup (+)= dy silu(gate) if `add_up`; each may be NULL
 * and each may be dy. */
kernel void swiglu_backward(global float *dgate, ulong dgate_first, global float *dup,
                            ulong dup_first, global const float *dy, ulong dy_first,
                            global const float *gate, ulong gate_first, global const float *up,
                            ulong up_first, uint count, uint add_gate, uint add_up) {
    uint i = (uint)get_global_id(0) * 16;
    uint left = count - i;
    if (i >= count) {
        return;
    }
    float16 d = load16(dy + dy_first + i, left, 0.0f);
    float16 g = load16(gate + gate_first + i, left, 0.0f);
    float16 u = load16(up + up_first + i, left, 0.0f);
    float16 s = 1.0f / (1.0f + exp(-g));
    if (dgate) {
        put16(d * u * (s * (1.0f + g * (1.0f - s))), dgate + dgate_first + i, left, add_gate);
    }
    if (dup) {
        put16(d * (g * s), dup + dup_first + i, left, add_up);
    }
}
