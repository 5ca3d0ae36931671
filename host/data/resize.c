#include "data/resize.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"

enum { BITS = 22 };

/* Inputs of each output position, and their weights. */
typedef struct {
    uint32_t places, room; /* at most `room` weights for each of `places` outputs */
    uint32_t *first, *count;
    int32_t *weight; /* [places][room] */
} filter;

static rp_err make_filter(rp_arena *arena, uint32_t in, uint32_t out, filter *f) {
    const double scale = (double)in / out;
    const double support = scale > 1 ? scale : 1;
    rp_err err;
    double *share;
    f->places = out;
    f->room = (uint32_t)ceil(support) * 2 + 1;
    RP_TRY(RP_ARENA_NEW(arena, out, &f->first));
    RP_TRY(RP_ARENA_NEW(arena, out, &f->count));
    RP_TRY(RP_ARENA_NEW(arena, (size_t)out * f->room, &f->weight));
    RP_TRY(RP_ARENA_NEW(arena, f->room, &share));
    for (uint32_t i = 0; i < out; i++) {
        const double centre = (i + 0.5) * scale;
        const double low = centre - support + 0.5;
        const double high = centre + support + 0.5;
        const uint32_t first = low > 0 ? (uint32_t)low : 0;
        const uint32_t end = high < in ? (uint32_t)high : in;
        double sum = 0;
        for (uint32_t k = 0; k < end - first; k++) {
            const double far = fabs((k + first - centre + 0.5) / support);
            share[k] = far < 1 ? 1 - far : 0;
            sum += share[k];
        }
        for (uint32_t k = 0; k < end - first; k++) {
            f->weight[(size_t)i * f->room + k] =
                (int32_t)(0.5 + (sum > 0 ? share[k] / sum : share[k]) * (1 << BITS));
        }
        f->first[i] = first;
        f->count[i] = end - first;
    }
fail:
    return err;
}

/* Weights are not negative and add up to 1 << BITS (except for rounding), so a sum fits 32 bits. */
static uint8_t to_byte(int32_t sum) {
    const int32_t value = sum >> BITS;
    return (uint8_t)(value > 255 ? 255 : value);
}

/* Resizes one row of pixels. */
static void resize_row(const filter *f, const uint8_t *from, size_t channels, uint8_t *to) {
    for (uint32_t i = 0; i < f->places; i++, to += channels) {
        const int32_t *weight = f->weight + (size_t)i * f->room;
        const uint8_t *at = from + f->first[i] * channels;
        for (size_t c = 0; c < channels; c++) {
            int32_t sum = 1 << (BITS - 1);
            for (uint32_t k = 0; k < f->count[i]; k++) {
                sum += at[k * channels + c] * weight[k];
            }
            to[c] = to_byte(sum);
        }
    }
}

/* Resizes columns, a row of `bytes` at a time; sum: [bytes]. */
static void resize_columns(const filter *f, const uint8_t *from, size_t bytes, int32_t *sum,
                           uint8_t *to) {
    for (uint32_t i = 0; i < f->places; i++, to += bytes) {
        for (size_t x = 0; x < bytes; x++) {
            sum[x] = 1 << (BITS - 1);
        }
        for (uint32_t k = 0; k < f->count[i]; k++) {
            const int32_t weight = f->weight[(size_t)i * f->room + k];
            const uint8_t *row = from + (f->first[i] + k) * bytes;
            for (size_t x = 0; x < bytes; x++) {
                sum[x] += row[x] * weight;
            }
        }
        for (size_t x = 0; x < bytes; x++) {
            to[x] = to_byte(sum[x]);
        }
    }
}

rp_err rp_resize(const rp_image *image, uint32_t height, uint32_t width, uint8_t *out) {
    const size_t channels = image->channels;
    const size_t bytes = width * channels; /* in an output row */
    const uint8_t *wide = image->pixels;   /* picture with the new width */
    uint8_t *columns = out;
    int32_t *sum;
    filter f;
    rp_arena arena;
    rp_err err = RP_OK;
    rp_arena_init(&arena, "resize", 0);
    if (width != image->width) {
        RP_TRY(make_filter(&arena, image->width, width, &f));
        if (height != image->height) {
            RP_TRY(RP_ARENA_NEW(&arena, image->height * bytes, &columns));
        }
        for (size_t y = 0; y < image->height; y++) {
            resize_row(&f, wide + y * image->width * channels, channels, columns + y * bytes);
        }
        wide = columns;
    }
    if (height != image->height) {
        RP_TRY(make_filter(&arena, image->height, height, &f));
        RP_TRY(RP_ARENA_NEW(&arena, bytes, &sum));
        resize_columns(&f, wide, bytes, sum, out);
    } else if (wide != out) {
        memcpy(out, wide, height * bytes);
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
