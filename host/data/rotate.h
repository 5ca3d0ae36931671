/* Rotation of an image about its centre. */
#ifndef RP_DATA_ROTATE_H
#define RP_DATA_ROTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rotates counter-clockwise by `degrees`, bilinear, with zeros outside. x: [channels, height,
 * width], in place; scratch: [height * width]. source  torchvision's rotate(): torch's affine_grid
 * and grid_sample, align_corners=False */
void rp_rotate_image(float *x, uint32_t channels, uint32_t height, uint32_t width, double degrees,
                     float *scratch);

#endif
