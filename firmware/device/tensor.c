#include "device/tensor.h"

size_t rp_tensor_bytes(const rp_tensor *tensor) {
    return rp_shape_count(&tensor->shape) * rp_dtype_bytes(tensor->dtype);
}

static size_t offset_bytes(const rp_tensor *tensor) {
    return (size_t)tensor->offset * rp_dtype_bytes(tensor->dtype);
}

bool rp_tensor_same_memory(const rp_tensor *a, const rp_tensor *b) {
    return a->buffer == b->buffer && offset_bytes(a) == offset_bytes(b);
}

bool rp_tensor_fits(const rp_tensor *tensor, uint64_t count) {
    const size_t size = rp_dtype_bytes(tensor->dtype);
    const uint64_t room = tensor->buffer && size > 0 ? rp_buffer_bytes(tensor->buffer) / size : 0;
    return tensor->offset <= room && count <= room - tensor->offset;
}

rp_err rp_tensor_slice(const rp_tensor *tensor, uint32_t first, uint32_t count, rp_tensor *out) {
    const uint32_t samples = tensor->shape.dims > 0 ? tensor->shape.dim[0] : 0;
    if (count == 0 || first >= samples || count > samples - first) {
        return rp_fail(RP_ERR_SHAPE, "samples [%llu, %llu) are outside a tensor of %u samples",
                       (unsigned long long)first, (unsigned long long)first + count, samples);
    }
    const uint64_t each = rp_shape_count(&tensor->shape) / samples;
    *out = *tensor;
    out->offset += first * each;
    out->shape.dim[0] = count;
    return RP_OK;
}

rp_err rp_tensor_write(rp_device *device, const rp_tensor *to, const void *from) {
    return rp_buffer_write(device, to->buffer, offset_bytes(to), from, rp_tensor_bytes(to));
}

rp_err rp_tensor_read(rp_device *device, void *to, const rp_tensor *from) {
    return rp_buffer_read(device, to, from->buffer, offset_bytes(from), rp_tensor_bytes(from));
}
