/* What training does to an image before the net sees it: `data.augment`.
 *
 *   augment: none | crop | flip | crop-flip
 *   augment: {crop: 4, flip: true, rotation: 15, erasing: 0.25, mixup: 0.2,
 *             colour: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}}
 *
 * Each draws from a stream of its own, "augment" (crop and flip), "rotation", "colour", "erasing",
 * "mixup", behind it "/<epoch>/<index>" of the run's seed: what becomes of a sample depends on
 * neither the batch nor the order nor the thread that makes it. */
#ifndef RP_DATA_AUGMENT_H
#define RP_DATA_AUGMENT_H

#include "base/config.h"
#include "base/shape.h"
#include "data/colour.h"
#include "data/erase.h"

typedef struct {
    uint32_t crop; /* pixels of zeros around the image, of which a part of its size is taken */
    bool flip;
    float rotation; /* degrees to either side */
    rp_colour colour;
    rp_erase erase;
    float mixup; /* alpha; 0: none */
} rp_augment;

/* Of `data:`. channels: of the images, 0 where the set has none. errors USAGE with file, line, key
 */
rp_err rp_augment_read(rp_node *data, const char *set, uint32_t channels,
                       rp_augment *out) RP_MUST_CHECK;

/* Are values that are bytes still bytes? Crop and flip move them only. */
bool rp_augment_keeps_bytes(const rp_augment *augment);

/* Does rp_augment_image() do anything? */
bool rp_augment_changes_image(const rp_augment *augment);

/* Floats that rp_augment_image() needs besides. */
size_t rp_augment_scratch(const rp_augment *augment, const rp_shape *sample);

/* Crop, flip, rotation, colour: of raw pixels. sample: [channels, height, width]. */
void rp_augment_image(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                      const rp_shape *sample, float *x, float *scratch);
/* Erasing: of a normalised image. */
void rp_augment_normalised(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                           const rp_shape *sample, float *x);

/* The partner of a sample, one of `count`, and the sample's own share; with mixup only. */
void rp_augment_partner(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                        uint32_t count, uint32_t *partner, double *share);

#endif
