/* Encoding inputs on a host, bit for bit as the kernels do. */
#ifndef RP_CODEC_ENCODE_H
#define RP_CODEC_ENCODE_H

#include "codec/codec.h"

/* Encodes `samples` of `count` f32 each, which are contiguous, into rp_codec_bytes() for each. The
 * codec must be one for inputs. uint8: values must be k / 255, not normalised. */
void rp_codec_encode_host(rp_codec codec, const float *from, size_t samples, size_t count,
                          uint8_t *to);

#endif
