/* Converts bytes to floats, value / 255, like torchvision's ToTensor. Private to the room. */
#ifndef RP_DATA_PIXELS_H
#define RP_DATA_PIXELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/shape.h"

static inline void rp_pixels_read(float *x, const uint8_t *pixels, size_t count) {
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)pixels[i] / 255.0f;
    }
}

/* Converts [height][width][channels] bytes to floats of `sample`, [channels, height, width]. */
static inline void rp_pixels_spread(const uint8_t *pixels, const rp_shape *sample, float *x) {
    const size_t channels = sample->dim[0];
    const size_t plane = (size_t)sample->dim[1] * sample->dim[2];
    for (size_t c = 0; c < channels; c++) {
        for (size_t i = 0; i < plane; i++) {
            x[c * plane + i] = (float)pixels[i * channels + c] / 255.0f;
        }
    }
}

#endif
