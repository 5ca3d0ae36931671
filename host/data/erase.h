/* Random erasing: a box of a normalised image is set to zero.
 *
 * source  Zhong et al. 2020; torchvision's RandomErasing */
#ifndef RP_DATA_ERASE_H
#define RP_DATA_ERASE_H

#include <stdbool.h>

#include "base/rng.h"

typedef struct {
    float p;        /* probability of a box; 0: off */
    float scale[2]; /* range of its area, as a share of the image */
    float ratio[2]; /* range of height / width */
} rp_erase;

typedef struct {
    uint32_t top, left, height, width;
} rp_box;

/* Draws a box; false: no box, or ten boxes that did not fit into the image. */
bool rp_erase_draw(const rp_erase *erase, rp_rng *rng, uint32_t height, uint32_t width,
                   rp_box *out);
void rp_erase_box(const rp_box *box, float *x, uint32_t channels, uint32_t height, uint32_t width);

#endif
