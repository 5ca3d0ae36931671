/* `links: {codec: ...}`: how activations and gradients travel through each boundary of the cut.
 *
 *   links: {inputs: int8, codec: f16}                      and what the host sends; absent: auto,
 *                                                          uint8 where the data set has bytes
 *   links: {codec: int8}                                   all of them
 *   links: {codec: {activations: int8, gradients: f16}}    by direction; one that is absent is f32;
 *                                                          topk-.. for gradients only
 *   links: {codec: [f32, {gradients: bf16}, int8]}         by boundary, in the order of the stages
 *   links: {codec: auto, max_error: 0.05}                  chosen by the controller: the mildest
 *          that stops a wire from holding the boards back; milder ones where more is lost
 */
#ifndef RP_RUN_CODECS_H
#define RP_RUN_CODECS_H

#include "base/config.h"
#include "codec/codec.h"
#include "data/data.h"

typedef struct {
    const rp_codec (*at)[2]; /* by boundary [stages - 1], of activations and of gradients; NULL: the
                                file says nothing, or auto */
    rp_codec inputs;         /* RP_CODECS for auto */
    bool is_auto;
    double max_error; /* auto: relative L2 error of a boundary and direction that is accepted */
} rp_codecs;

/* In `arena`. errors USAGE with file, line and key; MEMORY */
rp_err rp_codecs_read(rp_arena *arena, rp_node *root, uint32_t stages,
                      rp_codecs *out) RP_MUST_CHECK;
/* What `inputs` means for this data set: auto is uint8 where it has bytes, else f32. *why: not
 * bytes, or NULL. errors USAGE: uint8 is asked for, and it has none */
rp_err rp_codecs_choose_inputs(rp_node *root, const rp_data *data, rp_codec *inputs,
                               const char **why) RP_MUST_CHECK;

/* Any but f32? Of NULL: no. */
bool rp_codecs_any(const rp_codec (*codec)[2], uint32_t stages);
/* The same at every boundary? Of NULL: yes. */
bool rp_codecs_are_alike(const rp_codec (*codec)[2], uint32_t stages);

#endif
