/* Inputs that are bytes, normalised on the board: codec uint8. A byte has one of 256 values in each
 * group, so they are computed once, on the board's processor and by the operations of a host that
 * sends f32, and the device looks them up: the same bits on every device. */
#ifndef RP_CODEC_PIXELS_H
#define RP_CODEC_PIXELS_H

#include <stdint.h>

enum { RP_PIXEL_LEVELS = 256, RP_PIXEL_GROUPS_MAX = 16 };

/* By groups of consecutive elements of a sample, the channels of an image: a byte b becomes
 * (b / 255 - mean) / deviation. groups 0: there is none. */
typedef struct {
    uint32_t groups;
    float mean[RP_PIXEL_GROUPS_MAX], deviation[RP_PIXEL_GROUPS_MAX];
} rp_pixel_norm;

/* value: [groups][RP_PIXEL_LEVELS] */
void rp_pixel_values(const rp_pixel_norm *norm, float *value);

#endif
