/* Activations in 16 bits on a device: kernels/storage.cl. nn/rounding.h says which activations. */
#ifndef RP_CODEC_STORAGE_H
#define RP_CODEC_STORAGE_H

#include "device/tensor.h"

/* All of these enqueue, and all samples of the views count. A packed view has the type RP_F16 or
 * RP_BF16, which is the format, and as many elements as the f32 view.
 * errors  SHAPE: a view has another type, exceeds its buffer, or differs in its number of elements;
 *         those of a launch */

/* Rounds each element of x, in place, to a value of the format. */
rp_err rp_storage_round(rp_device *device, rp_dtype format, const rp_tensor *x) RP_MUST_CHECK;
/* Rounds x as above, and stores the rounded values in `to`. */
rp_err rp_storage_pack(rp_device *device, const rp_tensor *to, const rp_tensor *x) RP_MUST_CHECK;
/* Sets x to the values of `from`; nothing is lost. */
rp_err rp_storage_unpack(rp_device *device, const rp_tensor *x,
                         const rp_tensor *from) RP_MUST_CHECK;

#endif
