#include "device/program.h"
#include "optim/optim.h"

enum { CHUNK_ELEMENTS = 16384, TENSOR_GROUP = 16 };
#define DEFINES "-DCHUNK=16384 -DWG=1"

/* Every tensor has at most one chunk that is not full. */
static size_t chunk_count_max(size_t g_bytes, uint32_t tensor_count) {
    return g_bytes / sizeof(float) / CHUNK_ELEMENTS + tensor_count;
}

size_t rp_grad_sumsq_bytes(size_t g_bytes, uint32_t tensor_count) {
    return (tensor_count + chunk_count_max(g_bytes, tensor_count)) * sizeof(float);
}

rp_err rp_grad_sumsq(rp_device *device, const rp_buffer *g, const rp_buffer *spans,
                     uint32_t tensor_count, rp_buffer *out) {
    const size_t g_bytes = rp_buffer_bytes(g);
    const size_t need_bytes = rp_grad_sumsq_bytes(g_bytes, tensor_count);
    rp_kernel *kernel;
    rp_err err;
    if (rp_buffer_bytes(out) < need_bytes) {
        return rp_fail(RP_ERR_LIMIT,
                       "gradient norm: the buffer for results has %zu bytes, %zu are needed",
                       rp_buffer_bytes(out), need_bytes);
    }
    RP_TRY(rp_kernel_find(device, "norm", "sumsq_chunks", DEFINES, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, g);
    rp_arg_buffer(&launch, spans);
    rp_arg_u32(&launch, tensor_count);
    rp_arg_u32(&launch, tensor_count);
    RP_TRY(rp_launch_run(&launch, 1, (size_t[]){chunk_count_max(g_bytes, tensor_count)},
                         (size_t[]){1}));

    RP_TRY(rp_kernel_find(device, "norm", "sumsq_tensors", DEFINES, &kernel));
    launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, spans);
    rp_arg_u32(&launch, tensor_count);
    rp_arg_u32(&launch, tensor_count);
    RP_TRY(rp_launch_run(&launch, 1, (size_t[]){tensor_count}, (size_t[]){TENSOR_GROUP}));
    return RP_OK;
fail:
    return err;
}
