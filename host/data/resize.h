/* Bilinear resize of a picture. Private to the room.
 *
 * source  Pillow's resize(size, BILINEAR), which torchvision's Resize uses, with the same bytes as
 *         result: a triangle filter, widened to an output pixel when the picture shrinks, so that
 * no input is skipped; columns first, then rows; weights in 22 bits, each pass rounded to bytes */
#ifndef RP_DATA_RESIZE_H
#define RP_DATA_RESIZE_H

#include "data/image.h"

/* `out`: [height][width][channels] bytes. The input is not changed. errors MEMORY */
rp_err rp_resize(const rp_image *image, uint32_t height, uint32_t width,
                 uint8_t *out) RP_MUST_CHECK;

#endif
