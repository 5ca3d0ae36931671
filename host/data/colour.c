#include "data/colour.h"

#include <math.h>

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, STEPS };

static float clamp(float value) {
    return value < 0.0f ? 0.0f : value > 1.0f ? 1.0f : value;
}

static float grey_of(float red, float green, float blue) {
    return 0.2989f * red + 0.587f * green + 0.114f * blue;
}

void rp_colour_brightness(float *x, uint32_t channels, size_t plane, float factor) {
    for (size_t i = 0; i < channels * plane; i++) {
        x[i] = clamp(x[i] * factor);
    }
}

void rp_colour_contrast(float *x, uint32_t channels, size_t plane, float factor) {
    double sum = 0;
    for (size_t i = 0; i < plane; i++) {
        sum += (double)(channels == 3 ? grey_of(x[i], x[plane + i], x[2 * plane + i]) : x[i]);
    }
    const float mean = (float)(sum / (double)plane);
    for (size_t i = 0; i < channels * plane; i++) {
        x[i] = clamp(factor * x[i] + (1.0f - factor) * mean);
    }
}

void rp_colour_saturation(float *x, uint32_t channels, size_t plane, float factor) {
    for (size_t i = 0; channels == 3 && i < plane; i++) {
        const float grey = grey_of(x[i], x[plane + i], x[2 * plane + i]);
        for (size_t c = 0; c < 3; c++) {
            x[c * plane + i] = clamp(factor * x[c * plane + i] + (1.0f - factor) * grey);
        }
    }
}

/* Hue of a colour, from 0 to 1; `most` is the largest of the three values. */
static float hue_of(const float rgb[3], float most, float range) {
    float sixth;
    if (most == rgb[0]) {
        sixth = (rgb[1] - rgb[2]) / range;
    } else if (most == rgb[1]) {
        sixth = 2.0f + (rgb[2] - rgb[0]) / range;
    } else {
        sixth = 4.0f + (rgb[0] - rgb[1]) / range;
    }
    return sixth / 6.0f;
}

static void turn_pixel(float rgb[3], float turn) {
    const float most = fmaxf(rgb[0], fmaxf(rgb[1], rgb[2]));
    const float least = fminf(rgb[0], fminf(rgb[1], rgb[2]));
    const float range = most - least;
    if (!(range > 0.0f)) {
        return; /* grey has no hue */
    }
    float hue = hue_of(rgb, most, range) + turn;
    hue -= floorf(hue);
    for (int c = 0; c < 3; c++) { /* red has hue 0, green 1/3, blue 2/3 */
        const float away = fabsf(hue - (float)c / 3.0f);
        const float sixths = 6.0f * fminf(away, 1.0f - away);
        rgb[c] = clamp(most - range * clamp(sixths - 1.0f));
    }
}

void rp_colour_hue(float *x, uint32_t channels, size_t plane, float turn) {
    for (size_t i = 0; channels == 3 && i < plane; i++) {
        float rgb[3] = {x[i], x[plane + i], x[2 * plane + i]};
        turn_pixel(rgb, turn);
        for (size_t c = 0; c < 3; c++) {
            x[c * plane + i] = rgb[c];
        }
    }
}

static float draw_factor(rp_rng *rng, float range) {
    const float least = range < 1.0f ? 1.0f - range : 0.0f;
    return least + rp_rng_uniform(rng) * (1.0f + range - least);
}

void rp_colour_jitter(const rp_colour *colour, rp_rng *rng, float *x, uint32_t channels,
                      size_t plane) {
    uint32_t order[STEPS] = {BRIGHTNESS, CONTRAST, SATURATION, HUE};
    rp_rng_shuffle(rng, order, STEPS);
    const float brightness = draw_factor(rng, colour->brightness);
    const float contrast = draw_factor(rng, colour->contrast);
    const float saturation = draw_factor(rng, colour->saturation);
    const float turn = (2.0f * rp_rng_uniform(rng) - 1.0f) * colour->hue;
    for (int i = 0; i < STEPS; i++) {
        if (order[i] == BRIGHTNESS && colour->brightness > 0) {
            rp_colour_brightness(x, channels, plane, brightness);
        } else if (order[i] == CONTRAST && colour->contrast > 0) {
            rp_colour_contrast(x, channels, plane, contrast);
        } else if (order[i] == SATURATION && colour->saturation > 0) {
            rp_colour_saturation(x, channels, plane, saturation);
        } else if (order[i] == HUE && colour->hue > 0) {
            rp_colour_hue(x, channels, plane, turn);
        }
    }
}
