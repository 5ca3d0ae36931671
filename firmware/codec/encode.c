#include "codec/encode.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

static const uint32_t MAGNITUDE = 0x7fffffff, INFINITE = 0x7f800000, NOT_A_NUMBER = 0x7fc00000,
                      TINY = 0x0d800000; /* 2^-100 */

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To nearest, ties to even. Values below 2^-14 are multiples of 2^-24. */
static uint16_t to_f16(uint32_t bits) {
    const uint32_t magnitude = bits & MAGNITUDE;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude >= 0x477ff000) { /* 65520 */
        return sign | (magnitude > INFINITE ? 0x7e00 : 0x7c00);
    }
    if (magnitude >= 0x38800000) { /* 2^-14 */
        return sign | (uint16_t)((magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13);
    }
    if (magnitude <= 0x33000000) { /* 2^-25 */
        return sign;
    }
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t digits = (magnitude & 0x7fffff) | 0x800000;
    return sign | (uint16_t)((digits + (1u << (shift - 1)) - 1 + ((digits >> shift) & 1)) >> shift);
}

static uint16_t to_bf16(uint32_t bits) {
    return (uint16_t)((bits & MAGNITUDE) > INFINITE ? (bits >> 16) | 0x40
                                                    : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static float scale_of(const float *from, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t own = bits_of(from[i]) & MAGNITUDE;
        largest = own > largest ? own : largest;
    }
    if (largest >= INFINITE) {
        return float_of(NOT_A_NUMBER);
    }
    return largest < TINY ? 0 : float_of(largest) * 0x1.020408p-7f; /* 1 / 127 */
}

static void encode_int8(const float *from, size_t count, uint8_t *to) {
    const size_t blocks = (count + RP_CODEC_BLOCK - 1) / RP_CODEC_BLOCK;
    uint8_t *level = to + blocks * sizeof(float);
    for (size_t first = 0; first < count; first += RP_CODEC_BLOCK, to += sizeof(float)) {
        const size_t rest = count - first;
        const size_t own = rest < RP_CODEC_BLOCK ? rest : RP_CODEC_BLOCK;
        const float scale = scale_of(from + first, own);
        memcpy(to, &scale, sizeof scale);
        for (size_t i = first; i < first + own; i++) {
            /* a quotient of two floats is exact enough in double: it is a tie only if the true one
             * is */
            const double exact = scale > 0 ? (double)from[i] / (double)scale : 0;
            level[i] = (uint8_t)(int8_t)nearbyint(exact);
        }
    }
}

/* ---- int4 ---------------------------------------------------------------------------------- */

typedef struct {
    uint32_t base, step; /* bf16 */
} tile_head;

static const tile_head NO_TILE = {0x7fc0, 0x7fc0};

static float of_bf16(uint32_t bits) {
    return float_of(bits << 16);
}

static float without_tiny(float x) {
    return (bits_of(x) & MAGNITUDE) < TINY ? 0 : x;
}

/* The largest bf16 <= x; 0 if |x| < 2^-100. */
static uint32_t bf16_below(float x) {
    const uint32_t bits = bits_of(x);
    const uint32_t magnitude = bits & MAGNITUDE;
    const uint32_t below = bits == magnitude ? bits >> 16 : 0x8000 | (magnitude + 0xffff) >> 16;
    return magnitude < TINY ? 0 : below;
}

static tile_head head_of(const float *v, size_t count) {
    float least = v[0];
    float most = v[0];
    for (size_t i = 1; i < count; i++) {
        least = v[i] < least ? v[i] : least;
        most = v[i] > most ? v[i] : most;
    }
    tile_head head = {bf16_below(least), 0};
    const float range = most - of_bf16(head.base);
    if (!(range < float_of(INFINITE))) {
        return NO_TILE;
    }
    if (range >= float_of(TINY)) {
        head.step = (bits_of(range * 0x1.111112p-4f) + 0xffff) >> 16; /* 1 / 15, rounded up */
    }
    return head;
}

static void hadamard(float *v) {
    for (size_t half = 1; half < RP_CODEC_TILE; half *= 2) {
        for (size_t i = 0; i < RP_CODEC_TILE; i++) {
            if (!(i & half)) {
                const float sum = v[i] + v[i + half];
                v[i + half] = v[i] - v[i + half];
                v[i] = sum;
            }
        }
    }
    for (size_t i = 0; i < RP_CODEC_TILE; i++) {
        v[i] *= 0.125f;
    }
}

static uint8_t level_of(float x, tile_head head) {
    const float step = of_bf16(head.step);
    const double exact = step > 0 ? (double)(x - of_bf16(head.base)) / (double)step : 0;
    const double level = nearbyint(exact);
    return (uint8_t)(level < 0 ? 0 : level > 15 ? 15 : level);
}

/* flag: 0, or 128 + the position that was swapped with the first. */
static void write_tile(const float *v, size_t count, tile_head head, uint32_t flag, uint8_t *to,
                       uint8_t *levels) {
    to[0] = (uint8_t)head.base;
    to[1] = (uint8_t)(head.base >> 8);
    to[2] = (uint8_t)head.step;
    to[3] = (uint8_t)(head.step >> 8);
    to[4] = (uint8_t)flag;
    for (size_t i = 0; i < count; i += 2) {
        const uint32_t second = i + 1 < count ? level_of(v[i + 1], head) : 0;
        levels[i / 2] = (uint8_t)(level_of(v[i], head) | second << 4);
    }
}

static void encode_tile(const float *from, size_t count, uint8_t *to, uint8_t *levels) {
    float plain[RP_CODEC_TILE] = {0};
    float turned[RP_CODEC_TILE];
    uint32_t largest = 0;
    uint32_t place = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t own = bits_of(from[i]) & MAGNITUDE;
        plain[i] = without_tiny(from[i]);
        place = own > largest ? i : place;
        largest = own > largest ? own : largest;
    }
    const bool finite = largest < INFINITE;
    const tile_head head = finite ? head_of(plain, count) : NO_TILE;
    if (finite && count == RP_CODEC_TILE) {
        memcpy(turned, plain, sizeof turned);
        turned[place] = plain[0];
        turned[0] = plain[place];
        hadamard(turned);
        const tile_head other = head_of(turned, count);
        if (other.step < head.step) {
            write_tile(turned, count, other, 128 + place, to, levels);
            return;
        }
    }
    write_tile(plain, count, head, 0, to, levels);
}

static void encode_int4(const float *from, size_t count, uint8_t *to) {
    const size_t tiles = (count + RP_CODEC_TILE - 1) / RP_CODEC_TILE;
    uint8_t *levels = to + tiles * RP_CODEC_TILE_HEAD;
    for (size_t t = 0; t < tiles; t++) {
        const size_t rest = count - t * RP_CODEC_TILE;
        encode_tile(from + t * RP_CODEC_TILE, rest < RP_CODEC_TILE ? rest : RP_CODEC_TILE,
                    to + t * RP_CODEC_TILE_HEAD, levels + t * RP_CODEC_TILE / 2);
    }
}

/* ---- a sample -------------------------------------------------------------------------------- */

static void encode_16(rp_codec codec, const float *from, size_t count, uint8_t *to) {
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = bits_of(from[i]);
        const uint16_t out = codec == RP_CODEC_F16 ? to_f16(bits) : to_bf16(bits);
        memcpy(to + i * sizeof out, &out, sizeof out);
    }
}

/* Exact for k / 255, because its error is less than 2^-24. */
static void encode_uint8(const float *from, size_t count, uint8_t *to) {
    for (size_t i = 0; i < count; i++) {
        RP_ASSERT(from[i] >= 0 && from[i] <= 1);
        to[i] = (uint8_t)(from[i] * 255.0f + 0.5f);
    }
}

void rp_codec_encode_host(rp_codec codec, const float *from, size_t samples, size_t count,
                          uint8_t *to) {
    const size_t bytes = rp_codec_bytes(codec, count);
    for (size_t s = 0; s < samples; s++, from += count, to += bytes) {
        switch (codec) {
        case RP_CODEC_F16:
        case RP_CODEC_BF16:
            encode_16(codec, from, count, to);
            break;
        case RP_CODEC_INT8:
            encode_int8(from, count, to);
            break;
        case RP_CODEC_INT4:
            encode_int4(from, count, to);
            break;
        case RP_CODEC_UINT8:
            encode_uint8(from, count, to);
            break;
        default:
            RP_ASSERT(codec == RP_CODEC_F32);
            memcpy(to, from, bytes);
        }
    }
}
