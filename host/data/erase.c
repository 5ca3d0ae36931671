#include "data/erase.h"

#include <math.h>
#include <string.h>

enum { TRIES = 10 };

static double draw_between(rp_rng *rng, double low, double high) {
    return low + (double)rp_rng_uniform(rng) * (high - low);
}

bool rp_erase_draw(const rp_erase *erase, rp_rng *rng, uint32_t height, uint32_t width,
                   rp_box *out) {
    if (!(rp_rng_uniform(rng) < erase->p)) {
        return false;
    }
    for (int i = 0; i < TRIES; i++) {
        const double area = (double)height * width *
                            draw_between(rng, (double)erase->scale[0], (double)erase->scale[1]);
        const double ratio =
            exp(draw_between(rng, log((double)erase->ratio[0]), log((double)erase->ratio[1])));
        const double high = nearbyint(sqrt(area * ratio));
        const double wide = nearbyint(sqrt(area / ratio));
        if (high < height && wide < width) {
            *out = (rp_box){.height = (uint32_t)high, .width = (uint32_t)wide};
            out->top = rp_rng_below(rng, height - out->height + 1);
            out->left = rp_rng_below(rng, width - out->width + 1);
            return true;
        }
    }
    return false;
}

void rp_erase_box(const rp_box *box, float *x, uint32_t channels, uint32_t height, uint32_t width) {
    for (uint32_t c = 0; c < channels; c++, x += (size_t)height * width) {
        for (uint32_t i = box->top; i < box->top + box->height; i++) {
            memset(x + (size_t)i * width + box->left, 0, box->width * sizeof *x);
        }
    }
}
