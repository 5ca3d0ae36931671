/* What the part of PROFILE_DONE holds when PROFILE named sizes: f64 values in this order,
 *
 *   for each size, for each layer, for each pass: seconds (the median of its repeats), spread
 *     (the distance of their quartiles by the median; 1: one repeat only; negative: not measured)
 *   for each layer: seconds of an update
 *   seconds of a copy to the device of RP_MEASURED_COPY_BYTES[0], of [1], from the device of [0],
 *     of [1]; 0: there is no device
 *   and, where PROFILE asked for what ops cost besides their layers (RP_BESIDES_*), of each two
 *     values: seconds and spread; 0 seconds: the run has none, or it was not asked for */
#ifndef RP_PLAN_MEASURED_H
#define RP_PLAN_MEASURED_H

#include <stddef.h>
#include <stdint.h>

enum {
    RP_MEASURED_SIZES_MAX = 8,  /* as ringpipe.options has it */
    RP_MEASURED_LAYERS_MAX = 8, /* .. that may be named; the others are then not measured */
    RP_MEASURED_SECONDS_MAX = 600,
    RP_MEASURED_COPIES = 4,
    RP_MEASURED_CODECS = 16 /* numbers of codecs that have a place */
};

typedef enum {
    RP_MEASURED_FORWARD,
    RP_MEASURED_BACKWARD, /* whole */
    RP_MEASURED_BACKWARD_INPUT,
    RP_MEASURED_BACKWARD_WEIGHT,
    RP_MEASURED_PASSES
} rp_measured_pass;

/* How replicas are averaged: not; elastic, behind a local step or round it; with a reference. */
typedef enum {
    RP_MEASURED_NO_AVERAGE,
    RP_MEASURED_ELASTIC,
    RP_MEASURED_HALVES,
    RP_MEASURED_REFERENCE
} rp_measured_average;

static const size_t RP_MEASURED_COPY_BYTES[2] = {64 << 10, 4 << 20};

/* What ops cost besides. Each but the first of RP_BESIDES_FLOATS[0] and of [1] values: predictions
 * and averages of parameters, codecs of elements of a boundary. */
enum {
    RP_BESIDES_HANDLING = 0, /* giving an op to the device and seeing its end, over what it works */
    RP_BESIDES_PREDICTION = 1,
    RP_BESIDES_AVERAGE = 3,
    RP_BESIDES_CODEC = 5, /* to encode, then to decode, of each */
    RP_BESIDES = RP_BESIDES_CODEC + 4 * RP_MEASURED_CODECS
};
static const uint32_t RP_BESIDES_FLOATS[2] = {16 << 10, 256 << 10};
static inline size_t rp_besides_codec(size_t codec, size_t decode, size_t size) {
    return RP_BESIDES_CODEC + 4 * codec + 2 * decode + size;
}

/* Where the seconds of a pass stand; its spread is behind them. */
static inline size_t rp_measured_at(size_t layers, size_t size, size_t layer, size_t pass) {
    return 2 * ((size * layers + layer) * RP_MEASURED_PASSES + pass);
}

static inline size_t rp_measured_update_at(size_t layers, size_t sizes, size_t layer) {
    return 2 * sizes * layers * RP_MEASURED_PASSES + layer;
}

static inline size_t rp_measured_copy_at(size_t layers, size_t sizes, size_t copy) {
    return rp_measured_update_at(layers, sizes, layers) + copy;
}

/* Values in all, without what ops cost besides. */
static inline size_t rp_measured_count(size_t layers, size_t sizes) {
    return rp_measured_copy_at(layers, sizes, RP_MEASURED_COPIES);
}

/* Where the seconds of one of RP_BESIDES stand; its spread is behind them. */
static inline size_t rp_measured_besides_at(size_t layers, size_t sizes, size_t which) {
    return rp_measured_count(layers, sizes) + 2 * which;
}

/* Values in all, with them. */
static inline size_t rp_measured_all(size_t layers, size_t sizes) {
    return rp_measured_besides_at(layers, sizes, RP_BESIDES);
}

#endif
