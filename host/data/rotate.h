/* An image turned about its middle. */
#ifndef RP_DATA_ROTATE_H
#define RP_DATA_ROTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counter-clockwise by `degrees`, bilinear, zeros from outside; x [channels, height, width],
 * `scratch` as large as one channel.
 * source  torchvision's rotate(): torch's affine_grid and grid_sample, align_corners=False */
void rp_rotate_image(float *x, uint32_t channels, uint32_t height, uint32_t width, double degrees,
                     float *scratch);

#endif
