#include "codec/encode.h"

#include <math.h>
#include <string.h>

static const uint32_t MAGNITUDE = 0x7fffffff, INFINITE = 0x7f800000, NOT_A_NUMBER = 0x7fc00000;

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

/* To nearest, ties to even. Below 2^-14 in units of 2^-24. */
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
    return largest < 0x0d800000 ? 0 : float_of(largest) * 0x1.020408p-7f; /* 2^-100; 1 / 127 */
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
            /* of 24 digits by 24 the quotient in 53 is no tie unless it is one */
            const double exact = scale > 0 ? (double)from[i] / (double)scale : 0;
            level[i] = (uint8_t)(int8_t)nearbyint(exact);
        }
    }
}

static void encode_16(rp_codec codec, const float *from, size_t count, uint8_t *to) {
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = bits_of(from[i]);
        const uint16_t out = codec == RP_CODEC_F16 ? to_f16(bits) : to_bf16(bits);
        memcpy(to + i * sizeof out, &out, sizeof out);
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
        default:
            memcpy(to, from, bytes);
        }
    }
}
