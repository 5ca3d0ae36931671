#include "codec/pixels.h"

#include "codec/convert.h"
#include "device/program.h"

enum { GROUP_ITEMS = 64 };

void rp_pixel_values(const rp_pixel_norm *norm, float *value) {
    for (uint32_t g = 0; g < norm->groups; g++) {
        for (uint32_t b = 0; b < RP_PIXEL_LEVELS; b++) {
            const float pixel = (float)b / 255.0f;
            *value++ = (pixel - norm->mean[g]) / norm->deviation[g];
        }
    }
}

static rp_err check_sizes(const rp_tensor *to, const rp_buffer *from, const rp_buffer *values,
                          uint32_t groups) {
    const size_t count = rp_shape_count(&to->shape);
    const size_t samples = to->shape.dim[0];
    const size_t value_bytes = (size_t)groups * RP_PIXEL_LEVELS * sizeof(float);
    return samples > 0 && groups > 0 && count / samples % groups == 0 && to->dtype == RP_F32 &&
                   rp_tensor_fits(to, count) && count <= rp_buffer_bytes(from) &&
                   value_bytes <= rp_buffer_bytes(values)
               ? RP_OK
               : rp_fail(RP_ERR_SHAPE,
                         "codec uint8: %zu elements of %zu samples in %u groups do not fit in "
                         "their buffers",
                         count, samples, groups);
}

rp_err rp_pixels_decode(rp_device *device, const rp_tensor *to, const rp_buffer *from,
                        const rp_buffer *values, uint32_t groups) {
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(check_sizes(to, from, values, groups));
    RP_TRY(rp_kernel_find(device, "pixels", "decode_uint8", NULL, &kernel));
    const size_t count = rp_shape_count(&to->shape);
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_tensor(&launch, to);
    rp_arg_buffer(&launch, from);
    rp_arg_buffer(&launch, values);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_u32(&launch, groups);
    rp_arg_u32(&launch, (uint32_t)(count / to->shape.dim[0] / groups));
    RP_TRY(rp_launch_run(&launch, 1, &count, (size_t[]){GROUP_ITEMS}));
fail:
    return err;
}
