/* A tensor is a view of device memory: a buffer, the offset of element 0, type and shape. It is a
 * plain value and owns nothing; views of one buffer may overlap. */
#ifndef RP_DEVICE_TENSOR_H
#define RP_DEVICE_TENSOR_H

#include "base/dtype.h"
#include "base/shape.h"
#include "device/device.h"

typedef struct {
    rp_buffer *buffer; /* borrowed */
    uint64_t offset;   /* of element 0 from the start of the buffer, in elements of `dtype` */
    rp_dtype dtype;    /* kernels compute only f32 */
    rp_shape shape;    /* row-major without gaps; dim[0] counts the samples if there are any */
} rp_tensor;

size_t rp_tensor_bytes(const rp_tensor *tensor);
/* Whether `a` and `b` begin at the same byte, so that a layer works in place. */
bool rp_tensor_same_memory(const rp_tensor *a, const rp_tensor *b);

/* Whether there is a buffer that contains the elements [0, count). */
bool rp_tensor_fits(const rp_tensor *tensor, uint64_t count);

/* A view of the samples [first, first + count) of `tensor`, along dim[0]; nothing is copied.
 * errors  SHAPE: no dimension, no sample, or samples beyond the tensor */
rp_err rp_tensor_slice(const rp_tensor *tensor, uint32_t first, uint32_t count,
                       rp_tensor *out) RP_MUST_CHECK;

/* Enqueues a copy of the whole view; host memory is borrowed until a later fence has passed. */
rp_err rp_tensor_write(rp_device *device, const rp_tensor *to, const void *from) RP_MUST_CHECK;
rp_err rp_tensor_read(rp_device *device, void *to, const rp_tensor *from) RP_MUST_CHECK;

#endif
