/* What a boundary's codec leaves of a tensor: firmware/codec/codec.h and firmware/wire/PROTOCOL.md
 * once more, in plain C on the host, with quotients and roundings in doubles. No byte is made of
 * it: what the other end would decode takes the tensor's place. */
#include <math.h>
#include <string.h>

#include "replay.h"

enum { BLOCK = 128, TILE = 64 };
static const double NEXT_TO_NOTHING = 0x1p-100;

/* ---- numbers --------------------------------------------------------------------------------- */

/* The unit of the last of so many digits behind the first. */
static double unit_of(double x, int digits, int least_exponent) {
    const int exponent = x == 0 || ilogb(x) < least_exponent ? least_exponent : ilogb(x);
    return ldexp(1, exponent - digits);
}

static float as_f16(float x) {
    const double unit = unit_of((double)x, 10, -14);
    const double near = nearbyint((double)x / unit) * unit; /* to even, as the C library does */
    return fabs(near) > 65504 ? copysignf(INFINITY, x) : (float)near;
}

static float as_bf16(float x) {
    const double unit = unit_of((double)x, 7, -126);
    return (float)(nearbyint((double)x / unit) * unit);
}

/* How many steps `x` is from 0. */
static double steps_in(float x, float step) {
    return step > 0 ? nearbyint((double)x / (double)step) : 0;
}

/* ---- int8 ------------------------------------------------------------------------------------ */

static void through_int8(float *x, size_t count) {
    float largest = 0;
    for (size_t i = 0; i < count; i++) {
        largest = fmaxf(largest, fabsf(x[i]));
    }
    const float scale = (double)largest < NEXT_TO_NOTHING ? 0 : largest * (float)(1.0 / 127);
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)steps_in(x[i], scale) * scale;
    }
}

/* ---- int4: tiles with a base and a step ------------------------------------------------ */

typedef struct {
    float base, step;
} head;

static head head_of(const float *v, size_t count) {
    head out = {v[0], 0};
    float most = v[0];
    for (size_t i = 1; i < count; i++) {
        out.base = fminf(out.base, v[i]);
        most = fmaxf(most, v[i]);
    }
    const double unit = unit_of((double)out.base, 7, -126);
    const bool is_next_to_nothing = fabs((double)out.base) < NEXT_TO_NOTHING;
    out.base = is_next_to_nothing ? 0 : (float)(floor((double)out.base / unit) * unit);
    const float range = most - out.base;
    const float step = range * (float)(1.0 / 15);
    const double of_step = unit_of((double)step, 7, -126);
    out.step =
        (double)range < NEXT_TO_NOTHING ? 0 : (float)(ceil((double)step / of_step) * of_step);
    return out;
}

/* By the Hadamard matrix over its root, in the order of sums that codec.cl has. */
static void transform(float v[TILE]) {
    for (size_t apart = 1; apart < TILE; apart *= 2) {
        for (size_t i = 0; i < TILE; i++) {
            if ((i / apart) % 2 == 0) {
                const float a = v[i];
                const float b = v[i + apart];
                v[i] = a + b;
                v[i + apart] = a - b;
            }
        }
    }
    for (size_t i = 0; i < TILE; i++) {
        v[i] /= 8;
    }
}

static void swap(float *a, float *b) {
    const float kept = *a;
    *a = *b;
    *b = kept;
}

static void through_levels(float *v, size_t count, head of) {
    for (size_t i = 0; i < count; i++) {
        const double level = fmin(fmax(steps_in(v[i] - of.base, of.step), 0), 15);
        v[i] = of.base + (float)level * of.step;
    }
}

static void through_tile(float *x, size_t count) {
    float turned[TILE];
    size_t place = 0;
    for (size_t i = 0; i < count; i++) {
        x[i] = fabs((double)x[i]) < NEXT_TO_NOTHING ? 0 : x[i];
        place = fabsf(x[i]) > fabsf(x[place]) ? i : place;
    }
    const head plain = head_of(x, count);
    if (count == TILE) {
        memcpy(turned, x, sizeof turned);
        swap(&turned[0], &turned[place]);
        transform(turned);
        const head other = head_of(turned, TILE);
        if (other.step < plain.step) {
            through_levels(turned, TILE, other);
            transform(turned);
            swap(&turned[0], &turned[place]);
            memcpy(x, turned, sizeof turned);
            return;
        }
    }
    through_levels(x, count, plain);
}

/* ---- a sample -------------------------------------------------------------------------------- */

static rp_err through(rp_codec codec, float *x, size_t count) {
    const bool tiles = codec == RP_CODEC_INT4;
    const size_t group = tiles ? TILE : codec == RP_CODEC_INT8 ? BLOCK : 1;
    for (size_t at = 0; at < count && codec != RP_CODEC_F32; at += group) {
        const size_t own = count - at < group ? count - at : group;
        if (tiles) {
            through_tile(x + at, own);
        } else if (codec == RP_CODEC_INT8) {
            through_int8(x + at, own);
        } else if (codec == RP_CODEC_F16 || codec == RP_CODEC_BF16) {
            x[at] = codec == RP_CODEC_F16 ? as_f16(x[at]) : as_bf16(x[at]);
        } else {
            return rp_fail(RP_ERR_USAGE, "no formula for codec %s", rp_codec_name(codec));
        }
    }
    return RP_OK;
}

/* ---- a parcel -------------------------------------------------------------------------------- */

rp_err send_parcel(replay *r, uint32_t boundary, bool gradients, uint32_t n,
                   const rp_boundary_tensors *of, parcel at) {
    const rp_codec codec = r->run.codec ? r->run.codec[boundary][gradients] : RP_CODEC_F32;
    const uint32_t samples = r->micro[n].samples.count;
    rp_err err = RP_OK;
    for (uint32_t t = 0; t < of->count; t++) {
        const size_t count = rp_shape_count(&of->sample[t]);
        for (uint32_t s = 0; s < samples; s++) {
            RP_TRY(through(codec, (float *)at[t] + s * count, count));
        }
    }
fail:
    return err;
}
