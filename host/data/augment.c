#include "data/augment.h"

#include <stdio.h>
#include <string.h>

#include "data/mixup.h"
#include "data/rotate.h"

enum { PAD = 4, PAD_MAX = 1024 };

/* ---- reading --------------------------------------------------------------------------------- */

static rp_err read_word(rp_node *data, rp_augment *out) {
    static const char *const words[] = {"none", "crop", "flip", "crop-flip", NULL};
    uint32_t word = 0;
    rp_err err = rp_node_word(data, "augment", words, &word);
    out->crop = word & 1 ? PAD : 0;
    out->flip = word & 2;
    return err;
}

static rp_err read_colour(rp_node *augment, uint32_t channels, rp_colour *out) {
    rp_node *colour = rp_node_find(augment, "colour");
    rp_err err = RP_OK;
    if (!colour) {
        return RP_OK;
    }
    if (!rp_node_is_map(colour)) {
        return rp_node_fail(colour, "expected a map like {brightness: 0.4, hue: 0.1}");
    }
    RP_TRY(rp_node_f32(colour, "brightness", 0, 100, &out->brightness));
    RP_TRY(rp_node_f32(colour, "contrast", 0, 100, &out->contrast));
    RP_TRY(rp_node_f32(colour, "saturation", 0, 100, &out->saturation));
    RP_TRY(rp_node_f32(colour, "hue", 0, 0.5, &out->hue));
    RP_TRY(rp_node_done(colour));
    if (channels != 1 && channels != 3) {
        return rp_node_fail(colour, "needs images of 1 or 3 channels, but these have %u", channels);
    }
fail:
    return err;
}

/* Reads `[low, high]`, both above 0. */
static rp_err read_range(rp_node *map, const char *key, double most, float out[2]) {
    const rp_node *list = rp_node_find(map, key);
    if (!list) {
        return RP_OK;
    }
    for (uint32_t i = 0; rp_node_is_list(list) && rp_node_count(list) == 2 && i < 2; i++) {
        double value;
        rp_err err = rp_node_item_f64(list, i, 1e-6, most, &value);
        if (err != RP_OK) {
            return err;
        }
        out[i] = (float)value;
    }
    return rp_node_is_list(list) && rp_node_count(list) == 2 && out[0] <= out[1]
               ? RP_OK
               : rp_node_fail(list, "expected two numbers, [least, most]");
}

static rp_err read_erasing(rp_node *augment, rp_erase *out) {
    rp_node *erasing = rp_node_find(augment, "erasing");
    rp_err err = RP_OK;
    *out = (rp_erase){.scale = {0.02f, 0.33f}, .ratio = {0.3f, 3.3f}};
    if (erasing && rp_node_is_map(erasing)) {
        out->p = 0.5f;
        RP_TRY(rp_node_f32(erasing, "p", 0, 1, &out->p));
        RP_TRY(read_range(erasing, "scale", 1, out->scale));
        RP_TRY(read_range(erasing, "ratio", 1e6, out->ratio));
        RP_TRY(rp_node_done(erasing));
    } else {
        RP_TRY(rp_node_f32(augment, "erasing", 0, 1, &out->p));
    }
fail:
    return err;
}

static bool changes_colours(const rp_colour *colour) {
    return colour->brightness > 0 || colour->contrast > 0 || colour->saturation > 0 ||
           colour->hue > 0;
}

static bool changes_images(const rp_augment *augment) {
    return augment->crop > 0 || augment->flip || augment->rotation > 0 || augment->erase.p > 0 ||
           changes_colours(&augment->colour);
}

bool rp_augment_changes_image(const rp_augment *augment) {
    return augment->crop || augment->flip || augment->rotation > 0 ||
           changes_colours(&augment->colour);
}

bool rp_augment_keeps_bytes(const rp_augment *augment) {
    return !(augment->rotation > 0 || augment->erase.p > 0 || augment->mixup > 0 ||
             changes_colours(&augment->colour));
}

bool rp_augment_moves_pixels(const rp_augment *augment) {
    return augment->crop > 0 || augment->flip || augment->rotation > 0 || augment->mixup > 0;
}

rp_err rp_augment_read(rp_node *data, const char *set, uint32_t channels, rp_augment *out) {
    rp_node *augment = rp_node_find(data, "augment");
    rp_err err = RP_OK;
    *out = (rp_augment){0};
    if (!augment || !rp_node_is_map(augment)) {
        RP_TRY(read_word(data, out));
    } else {
        RP_TRY(rp_node_u32(augment, "crop", 0, PAD_MAX, &out->crop));
        RP_TRY(rp_node_bool(augment, "flip", &out->flip));
        RP_TRY(rp_node_f32(augment, "rotation", 0, 180, &out->rotation));
        RP_TRY(read_colour(augment, channels, &out->colour));
        RP_TRY(read_erasing(augment, &out->erase));
        RP_TRY(rp_node_f32(augment, "mixup", 0, 1000, &out->mixup));
        RP_TRY(rp_node_done(augment));
    }
    if (channels == 0 && changes_images(out)) {
        return rp_node_fail(augment, "needs images, but samples of data set '%s' are not images",
                            set);
    }
fail:
    return err;
}

/* ---- applying -------------------------------------------------------------------------------- */

static rp_rng stream_of(const char *what, uint64_t seed, uint32_t epoch, uint32_t index) {
    char name[48];
    (void)snprintf(name, sizeof name, "%s/%u/%u", what, epoch, index);
    return rp_rng_named(seed, name);
}

/* Moves the picture by (dy, dx), and fills with zeros. */
static void shift_plane(float *plane, uint32_t height, uint32_t width, int dy, int dx) {
    const size_t left = (size_t)(dx > 0 ? dx : 0);
    const size_t right = (size_t)(dx < 0 ? -dx : 0);
    const size_t kept = left + right < width ? width - left - right : 0;
    for (uint32_t i = 0; i < height; i++) {
        /* The order of rows makes sure that no row is overwritten before it has been moved. */
        const int64_t y = dy > 0 ? (int64_t)height - 1 - i : (int64_t)i;
        const int64_t from = y - dy;
        float *row = plane + y * width;
        if (from < 0 || from >= height || kept == 0) {
            memset(row, 0, width * sizeof *row);
            continue;
        }
        memmove(row + left, plane + from * width + right, kept * sizeof *row);
        memset(row, 0, left * sizeof *row);
        memset(row + left + kept, 0, right * sizeof *row);
    }
}

static void mirror_plane(float *plane, uint32_t height, uint32_t width) {
    for (uint32_t y = 0; y < height; y++, plane += width) {
        for (uint32_t x = 0; x < width / 2; x++) {
            float swap = plane[x];
            plane[x] = plane[width - 1 - x];
            plane[width - 1 - x] = swap;
        }
    }
}

/* source  torchvision's RandomCrop(size, padding=crop), then RandomHorizontalFlip */
static void crop_and_flip(const rp_augment *augment, rp_rng rng, const rp_shape *sample, float *x) {
    const uint32_t height = sample->dim[1];
    const uint32_t width = sample->dim[2];
    const uint32_t pad = augment->crop ? augment->crop : PAD; /* without crop: draws for `flip` */
    const int dy = (int)pad - (int)rp_rng_below(&rng, 2 * pad + 1);
    const int dx = (int)pad - (int)rp_rng_below(&rng, 2 * pad + 1);
    const bool flip = rp_rng_below(&rng, 2) == 1;
    for (uint32_t c = 0; c < sample->dim[0]; c++) {
        float *plane = x + (size_t)c * height * width;
        if (augment->crop) {
            shift_plane(plane, height, width, dy, dx);
        }
        if (augment->flip && flip) {
            mirror_plane(plane, height, width);
        }
    }
}

size_t rp_augment_scratch(const rp_augment *augment, const rp_shape *sample) {
    return augment->rotation > 0 ? (size_t)sample->dim[1] * sample->dim[2] : 0;
}

void rp_augment_image(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                      const rp_shape *sample, float *x, float *scratch) {
    const rp_colour *colour = &augment->colour;
    if (augment->crop || augment->flip) {
        crop_and_flip(augment, stream_of("augment", seed, epoch, index), sample, x);
    }
    if (augment->rotation > 0) {
        rp_rng rng = stream_of("rotation", seed, epoch, index);
        const float turn = (2.0f * rp_rng_uniform(&rng) - 1.0f) * augment->rotation;
        rp_rotate_image(x, sample->dim[0], sample->dim[1], sample->dim[2], (double)turn, scratch);
    }
    if (changes_colours(colour)) {
        rp_rng rng = stream_of("colour", seed, epoch, index);
        rp_colour_jitter(colour, &rng, x, sample->dim[0], (size_t)sample->dim[1] * sample->dim[2]);
    }
}

void rp_augment_normalised(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                           const rp_shape *sample, float *x) {
    rp_box box;
    if (!(augment->erase.p > 0)) {
        return;
    }
    rp_rng rng = stream_of("erasing", seed, epoch, index);
    if (rp_erase_draw(&augment->erase, &rng, sample->dim[1], sample->dim[2], &box)) {
        rp_erase_box(&box, x, sample->dim[0], sample->dim[1], sample->dim[2]);
    }
}

void rp_augment_partner(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                        uint32_t count, uint32_t *partner, double *share) {
    rp_rng rng = stream_of("mixup", seed, epoch, index);
    *partner = rp_rng_below(&rng, count);
    *share = rp_mixup_share(&rng, (double)augment->mixup);
}
