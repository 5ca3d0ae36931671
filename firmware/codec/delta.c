#include "codec/delta.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "codec/encode.h"

enum { BLOCK = RP_CODEC_KEPT_BLOCK, KEPT_BYTES = 1 + sizeof(float) };

/* ---- names ----------------------------------------------------------------------------------- */

/* With the fewest digits that read back as the same share. */
static void print_share(double share, char out[RP_DELTA_TEXT]) {
    double back = 0;
    for (int digits = 1; digits <= DBL_DECIMAL_DIG && back != share; digits++) {
        (void)snprintf(out, RP_DELTA_TEXT, "topk:%.*g", digits, share);
        back = strtod(out + strlen("topk:"), NULL);
    }
}

void rp_delta_print(const rp_delta *delta, char out[RP_DELTA_TEXT]) {
    if (delta->kind == RP_DELTA_TOPK) {
        print_share(delta->share, out);
    } else {
        (void)snprintf(out, RP_DELTA_TEXT, "%s", delta->kind == RP_DELTA_INT8 ? "int8" : "");
    }
}

bool rp_delta_parse(const char *text, rp_delta *out) {
    static const char topk[] = "topk:";
    char *end = NULL;
    *out = (rp_delta){0};
    if (strcmp(text, "int8") == 0) {
        out->kind = RP_DELTA_INT8;
        return true;
    }
    if (strncmp(text, topk, sizeof topk - 1) != 0) {
        return false;
    }
    out->kind = RP_DELTA_TOPK;
    out->share = strtod(text + sizeof topk - 1, &end);
    return end != text + sizeof topk - 1 && !*end && out->share > 0 && out->share <= 1;
}

/* ---- topk ------------------------------------------------------------------------------------ */

/* Values of a block of `count` that are kept: 1 to count. */
static size_t kept_of(double share, size_t count) {
    const size_t kept = (size_t)ceil(share * (double)count);
    return kept < count ? kept : count;
}

typedef struct {
    uint32_t magnitude; /* bits of |x|, which are ordered as the numbers are */
    uint32_t at;
} ranked;

static int compare_ranks(const void *a, const void *b) {
    const ranked *left = a;
    const ranked *right = b;
    if (left->magnitude != right->magnitude) {
        return left->magnitude > right->magnitude ? -1 : 1;
    }
    return left->at < right->at ? -1 : left->at > right->at;
}

static uint8_t *encode_block(const float *values, size_t count, size_t kept, uint8_t *to) {
    ranked rank[BLOCK];
    bool is_kept[BLOCK] = {false};
    uint8_t *value = to + kept;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&rank[i].magnitude, &values[i], sizeof rank[i].magnitude);
        rank[i].magnitude &= 0x7fffffff;
        rank[i].at = i;
    }
    qsort(rank, count, sizeof *rank, compare_ranks);
    for (size_t k = 0; k < kept; k++) {
        is_kept[rank[k].at] = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (is_kept[i]) {
            *to++ = (uint8_t)i;
            memcpy(value, &values[i], sizeof values[i]);
            value += sizeof values[i];
        }
    }
    return value;
}

static const char *decode_block(const uint8_t *from, size_t count, size_t kept, float *values) {
    const uint8_t *value = from + kept;
    memset(values, 0, count * sizeof *values);
    for (size_t k = 0; k < kept; k++, value += sizeof *values) {
        if (from[k] >= count || (k > 0 && from[k] <= from[k - 1])) {
            return "a position is not after the one before, or outside of its block";
        }
        memcpy(&values[from[k]], value, sizeof *values);
        if (!isfinite(values[from[k]])) {
            return "a value is not finite";
        }
    }
    return NULL;
}

/* ---- int8 ------------------------------------------------------------------------------------ */

static const char *decode_int8(const uint8_t *from, size_t count, float *values) {
    const size_t blocks = (count + RP_CODEC_BLOCK - 1) / RP_CODEC_BLOCK;
    const uint8_t *levels = from + blocks * sizeof(float);
    for (size_t i = 0; i < count; i++) {
        const int8_t level = (int8_t)levels[i];
        float scale;
        memcpy(&scale, from + i / RP_CODEC_BLOCK * sizeof scale, sizeof scale);
        if (!isfinite(scale) || signbit(scale)) {
            return "a scale is not a finite number of at least 0";
        }
        if (level == INT8_MIN) {
            return "a level is -128, expected -127 to 127";
        }
        values[i] = (float)level * scale;
        if (!isfinite(values[i])) {
            return "a value is not finite";
        }
    }
    return NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

uint64_t rp_delta_bytes(const rp_delta *delta, uint64_t count) {
    switch (delta->kind) {
    case RP_DELTA_INT8:
        return rp_codec_bytes(RP_CODEC_INT8, (size_t)count);
    case RP_DELTA_TOPK:
        return (count / BLOCK * kept_of(delta->share, BLOCK) +
                kept_of(delta->share, (size_t)(count % BLOCK))) *
               KEPT_BYTES;
    default:
        return count * sizeof(float);
    }
}

void rp_delta_encode(const rp_delta *delta, const float *values, size_t count, uint8_t *to) {
    RP_ASSERT(delta->kind != RP_DELTA_NONE);
    if (delta->kind == RP_DELTA_INT8) {
        rp_codec_encode_host(RP_CODEC_INT8, values, 1, count, to);
        return;
    }
    for (size_t first = 0; first < count; first += BLOCK) {
        const size_t own = count - first < BLOCK ? count - first : BLOCK;
        to = encode_block(values + first, own, kept_of(delta->share, own), to);
    }
}

const char *rp_delta_decode(const rp_delta *delta, const uint8_t *from, size_t count,
                            float *values) {
    const char *wrong = NULL;
    RP_ASSERT(delta->kind != RP_DELTA_NONE);
    if (delta->kind == RP_DELTA_INT8) {
        return decode_int8(from, count, values);
    }
    for (size_t first = 0; first < count && !wrong; first += BLOCK) {
        const size_t own = count - first < BLOCK ? count - first : BLOCK;
        const size_t kept = kept_of(delta->share, own);
        wrong = decode_block(from, own, kept, values + first);
        from += kept * KEPT_BYTES;
    }
    return wrong;
}
