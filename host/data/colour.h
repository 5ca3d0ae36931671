/* Brightness, contrast, saturation and hue of images of 1 or 3 channels with values from 0 to 1.
 * plane: number of pixels. Saturation and hue leave a single channel unchanged.
 *
 * source  torchvision's ColorJitter and its functions for tensors */
#ifndef RP_DATA_COLOUR_H
#define RP_DATA_COLOUR_H

#include "base/rng.h"

/* Ranges of random changes: a factor is drawn from [1 - b, 1 + b], not below 0; the hue is moved by
 * [-hue, hue] of a turn. 0: no change. */
typedef struct {
    float brightness, contrast, saturation, hue;
} rp_colour;

void rp_colour_brightness(float *x, uint32_t channels, size_t plane, float factor);
void rp_colour_contrast(float *x, uint32_t channels, size_t plane, float factor);
void rp_colour_saturation(float *x, uint32_t channels, size_t plane, float factor);
void rp_colour_hue(float *x, uint32_t channels, size_t plane, float turn);

/* Applies those that are not 0, in a random order. */
void rp_colour_jitter(const rp_colour *colour, rp_rng *rng, float *x, uint32_t channels,
                      size_t plane);

#endif
