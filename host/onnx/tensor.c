#include "onnx/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    uint8_t bytes; /* 0: unsupported */
    bool is_float, is_whole;
} type_facts;

static const type_facts types[] = {
    [RP_ONNX_FLOAT] = {"FLOAT", 4, true, false},
    [RP_ONNX_UINT8] = {"UINT8", 1, false, true},
    [RP_ONNX_INT8] = {"INT8", 1, false, true},
    [RP_ONNX_UINT16] = {"UINT16", 2, false, true},
    [RP_ONNX_INT16] = {"INT16", 2, false, true},
    [RP_ONNX_INT32] = {"INT32", 4, false, true},
    [RP_ONNX_INT64] = {"INT64", 8, false, true},
    [RP_ONNX_STRING] = {"STRING", 0, false, false},
    [RP_ONNX_BOOL] = {"BOOL", 1, false, true},
    [RP_ONNX_FLOAT16] = {"FLOAT16", 2, true, false},
    [RP_ONNX_DOUBLE] = {"DOUBLE", 8, true, false},
    [RP_ONNX_UINT32] = {"UINT32", 4, false, true},
    [RP_ONNX_UINT64] = {"UINT64", 8, false, true},
    [RP_ONNX_COMPLEX64] = {"COMPLEX64", 0, false, false},
    [RP_ONNX_COMPLEX128] = {"COMPLEX128", 0, false, false},
    [RP_ONNX_BFLOAT16] = {"BFLOAT16", 2, true, false},
};

static const type_facts *facts_of(int32_t type) {
    static const type_facts unknown = {"of an unknown type", 0, false, false};
    const bool known = type >= RP_ONNX_FLOAT && type <= RP_ONNX_BFLOAT16;
    return known ? &types[type] : &unknown;
}

uint32_t rp_onnx_type_bytes(int32_t type) {
    return facts_of(type)->bytes;
}

const char *rp_onnx_type_name(int32_t type) {
    return facts_of(type)->name;
}

bool rp_onnx_type_is_float(int32_t type) {
    return facts_of(type)->is_float;
}

bool rp_onnx_type_is_whole(int32_t type) {
    return facts_of(type)->is_whole;
}

const char *rp_onnx_shape_text(uint32_t rank, const int64_t *dim, char *text) {
    size_t used = 1;
    text[0] = '[';
    for (uint32_t i = 0; i < rank; i++) {
        const char *comma = i > 0 ? ", " : "";
        used += (size_t)(dim[i] < 0 ? snprintf(text + used, RP_ONNX_SHAPE_TEXT - used, "%s?", comma)
                                    : snprintf(text + used, RP_ONNX_SHAPE_TEXT - used, "%s%" PRId64,
                                               comma, dim[i]));
    }
    (void)snprintf(text + used, RP_ONNX_SHAPE_TEXT - used, "]");
    return text;
}

/* ---- elements -------------------------------------------------------------------------------- */

static uint64_t bits_at(const rp_onnx_tensor *tensor, uint64_t index) {
    const uint32_t bytes = rp_onnx_type_bytes(tensor->type);
    const uint8_t *at = tensor->data + index * bytes;
    uint64_t bits = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        bits |= (uint64_t)at[i] << (8 * i);
    }
    return bits;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* An exact conversion of an IEEE half. */
static float float_of_half(uint32_t half) {
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t exponent = half >> 10 & 0x1f;
    const uint32_t fraction = half & 0x3ff;
    if (exponent == 0x1f) {
        return float_of_bits(sign | 0x7f800000u | fraction << 13);
    }
    if (exponent == 0) { /* zero, or a multiple of 2^-24 */
        const float small = (float)fraction * 0x1p-24f;
        return sign ? -small : small;
    }
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

int64_t rp_onnx_whole_at(const rp_onnx_tensor *tensor, uint64_t index) {
    const uint64_t bits = bits_at(tensor, index);
    switch (tensor->type) {
    case RP_ONNX_INT8:
        return (int8_t)bits;
    case RP_ONNX_INT16:
        return (int16_t)bits;
    case RP_ONNX_INT32:
        return (int32_t)bits;
    case RP_ONNX_BOOL:
        return bits != 0;
    default:
        return (int64_t)bits;
    }
}

float rp_onnx_float_at(const rp_onnx_tensor *tensor, uint64_t index) {
    const uint64_t bits = bits_at(tensor, index);
    switch (tensor->type) {
    case RP_ONNX_FLOAT:
        return float_of_bits((uint32_t)bits);
    case RP_ONNX_DOUBLE:
        return (float)double_of_bits(bits);
    case RP_ONNX_FLOAT16:
        return float_of_half((uint32_t)bits);
    case RP_ONNX_BFLOAT16:
        return float_of_bits((uint32_t)bits << 16);
    default:
        return (float)rp_onnx_whole_at(tensor, index);
    }
}
