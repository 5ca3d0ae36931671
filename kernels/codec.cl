/* Encoding boundary tensors from f32 and decoding them (firmware/codec). Bits are moved as
 * integers, and rounded quotients are corrected, so every device gives the same bytes, however it
 * treats subnormal numbers and divisions. */

#define BLOCK 128 /* elements with a common scale: RP_CODEC_BLOCK */
#define NOT_A_NUMBER 0x7fc00000u
#define TILE 64          /* elements with a common base and step: RP_CODEC_TILE */
#define TILE_HEAD 5      /* RP_CODEC_TILE_HEAD */
#define TINY 0x0d800000u /* 2^-100 */
#define KEPT_BLOCK 256   /* elements of which a share is kept: RP_CODEC_KEPT_BLOCK */
#define KEPT_BYTES 3     /* RP_CODEC_KEPT_BYTES */
#define LOSS_ITEMS 64    /* RP_CODEC_LOSS_ITEMS */

#define U uint
#define CONVERT_FLOAT convert_float
#define AS_U as_uint
#include "half.clh"

/* The group of elements for a work item: `own` elements of a sample from `first` on; 0: none. */
typedef struct {
    uint sample, number, first, own;
} group;

static group group_of(uint size, uint count, uint samples) {
    uint groups = (count + size - 1) / size;
    uint sample = (uint)get_global_id(0) / groups;
    uint number = (uint)get_global_id(0) % groups;
    group own = {sample, number, number * size, 0};
    own.own = sample < samples ? min(count - own.first, size) : 0;
    return own;
}

/* ---- f16 and bf16. Grid: one item for each element ------------------------------------------- */

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

kernel void encode_bf16(global ushort *to, global const uint *from, ulong first, uint count) {
    uint i = (uint)get_global_id(0);
    if (i < count) {
        to[i] = (ushort)to_bf16(from[first + i]);
    }
}

kernel void decode_bf16(global uint *to, ulong first, global const ushort *from, uint count) {
    uint i = (uint)get_global_id(0);
    if (i < count) {
        to[first + i] = from_bf16(from[i]);
    }
}

/* ---- int8: a sample is the scales of its blocks, as bytes, then its elements ----------------- */

/* The scale of a block from the bits of its largest magnitude. NaN if an element is not finite; 0
 * below 2^-100, so that no scale is subnormal. */
static float scale_of(uint largest) {
    float scale = largest < TINY ? 0.0f : as_float(largest) * 0.00787401574803149606f;
    return largest >= INFINITE ? as_float(NOT_A_NUMBER) : scale;
}

/* x / scale to nearest, ties to even. The device's quotient may be off by a few units; it is
 * corrected with a remainder that is exact near ties. */
static char in_levels(float x, float scale) {
    float level = rint(x / scale);
    float rest = fma(-level, scale, x);
    float middle = 0.5f * scale;
    int odd = (int)level & 1;
    level += rest > middle || (rest == middle && odd) ? 1.0f : 0.0f;
    level -= rest < -middle || (rest == -middle && odd) ? 1.0f : 0.0f;
    return (char)level;
}

/* Grid: one item for each block. count: elements of a sample. */
kernel void encode_int8(global uchar *to, global const uint *from, ulong first, uint count,
                        uint samples) {
    group block = group_of(BLOCK, count, samples);
    uint blocks = (count + BLOCK - 1) / BLOCK;
    if (block.own == 0) {
        return;
    }
    global uchar *scales = to + (ulong)block.sample * (count + 4 * blocks);
    global char *levels = (global char *)(scales + 4 * blocks) + block.first;
    uint largest = 0;
    from += first + (ulong)block.sample * count + block.first;
    for (uint i = 0; i < block.own; i++) {
        largest = max(largest, from[i] & MAGNITUDE);
    }
    float scale = scale_of(largest);
    vstore4(as_uchar4(scale), block.number, scales);
    for (uint i = 0; i < block.own; i++) {
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

/* ---- int4: a sample is the heads of its tiles, then its elements, two in a byte -----------------
 * A head is a base and a step (bf16), and a byte: 0, or 128 + the position of the largest element
 * if the tile was multiplied by a Hadamard matrix. Values below 2^-100 become 0 before they are
 * added, so no sum is subnormal and sums are equal on every device. */

static float of_bf16(uint bits) {
    return as_float(bits << 16);
}

/* The largest bf16 <= x; 0 if |x| < 2^-100. */
static uint bf16_below(float x) {
    uint bits = as_uint(x);
    uint magnitude = bits & MAGNITUDE;
    uint below = bits == magnitude ? bits >> 16 : 0x8000u | (magnitude + 0xffffu) >> 16;
    return magnitude < TINY ? 0 : below;
}

/* Base and step; both NaN if the tile's range is infinite. */
static uint2 head_of(const float *v, uint count) {
    float least = v[0];
    float most = v[0];
    for (uint i = 1; i < count; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    uint base = bf16_below(least);
    float range = most - of_bf16(base);
    uint step = (as_uint(range * 0.0666666701436f) + 0xffffu) >> 16; /* 1 / 15, rounded up */
    if (!(range < INFINITY)) {
        return (uint2)(NOT_A_NUMBER >> 16);
    }
    return (uint2)(base, range >= as_float(TINY) ? step : 0);
}

/* Multiplies by a Hadamard matrix over the square root of its order, which is its own inverse. */
static void hadamard(float *v) {
    for (uint half_ = 1; half_ < TILE; half_ *= 2) {
        for (uint i = 0; i < TILE; i++) {
            if (!(i & half_)) {
                float sum = v[i] + v[i + half_];
                v[i + half_] = v[i] - v[i + half_];
                v[i] = sum;
            }
        }
    }
    for (uint i = 0; i < TILE; i++) {
        v[i] *= 0.125f;
    }
}

static uint level_of(float x, uint2 head) {
    float step = of_bf16(head.y);
    return step > 0.0f ? (uint)clamp((int)in_levels(x - of_bf16(head.x), step), 0, 15) : 0;
}

static void write_tile(const float *v, uint count, uint2 head, uint flag, global uchar *to,
                       global uchar *levels) {
    to[0] = (uchar)head.x;
    to[1] = (uchar)(head.x >> 8);
    to[2] = (uchar)head.y;
    to[3] = (uchar)(head.y >> 8);
    to[4] = (uchar)flag;
    for (uint i = 0; i < count; i += 2) {
        uint second = i + 1 < count ? level_of(v[i + 1], head) : 0;
        levels[i / 2] = (uchar)(level_of(v[i], head) | second << 4);
    }
}

/* Offsets of a tile's head and elements. */
static ulong head_at(group tile, uint count) {
    uint tiles = (count + TILE - 1) / TILE;
    uint bytes = TILE_HEAD * tiles + (count + 1) / 2;
    return (ulong)tile.sample * bytes + TILE_HEAD * tile.number;
}

static ulong levels_at(group tile, uint count) {
    uint tiles = (count + TILE - 1) / TILE;
    return head_at(tile, count) + TILE_HEAD * (tiles - tile.number) + tile.first / 2;
}

/* Grid: one item for each tile. count: elements of a sample. */
kernel void encode_int4(global uchar *to, global const uint *from, ulong first, uint count,
                        uint samples) {
    group tile = group_of(TILE, count, samples);
    global uchar *levels = to + levels_at(tile, count);
    float plain[TILE];
    float turned[TILE];
    uint largest = 0;
    uint place = 0;
    if (tile.own == 0) {
        return;
    }
    to += head_at(tile, count);
    from += first + (ulong)tile.sample * count + tile.first;
    for (uint i = 0; i < tile.own; i++) {
        uint magnitude = from[i] & MAGNITUDE;
        plain[i] = magnitude < TINY ? 0.0f : as_float(from[i]);
        place = magnitude > largest ? i : place;
        largest = max(largest, magnitude);
    }
    uint2 head = largest < INFINITE ? head_of(plain, tile.own) : (uint2)(NOT_A_NUMBER >> 16);
    if (tile.own == TILE && largest < INFINITE) {
        for (uint i = 0; i < TILE; i++) {
            turned[i] = plain[i];
        }
        turned[place] = plain[0];
        turned[0] = plain[place];
        hadamard(turned);
        uint2 other = head_of(turned, TILE);
        if (other.y < head.y) {
            write_tile(turned, TILE, other, 128 + place, to, levels);
            return;
        }
    }
    write_tile(plain, tile.own, head, 0, to, levels);
}

kernel void decode_int4(global float *to, ulong first, global const uchar *from, uint count,
                        uint samples) {
    group tile = group_of(TILE, count, samples);
    if (tile.own == 0) {
        return;
    }
    global const uchar *levels = from + levels_at(tile, count);
    global const uchar *head = from + head_at(tile, count);
    float base = of_bf16(head[0] | (uint)head[1] << 8);
    float step = of_bf16(head[2] | (uint)head[3] << 8);
    float v[TILE];
    for (uint i = 0; i < tile.own; i++) {
        uint level = levels[i / 2] >> (i % 2 * 4) & 15;
        v[i] = base + (float)level * step; /* the product is exact: 4 digits by at most 8 */
    }
    if (tile.own == TILE && head[4] >= 128) {
        hadamard(v);
        uint place = head[4] & (TILE - 1);
        float swapped = v[0];
        v[0] = v[place];
        v[place] = swapped;
    }
    to += first + (ulong)tile.sample * count + tile.first;
    for (uint i = 0; i < tile.own; i++) {
        to[i] = v[i];
    }
}

/* ---- top-k: a sample is the kept elements of its blocks -----------------------------------------
 * A kept element is its position in the block, a byte, and a bf16. Positions ascend. */

static uint kept_of(uint count, uint per_mille) {
    return (count * per_mille + 999) / 1000;
}

/* Offset of a block's first kept element. */
static ulong kept_at(group block, uint count, uint per_mille) {
    uint of_block = kept_of(KEPT_BLOCK, per_mille);
    uint of_sample = count / KEPT_BLOCK * of_block + kept_of(count % KEPT_BLOCK, per_mille);
    return ((ulong)block.sample * of_sample + block.number * of_block) * KEPT_BYTES;
}

/* The largest magnitude that at least `kept` elements reach. */
static uint least_kept(global const uint *from, uint own, uint kept) {
    uint least = 0;
    for (uint bit = 1u << 30; bit > 0; bit >>= 1) {
        uint reached = 0;
        for (uint i = 0; i < own; i++) {
            reached += (from[i] & MAGNITUDE) >= (least | bit);
        }
        least = reached >= kept ? least | bit : least;
    }
    return least;
}

/* Keeps the largest magnitudes, the first of equal ones; NaN is larger than all numbers. Grid: one
 * item for each block. */
kernel void encode_topk(global uchar *to, global const uint *from, ulong first, uint count,
                        uint samples, uint per_mille) {
    group block = group_of(KEPT_BLOCK, count, samples);
    if (block.own == 0) {
        return;
    }
    from += first + (ulong)block.sample * count + block.first;
    to += kept_at(block, count, per_mille);
    uint kept = kept_of(block.own, per_mille);
    uint least = least_kept(from, block.own, kept);
    uint equal = kept; /* how many elements equal to `least` are kept */
    for (uint i = 0; i < block.own; i++) {
        equal -= (from[i] & MAGNITUDE) > least;
    }
    for (uint i = 0; i < block.own; i++) {
        uint magnitude = from[i] & MAGNITUDE;
        if (magnitude > least || (magnitude == least && equal > 0)) {
            uint value = to_bf16(from[i]);
            equal -= magnitude == least;
            to[0] = (uchar)i;
            to[1] = (uchar)value;
            to[2] = (uchar)(value >> 8);
            to += KEPT_BYTES;
        }
    }
}

/* A block decodes as NaN if its positions do not ascend or are outside. Grid: one item for each
 * block. */
kernel void decode_topk(global uint *to, ulong first, global const uchar *from, uint count,
                        uint samples, uint per_mille) {
    group block = group_of(KEPT_BLOCK, count, samples);
    if (block.own == 0) {
        return;
    }
    from += kept_at(block, count, per_mille);
    to += first + (ulong)block.sample * count + block.first;
    uint kept = kept_of(block.own, per_mille);
    uint next = 0;
    bool good = true;
    for (uint i = 0; i < kept; i++) {
        uint place = from[i * KEPT_BYTES];
        good = good && place >= next && place < block.own;
        next = place + 1;
    }
    for (uint i = 0; i < block.own; i++) {
        to[i] = good ? 0 : NOT_A_NUMBER;
    }
    for (uint i = 0; good && i < kept; i++, from += KEPT_BYTES) {
        to[from[0]] = (uint)from[1] << 16 | (uint)from[2] << 24;
    }
}

/* ---- losses of a codec ----------------------------------------------------------------------- */

/* Each item has two sums with index `place` in `sums`: squares of the errors of `back`, and squares
 * of `from`. Elements that are not finite, or have become NaN next to one that is not, are ignored;
 * one that has become infinite counts as lost. Grid: LOSS_ITEMS. */
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
