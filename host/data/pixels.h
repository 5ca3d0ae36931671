/* Bytes to floats, as torchvision's ToTensor: value / 255. Private to the room. */
#ifndef RP_DATA_PIXELS_H
#define RP_DATA_PIXELS_H

#include <stddef.h>
#include <stdint.h>

static inline void rp_pixels_read(float *x, const uint8_t *pixels, size_t count) {
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)pixels[i] / 255.0f;
    }
}

#endif
