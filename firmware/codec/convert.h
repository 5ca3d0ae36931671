/* Encoding and decoding on a device: kernels/codec.cl. */
#ifndef RP_CODEC_CONVERT_H
#define RP_CODEC_CONVERT_H

#include "codec/codec.h"
#include "device/tensor.h"

/* Enqueue a conversion. Samples are the tensor's first dimension; the encoded buffer has
 * rp_codec_bytes() for each, from byte 0 on. Decoding accepts any bytes. `codec` must not be f32.
 * errors  SHAPE: the tensor or the encoding does not fit in its buffer; those of a launch */
rp_err rp_codec_encode(rp_device *device, rp_codec codec, rp_buffer *to,
                       const rp_tensor *from) RP_MUST_CHECK;
rp_err rp_codec_decode(rp_device *device, rp_codec codec, const rp_tensor *to,
                       const rp_buffer *from) RP_MUST_CHECK;

/* Losses: partial sums that a kernel adds to, a pair for each work item. */
enum { RP_CODEC_LOSS_ITEMS = 64, RP_CODEC_LOSS_FLOATS = 2 * RP_CODEC_LOSS_ITEMS };

/* Enqueues: adds the loss of `back`, which is `from` encoded and decoded again, to the sums with
 * index `place` of the buffer. Elements that are not finite are ignored; one that has become
 * infinite counts as lost. errors SHAPE: the shapes differ; those of a launch */
rp_err rp_codec_add_loss(rp_device *device, rp_buffer *sums, uint32_t place, const rp_tensor *back,
                         const rp_tensor *from) RP_MUST_CHECK;
/* sums: RP_CODEC_LOSS_FLOATS. */
rp_codec_loss rp_codec_sum_loss(const float *sums);

/* Decodes uint8, see pixels.h. to: [samples, elements..], where elements is a multiple of the
 * groups; values: from rp_pixel_values(). errors SHAPE, DEVICE */
rp_err rp_pixels_decode(rp_device *device, const rp_tensor *to, const rp_buffer *from,
                        const rp_buffer *values, uint32_t groups) RP_MUST_CHECK;

#endif
