/* A picture of another size, bilinear. Private to the room.
 *
 * source  Pillow's resize(size, BILINEAR), which torchvision's Resize is: a triangle filter that is
 *         as wide as an output pixel where the picture shrinks, so that nothing is skipped; columns
 *         first, then rows; weights in 22 bits, each pass rounded to bytes. The same bytes. */
#ifndef RP_DATA_RESIZE_H
#define RP_DATA_RESIZE_H

#include "data/image.h"

/* `out`: [height][width][channels] bytes. The input is left as it is. errors MEMORY */
rp_err rp_resize(const rp_image *image, uint32_t height, uint32_t width,
                 uint8_t *out) RP_MUST_CHECK;

#endif
