#include "data/rotate.h"

#include <math.h>
#include <string.h>

static float pixel_at(const float *plane, uint32_t height, uint32_t width, double y, double x) {
    const bool inside = y >= 0 && x >= 0 && y < height && x < width;
    return inside ? plane[(size_t)y * width + (size_t)x] : 0.0f;
}

/* Interpolates between the four pixels around (y, x); pixels outside are 0. */
static float sample_at(const float *plane, uint32_t height, uint32_t width, double y, double x) {
    const double top = floor(y);
    const double left = floor(x);
    const double down = y - top;
    const double right = x - left;
    const double upper = (1 - right) * (double)pixel_at(plane, height, width, top, left) +
                         right * (double)pixel_at(plane, height, width, top, left + 1);
    const double lower = (1 - right) * (double)pixel_at(plane, height, width, top + 1, left) +
                         right * (double)pixel_at(plane, height, width, top + 1, left + 1);
    return (float)((1 - down) * upper + down * lower);
}

void rp_rotate_image(float *x, uint32_t channels, uint32_t height, uint32_t width, double degrees,
                     float *scratch) {
    const double angle = degrees * 3.14159265358979323846 / 180;
    const double cosine = cos(angle);
    const double sine = sin(angle);
    const double middle_y = (height - 1) / 2.0;
    const double middle_x = (width - 1) / 2.0;
    const size_t plane = (size_t)height * width;
    for (uint32_t c = 0; c < channels; c++, x += plane) {
        memcpy(scratch, x, plane * sizeof *x);
        for (uint32_t i = 0; i < height; i++) {
            for (uint32_t j = 0; j < width; j++) { /* source position of this pixel */
                const double dy = i - middle_y;
                const double dx = j - middle_x;
                x[(size_t)i * width + j] =
                    sample_at(scratch, height, width, middle_y + sine * dx + cosine * dy,
                              middle_x + cosine * dx - sine * dy);
            }
        }
    }
}
