/* The types of the format: their sizes, and reading values of the plain numeric types. */
#include "base/safetensors_own.h"

#include <math.h>
#include <string.h>

/* Elements smaller than a byte are packed without gaps. */
static const struct {
    const char *name;
    uint32_t bits;
} types[RP_ST_TYPES] = {
    [RP_ST_F32] = {"F32", 32},        [RP_ST_I32] = {"I32", 32},
    [RP_ST_I64] = {"I64", 64},        [RP_ST_U8] = {"U8", 8},
    [RP_ST_F64] = {"F64", 64},        [RP_ST_F16] = {"F16", 16},
    [RP_ST_BF16] = {"BF16", 16},      [RP_ST_BOOL] = {"BOOL", 8},
    [RP_ST_I8] = {"I8", 8},           [RP_ST_I16] = {"I16", 16},
    [RP_ST_U16] = {"U16", 16},        [RP_ST_U32] = {"U32", 32},
    [RP_ST_U64] = {"U64", 64},        [RP_ST_C64] = {"C64", 64},
    [RP_ST_F8_E5M2] = {"F8_E5M2", 8}, [RP_ST_F8_E4M3] = {"F8_E4M3", 8},
    [RP_ST_F8_E8M0] = {"F8_E8M0", 8}, [RP_ST_F6_E2M3] = {"F6_E2M3", 6},
    [RP_ST_F6_E3M2] = {"F6_E3M2", 6}, [RP_ST_F4] = {"F4", 4},
};

const char *rp_st_type_name(rp_st_type type) {
    return types[type].name;
}

bool rp_st_type_find(const char *name, rp_st_type *out) {
    for (uint32_t i = 0; i < RP_ST_TYPES; i++) {
        if (strcmp(name, types[i].name) == 0) {
            *out = (rp_st_type)i;
            return true;
        }
    }
    return false;
}

bool rp_st_count_of(const rp_st_entry *entry, uint64_t *out) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < entry->dims; i++) {
        if (__builtin_mul_overflow(count, entry->dim[i], &count)) {
            return false;
        }
    }
    *out = count;
    return true;
}

bool rp_st_size_of(const rp_st_entry *entry, uint64_t *out) {
    const uint32_t bits = types[entry->type].bits;
    uint64_t size;
    if (!rp_st_count_of(entry, &size) ||
        __builtin_mul_overflow(size, bits < 8 ? bits : bits / 8, &size)) {
        return false;
    }
    *out = bits < 8 ? size / 8 : size;
    return bits >= 8 || size % 8 == 0;
}

bool rp_st_is_float(rp_st_type type) {
    return type == RP_ST_F32 || type == RP_ST_F64 || type == RP_ST_F16 || type == RP_ST_BF16;
}

bool rp_st_has_values(rp_st_type type) {
    return type <= RP_ST_U64;
}

/* source  IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits */
static double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31) {
        return fraction > 0 ? (double)NAN : sign * HUGE_VAL;
    }
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double float_value(rp_st_type type, uint64_t bits) {
    const uint32_t low = type == RP_ST_BF16 ? (uint32_t)bits << 16 : (uint32_t)bits;
    float f32;
    double f64;
    if (type == RP_ST_F64) {
        memcpy(&f64, &bits, sizeof f64);
        return f64;
    }
    if (type == RP_ST_F16) {
        return half_value((uint16_t)bits);
    }
    memcpy(&f32, &low, sizeof f32);
    return (double)f32;
}

double rp_st_value(rp_st_type type, const uint8_t *bytes, uint64_t i) {
    const uint32_t size = types[type].bits / 8;
    uint64_t bits = 0;
    for (uint32_t b = size; b-- > 0;) { /* the format is little-endian */
        bits = bits << 8 | bytes[size * i + b];
    }
    if (rp_st_is_float(type)) {
        return float_value(type, bits);
    }
    switch (type) {
    case RP_ST_I8:
        return (int8_t)bits;
    case RP_ST_I16:
        return (int16_t)bits;
    case RP_ST_I32:
        return (int32_t)bits;
    case RP_ST_I64:
        return (double)(int64_t)bits;
    case RP_ST_U8:
    case RP_ST_U16:
    case RP_ST_U32:
    case RP_ST_U64:
        return (double)bits;
    default:
        return (double)NAN;
    }
}
