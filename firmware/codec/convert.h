/* Encoding and decoding on a device: kernels/codec.cl. */
#ifndef RP_CODEC_CONVERT_H
#define RP_CODEC_CONVERT_H

#include "codec/codec.h"
#include "device/tensor.h"

/* Enqueues; both begin at byte 0 of the buffer, which has rp_codec_bytes() for each sample of the
 * tensor (its first dimension). Any bytes can be decoded. `codec` is not f32, which needs neither.
 * errors  SHAPE: the tensor or the encoding does not lie in its buffer; those of a launch */
rp_err rp_codec_encode(rp_device *device, rp_codec codec, rp_buffer *to,
                       const rp_tensor *from) RP_MUST_CHECK;
rp_err rp_codec_decode(rp_device *device, rp_codec codec, const rp_tensor *to,
                       const rp_buffer *from) RP_MUST_CHECK;

/* What encoding has lost: partial sums of squares that a kernel adds to, a pair an item. */
enum { RP_CODEC_LOSS_ITEMS = 64, RP_CODEC_LOSS_FLOATS = 2 * RP_CODEC_LOSS_ITEMS };

/* Enqueues: adds what `back`, which was encoded and decoded again, has lost of `from`, to the sums
 * numbered `place` of the buffer. What is not finite does not count; what has become infinite is
 * lost. errors SHAPE: their shapes differ; those of a launch */
rp_err rp_codec_add_loss(rp_device *device, rp_buffer *sums, uint32_t place, const rp_tensor *back,
                         const rp_tensor *from) RP_MUST_CHECK;
/* Of RP_CODEC_LOSS_FLOATS floats. */
rp_codec_loss rp_codec_sum_loss(const float *sums);

/* uint8, see pixels.h. `to`: [samples, elements..], elements a multiple of the groups. `values`:
 * rp_pixel_values() errors SHAPE, DEVICE */
rp_err rp_pixels_decode(rp_device *device, const rp_tensor *to, const rp_buffer *from,
                        const rp_buffer *values, uint32_t groups) RP_MUST_CHECK;

#endif
