/* The same encoding on a host, for inputs: bit for bit what the kernels give. */
#ifndef RP_CODEC_ENCODE_H
#define RP_CODEC_ENCODE_H

#include "codec/codec.h"

/* Of a codec that inputs may have. uint8: of pixels that nobody has normalised, k / 255 each.
 * `samples` of `count` f32 each, one behind the other, into rp_codec_bytes() for each. */
void rp_codec_encode_host(rp_codec codec, const float *from, size_t samples, size_t count,
                          uint8_t *to);

#endif
