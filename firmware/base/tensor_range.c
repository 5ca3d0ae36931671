#include "base/tensor_range.h"

#include <math.h>
#include <string.h>

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

/* Value `i`; bytes may lie anywhere. */
static double value_at(const uint8_t *bytes, rp_st_type type, uint64_t i) {
    float f32;
    double f64;
    int32_t i32;
    int64_t i64;
    uint16_t u16;
    uint32_t u32;
    switch (type) {
    case RP_ST_F32:
        memcpy(&f32, bytes + 4 * i, 4);
        return (double)f32;
    case RP_ST_I32:
        memcpy(&i32, bytes + 4 * i, 4);
        return i32;
    case RP_ST_I64:
        memcpy(&i64, bytes + 8 * i, 8);
        return (double)i64;
    case RP_ST_U8:
        return bytes[i];
    case RP_ST_F64:
        memcpy(&f64, bytes + 8 * i, 8);
        return f64;
    case RP_ST_F16:
        memcpy(&u16, bytes + 2 * i, 2);
        return half_value(u16);
    case RP_ST_BF16:
        memcpy(&u16, bytes + 2 * i, 2);
        u32 = (uint32_t)u16 << 16;
        memcpy(&f32, &u32, 4);
        return (double)f32;
    }
    return (double)NAN;
}

rp_tensor_range rp_tensor_range_of(const rp_st_reader *reader, const rp_st_entry *entry) {
    rp_tensor_range range = {.count = 1, .min = (double)NAN, .max = (double)NAN};
    const uint8_t *bytes = rp_st_data(reader, entry);
    double sum = 0;
    for (uint32_t d = 0; d < entry->dims; d++) {
        range.count *= entry->dim[d];
    }
    for (uint64_t i = 0; i < range.count; i++) {
        const double value = value_at(bytes, entry->type, i);
        if (isnan(value)) {
            range.nan++;
        } else if (isinf(value)) {
            range.infinite++;
        } else {
            range.min = range.min <= value ? range.min : value;
            range.max = range.max >= value ? range.max : value;
            sum += value;
        }
    }
    const uint64_t finite = range.count - range.nan - range.infinite;
    range.mean = finite ? sum / (double)finite : (double)NAN;
    return range;
}

const char *rp_st_type_name(rp_st_type type) {
    static const char *const names[] = {"F32", "I32", "I64", "U8", "F64", "F16", "BF16"};
    return names[type];
}
