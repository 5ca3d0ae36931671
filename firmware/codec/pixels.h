/* Inputs as bytes (codec uint8), normalised on the board. A byte has one of 256 values in each
 * group, so they are computed once, on the board's processor, with the operations of a host that
 * sends f32. The device looks them up, so every device gets the same bits. */
#ifndef RP_CODEC_PIXELS_H
#define RP_CODEC_PIXELS_H

#include <stdint.h>

enum { RP_PIXEL_LEVELS = 256, RP_PIXEL_GROUPS_MAX = 16 };

/* A sample is divided into groups of consecutive elements (the channels of an image). A byte b
 * becomes (b / 255 - mean) / deviation of its group. groups 0: inputs are not bytes. */
typedef struct {
    uint32_t groups;
    float mean[RP_PIXEL_GROUPS_MAX], deviation[RP_PIXEL_GROUPS_MAX];
} rp_pixel_norm;

/* value: [groups][RP_PIXEL_LEVELS] */
void rp_pixel_values(const rp_pixel_norm *norm, float *value);

#endif
