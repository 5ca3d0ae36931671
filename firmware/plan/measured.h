/* What the part of PROFILE_DONE holds when PROFILE named sizes: f64 values in this order,
 *
 *   for each size, for each layer, for each pass: seconds (the median of its repeats), spread
 *     (the distance of their quartiles by the median; 1: one repeat only; negative: not measured)
 *   for each layer: seconds of an update
 *   seconds of a copy to the device of RP_MEASURED_COPY_BYTES[0], of [1], from the device of [0],
 *     of [1]; 0: there is no device */
#ifndef RP_PLAN_MEASURED_H
#define RP_PLAN_MEASURED_H

#include <stddef.h>
#include <stdint.h>

enum {
    RP_MEASURED_SIZES_MAX = 8,  /* as ringpipe.options has it */
    RP_MEASURED_LAYERS_MAX = 8, /* .. that may be named; the others are then not measured */
    RP_MEASURED_SECONDS_MAX = 600,
    RP_MEASURED_COPIES = 4
};

typedef enum {
    RP_MEASURED_FORWARD,
    RP_MEASURED_BACKWARD, /* whole */
    RP_MEASURED_BACKWARD_INPUT,
    RP_MEASURED_BACKWARD_WEIGHT,
    RP_MEASURED_PASSES
} rp_measured_pass;

static const size_t RP_MEASURED_COPY_BYTES[2] = {64 << 10, 4 << 20};

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

/* Values in all. */
static inline size_t rp_measured_count(size_t layers, size_t sizes) {
    return rp_measured_copy_at(layers, sizes, RP_MEASURED_COPIES);
}

#endif
