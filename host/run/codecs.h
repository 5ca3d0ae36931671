/* `links: {codec: ...}`: how activations and gradients travel through each boundary of the cut.
 *
 *   links: {inputs: int8, codec: f16}                      `inputs`: samples from the host; default
 *                                                          auto: uint8 if the data set has bytes
 *   links: {codec: int8}                                   all boundaries, both directions
 *   links: {codec: {activations: int8, gradients: f16}}    by direction; default f32; topk-.. for
 *                                                          gradients only
 *   links: {codec: [f32, {gradients: bf16}, int8]}         by boundary, in the order of the stages
 *   links: {codec: auto, max_error: 0.05}                  the controller chooses: the mildest
 *          codec with which the wire does not delay the boards; a milder one if the relative error
 *          is above max_error
 */
#ifndef RP_RUN_CODECS_H
#define RP_RUN_CODECS_H

#include "base/config.h"
#include "codec/codec.h"
#include "data/data.h"

typedef struct {
    const rp_codec (*at)[2]; /* [stages - 1] boundaries: codecs of activations and of gradients;
                                NULL: the key is missing or auto */
    rp_codec inputs;         /* RP_CODECS for auto */
    bool is_auto;
    double max_error; /* for auto: largest relative L2 error accepted on a boundary and direction */
} rp_codecs;

/* Reads `links`; arrays of *out live in `arena`. errors USAGE with file, line and key; MEMORY */
rp_err rp_codecs_read(rp_arena *arena, rp_node *root, uint32_t stages,
                      rp_codecs *out) RP_MUST_CHECK;
/* Resolves `*inputs` for this data set: auto becomes uint8 if its samples are bytes, else f32.
 * *why: why the samples cannot be sent as bytes, or NULL. errors USAGE: uint8 is required, but the
 * samples are not bytes */
rp_err rp_codecs_choose_inputs(rp_node *root, const rp_data *data, rp_codec *inputs,
                               const char **why) RP_MUST_CHECK;

/* Is there a codec other than f32? false for NULL. */
bool rp_codecs_any(const rp_codec (*codec)[2], uint32_t stages);
/* Do all boundaries have equal codecs? true for NULL. */
bool rp_codecs_are_alike(const rp_codec (*codec)[2], uint32_t stages);

#endif
