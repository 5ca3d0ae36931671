/* Layout of PROFILE_DONE's part when PROFILE named sizes: f64 values in this order,
 *
 *   for each size, for each layer, for each pass: seconds (the median of its repeats), spread
 *     (interquartile range divided by the median; 1: only one repeat; negative: not measured)
 *   for each layer: seconds of an update
 *   seconds of a copy to the device of RP_MEASURED_COPY_BYTES[0], of [1], from the device of [0],
 *     of [1]; 0: there is no device
 *   if PROFILE asked for the additional costs of ops (RP_BESIDES_*): two values for each, seconds
 *     and spread; 0 seconds: the run does not need it, or it was not asked for */
#ifndef RP_PLAN_MEASURED_H
#define RP_PLAN_MEASURED_H

#include <stddef.h>
#include <stdint.h>

enum {
    RP_MEASURED_SIZES_MAX = 8,  /* as in ringpipe.options */
    RP_MEASURED_LAYERS_MAX = 8, /* layers that may be named; all others are then not measured */
    RP_MEASURED_SECONDS_MAX = 600,
    RP_MEASURED_COPIES = 4,
    RP_MEASURED_CODECS = 16 /* values reserved for codecs */
};

typedef enum {
    RP_MEASURED_FORWARD,
    RP_MEASURED_BACKWARD, /* the whole backward */
    RP_MEASURED_BACKWARD_INPUT,
    RP_MEASURED_BACKWARD_WEIGHT,
    RP_MEASURED_PASSES
} rp_measured_pass;

/* How replicas are averaged: not; elastic, after or around a local step; with a reference. */
typedef enum {
    RP_MEASURED_NO_AVERAGE,
    RP_MEASURED_ELASTIC,
    RP_MEASURED_HALVES,
    RP_MEASURED_REFERENCE
} rp_measured_average;

static const size_t RP_MEASURED_COPY_BYTES[2] = {64 << 10, 4 << 20};

/* Additional costs of ops. Each except the first has RP_BESIDES_FLOATS[0] and [1] values:
 * parameters for predictions and averages, elements of a boundary for codecs. */
enum {
    /* submitting an op to the device and noticing its end, beyond its execution */
    RP_BESIDES_HANDLING = 0,
    RP_BESIDES_PREDICTION = 1,
    RP_BESIDES_AVERAGE = 3,
    RP_BESIDES_CODEC = 5, /* encode, then decode, for each codec */
    RP_BESIDES = RP_BESIDES_CODEC + 4 * RP_MEASURED_CODECS
};
static const uint32_t RP_BESIDES_FLOATS[2] = {16 << 10, 256 << 10};
static inline size_t rp_besides_codec(size_t codec, size_t decode, size_t size) {
    return RP_BESIDES_CODEC + 4 * codec + 2 * decode + size;
}

/* Index of the seconds of a pass; its spread follows. */
static inline size_t rp_measured_at(size_t layers, size_t size, size_t layer, size_t pass) {
    return 2 * ((size * layers + layer) * RP_MEASURED_PASSES + pass);
}

static inline size_t rp_measured_update_at(size_t layers, size_t sizes, size_t layer) {
    return 2 * sizes * layers * RP_MEASURED_PASSES + layer;
}

static inline size_t rp_measured_copy_at(size_t layers, size_t sizes, size_t copy) {
    return rp_measured_update_at(layers, sizes, layers) + copy;
}

/* Number of values, without the additional costs. */
static inline size_t rp_measured_count(size_t layers, size_t sizes) {
    return rp_measured_copy_at(layers, sizes, RP_MEASURED_COPIES);
}

/* Index of the seconds of one of RP_BESIDES; its spread follows. */
static inline size_t rp_measured_besides_at(size_t layers, size_t sizes, size_t which) {
    return rp_measured_count(layers, sizes) + 2 * which;
}

/* Number of values, with the additional costs. */
static inline size_t rp_measured_all(size_t layers, size_t sizes) {
    return rp_measured_besides_at(layers, sizes, RP_BESIDES);
}

#endif
