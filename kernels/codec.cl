/* Boundary tensors as they travel (firmware/codec): encoded from f32, and decoded to it. Bits are
 * moved as integers and a quotient is put right behind its rounding, so every device gives the same
 * bytes, whatever it does with subnormal numbers and divisions. */

#define BLOCK 128 /* elements that share a scale: RP_CODEC_BLOCK */
#define MAGNITUDE 0x7fffffffu
#define INFINITE 0x7f800000u
#define NOT_A_NUMBER 0x7fc00000u
#define LOSS_ITEMS 64 /* RP_CODEC_LOSS_ITEMS */

/* ---- f16 and bf16. Grid: one item an element ------------------------------------------------- */

/* To nearest, ties to even, from a magnitude below 2^-14: in units of 2^-24. */
static uint subnormal_f16(uint bits) {
    uint shift = 126 - (bits >> 23);
    uint digits = (bits & 0x7fffffu) | 0x800000u;
    return bits <= 0x33000000u /* 2^-25 */
               ? 0
               : (digits + (1u << (shift - 1)) - 1 + ((digits >> shift) & 1)) >> shift;
}

static uint to_f16(uint bits) {
    uint magnitude = bits & MAGNITUDE;
    uint value = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
    if (magnitude < 0x38800000u) { /* 2^-14 */
        value = subnormal_f16(magnitude);
    }
    if (magnitude >= 0x477ff000u) { /* 65520, from which on it is infinite */
        value = magnitude > INFINITE ? 0x7e00u : 0x7c00u;
    }
    return (bits >> 16 & 0x8000u) | value;
}

static uint from_f16(uint bits) {
    uint magnitude = bits & 0x7fffu;
    uint value = (magnitude << 13) + 0x38000000u;
    if (magnitude < 0x400u) {
        value = as_uint((float)magnitude * 5.9604644775390625e-8f); /* 2^-24 */
    }
    if (magnitude >= 0x7c00u) {
        value = (magnitude << 13) | INFINITE;
    }
    return (bits & 0x8000u) << 16 | value;
}

kernel void encode_f16(global ushort *to, global const uint *from, ulong first, uint count) {
    uint i = (uint)get_global_id(0);
    if (i < count) {
        to[i] = (ushort)to_f16(from[first + i]);
    }
}

kernel void decode_f16(global uint *to, ulong first, global const ushort *from, uint count) {
    uint i = (uint)get_global_id(0);
    if (i < count) {
        to[first + i] = from_f16(from[i]);
    }
}

/* The upper 16 bits, to nearest, ties to even. */
kernel void encode_bf16(global ushort *to, global const uint *from, ulong first, uint count) {
    uint i = (uint)get_global_id(0);
    if (i < count) {
        uint bits = from[first + i];
        uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
        to[i] = (ushort)((bits & MAGNITUDE) > INFINITE ? (bits >> 16) | 0x40u : rounded);
    }
}

kernel void decode_bf16(global uint *to, ulong first, global const ushort *from, uint count) {
    uint i = (uint)get_global_id(0);
    if (i < count) {
        to[first + i] = (uint)from[i] << 16;
    }
}

/* ---- int8 with a scale a block: a sample is its scales, as bytes, and then its elements -------
 */

/* Of a block whose largest magnitude has these bits. With an element that is not finite none is; a
 * block below 2^-100 is zero, so that no scale is subnormal. */
static float scale_of(uint largest) {
    float scale = largest < 0x0d800000u ? 0.0f : as_float(largest) * 0.00787401574803149606f;
    return largest >= INFINITE ? as_float(NOT_A_NUMBER) : scale;
}

/* x / scale to nearest, ties to even: from a quotient that may be off by a few units, by a rest
 * that is exact where it matters. */
static char in_levels(float x, float scale) {
    float level = rint(x / scale);
    float rest = fma(-level, scale, x);
    float middle = 0.5f * scale;
    int odd = (int)level & 1;
    level += rest > middle || (rest == middle && odd) ? 1.0f : 0.0f;
    level -= rest < -middle || (rest == -middle && odd) ? 1.0f : 0.0f;
    return (char)level;
}

/* Grid: one item a block. `count`: elements of a sample. */
kernel void encode_int8(global uchar *to, global const uint *from, ulong first, uint count,
                        uint samples) {
    uint blocks = (count + BLOCK - 1) / BLOCK;
    uint sample = (uint)get_global_id(0) / blocks;
    uint block = (uint)get_global_id(0) % blocks;
    if (sample >= samples) {
        return;
    }
    global uchar *scales = to + (ulong)sample * (count + 4 * blocks);
    global char *levels = (global char *)(scales + 4 * blocks);
    uint end = min((block + 1) * BLOCK, count);
    uint largest = 0;
    from += first + (ulong)sample * count;
    for (uint i = block * BLOCK; i < end; i++) {
        largest = max(largest, from[i] & MAGNITUDE);
    }
    float scale = scale_of(largest);
    vstore4(as_uchar4(scale), block, scales);
    for (uint i = block * BLOCK; i < end; i++) {
        levels[i] = scale > 0.0f ? in_levels(as_float(from[i]), scale) : (char)0;
    }
}

/* Grid: elements of a sample, samples. */
kernel void decode_int8(global float *to, ulong first, global const uchar *from, uint count,
                        uint samples) {
    uint i = (uint)get_global_id(0);
    uint sample = (uint)get_global_id(1);
    uint blocks = (count + BLOCK - 1) / BLOCK;
    if (i >= count || sample >= samples) {
        return;
    }
    global const uchar *scales = from + (ulong)sample * (count + 4 * blocks);
    global const char *levels = (global const char *)(scales + 4 * blocks);
    float scale = as_float(vload4(i / BLOCK, scales));
    to[first + (ulong)sample * count + i] = (float)levels[i] * scale;
}

/* ---- what a codec has lost --------------------------------------------------------------------
 */

/* Each item has two sums in `sums`, behind those of `place` others: the squares of what `back` has
 * lost of `from`, and those of `from`. Elements that were no number, or have become none beside
 * one, do not count; one that has become infinite is lost. Grid: LOSS_ITEMS. */
kernel void add_loss(global float2 *sums, uint place, global const float *back,
                     global const float *from, ulong first, uint count) {
    uint item = (uint)get_global_id(0);
    float lost = 0.0f;
    float all = 0.0f;
    if (item >= LOSS_ITEMS) {
        return;
    }
    for (uint i = item; i < count; i += LOSS_ITEMS) {
        float x = from[first + i];
        float rest = isinf(back[i]) ? x : back[i] - x;
        bool counts = (as_uint(x) & MAGNITUDE) < INFINITE && !isnan(back[i]);
        lost += counts ? rest * rest : 0.0f;
        all += counts ? x * x : 0.0f;
    }
    sums[place * LOSS_ITEMS + item] += (float2)(lost, all);
}
