/* Random changes of training samples: `data.augment`.
 *
 *   augment: none | crop | flip | crop-flip
 *   augment: {crop: 4, flip: true, rotation: 15, erasing: 0.25, mixup: 0.2,
 *             colour: {brightness: 0.4, contrast: 0.4, saturation: 0.4, hue: 0.1}}
 *
 * Each draws from its own stream of the run's seed, NAME/<epoch>/<index>, where NAME is "augment"
 * (crop and flip), "rotation", "colour", "erasing" or "mixup". So the result does not depend on the
 * batch, the order, or the thread. */
#ifndef RP_DATA_AUGMENT_H
#define RP_DATA_AUGMENT_H

#include "base/config.h"
#include "base/shape.h"
#include "data/colour.h"
#include "data/erase.h"

typedef struct {
    uint32_t crop; /* width of a border of zeros, before a part of the original size is cut out */
    bool flip;
    float rotation; /* largest angle to either side, in degrees */
    rp_colour colour;
    rp_erase erase;
    float mixup; /* alpha; 0: none */
} rp_augment;

/* Reads `augment` of the map `data`. channels: of the images; 0: samples are not images. `set`: its
 * name, for messages. errors USAGE with file, line, key */
rp_err rp_augment_read(rp_node *data, const char *set, uint32_t channels,
                       rp_augment *out) RP_MUST_CHECK;

/* Do bytes stay bytes? true for crop and flip, which only move values. */
bool rp_augment_keeps_bytes(const rp_augment *augment);

/* Whether a pixel may change its place or its image, so that masks would no longer fit. */
bool rp_augment_moves_pixels(const rp_augment *augment);

/* Does rp_augment_image() do anything? */
bool rp_augment_changes_image(const rp_augment *augment);

/* Number of floats in `scratch` of rp_augment_image(). */
size_t rp_augment_scratch(const rp_augment *augment, const rp_shape *sample);

/* Applies crop, flip, rotation, colour to raw pixels. sample: [channels, height, width]. */
void rp_augment_image(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                      const rp_shape *sample, float *x, float *scratch);
/* Applies erasing to a normalised image. */
void rp_augment_normalised(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                           const rp_shape *sample, float *x);

/* For mixup: draws the partner of a sample, below `count`, and the sample's own share. */
void rp_augment_partner(const rp_augment *augment, uint64_t seed, uint32_t epoch, uint32_t index,
                        uint32_t count, uint32_t *partner, double *share);

#endif
