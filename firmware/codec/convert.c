#include "codec/convert.h"

#include <stdio.h>

#include "device/program.h"

enum { ENTRY_BYTES = 32, GROUP_ITEMS = 64, GROUP_BLOCKS = 8 };

static rp_err check_sizes(rp_codec codec, const rp_tensor *tensor, const rp_buffer *encoded) {
    const size_t count = rp_shape_count(&tensor->shape);
    const size_t samples = tensor->shape.dim[0];
    const size_t bytes = samples > 0 ? samples * rp_codec_bytes(codec, count / samples) : 0;
    return samples > 0 && tensor->dtype == RP_F32 && rp_tensor_fits(tensor, count) &&
                   bytes <= rp_buffer_bytes(encoded)
               ? RP_OK
               : rp_fail(RP_ERR_SHAPE,
                         "codec %s: %zu elements of %zu samples, %zu bytes encoded, do not fit in "
                         "their buffers",
                         rp_codec_name(codec), count, samples, bytes);
}

static rp_err find_kernel(rp_device *device, rp_codec codec, const char *direction,
                          rp_launch *launch) {
    char entry[ENTRY_BYTES];
    rp_kernel *kernel;
    RP_ASSERT(codec != RP_CODEC_F32);
    (void)snprintf(entry, sizeof entry, "%s_%s", direction,
                   rp_codec_kept(codec) > 0 ? "topk" : rp_codec_name(codec));
    const rp_err err = rp_kernel_find(device, "codec", entry, NULL, &kernel);
    if (err == RP_OK) {
        *launch = rp_launch_begin(kernel);
    }
    return err;
}

/* Arguments: elements of one sample and samples if the codec has groups, otherwise all elements. */
static void pass_counts(rp_launch *launch, rp_codec codec, const rp_tensor *tensor) {
    const uint32_t count = (uint32_t)rp_shape_count(&tensor->shape);
    const uint32_t samples = tensor->shape.dim[0];
    if (rp_codec_group(codec) > 1) {
        rp_arg_u32(launch, count / samples);
        rp_arg_u32(launch, samples);
        if (rp_codec_kept(codec) > 0) {
            rp_arg_u32(launch, rp_codec_kept(codec));
        }
    } else {
        rp_arg_u32(launch, count);
    }
}

/* Blocks, tiles, or elements of all samples. */
static size_t group_count(rp_codec codec, const rp_tensor *tensor) {
    const size_t samples = tensor->shape.dim[0];
    const size_t group = rp_codec_group(codec);
    return samples * ((rp_shape_count(&tensor->shape) / samples + group - 1) / group);
}

rp_err rp_codec_encode(rp_device *device, rp_codec codec, rp_buffer *to, const rp_tensor *from) {
    rp_launch launch;
    rp_err err;
    RP_TRY(check_sizes(codec, from, to));
    RP_TRY(find_kernel(device, codec, "encode", &launch));
    rp_arg_buffer(&launch, to);
    rp_arg_tensor(&launch, from);
    pass_counts(&launch, codec, from);
    const size_t items = group_count(codec, from);
    const size_t local = rp_codec_group(codec) > 1 ? GROUP_BLOCKS : GROUP_ITEMS;
    RP_TRY(rp_launch_run(&launch, 1, &items, &local));
fail:
    return err;
}

rp_err rp_codec_decode(rp_device *device, rp_codec codec, const rp_tensor *to,
                       const rp_buffer *from) {
    const size_t count = rp_shape_count(&to->shape);
    const size_t samples = to->shape.dim[0];
    const bool rows =
        codec == RP_CODEC_INT8; /* one work item for each element, although the codec has groups */
    rp_launch launch;
    rp_err err;
    RP_TRY(check_sizes(codec, to, from));
    RP_TRY(find_kernel(device, codec, "decode", &launch));
    rp_arg_tensor(&launch, to);
    rp_arg_buffer(&launch, from);
    pass_counts(&launch, codec, to);
    const size_t items[2] = {rows ? count / samples : group_count(codec, to), samples};
    const bool tiles = !rows && rp_codec_group(codec) > 1;
    RP_TRY(rp_launch_run(&launch, rows ? 2 : 1, items,
                         (size_t[]){tiles ? GROUP_BLOCKS : GROUP_ITEMS, 1}));
fail:
    return err;
}

rp_err rp_codec_add_loss(rp_device *device, rp_buffer *sums, uint32_t place, const rp_tensor *back,
                         const rp_tensor *from) {
    const size_t items = RP_CODEC_LOSS_ITEMS;
    const size_t count = rp_shape_count(&from->shape);
    rp_kernel *kernel;
    rp_err err;
    if (rp_shape_count(&back->shape) != count || back->offset != 0) {
        return rp_fail(RP_ERR_SHAPE, "codec: the loss of %zu elements compared with %zu", count,
                       rp_shape_count(&back->shape));
    }
    RP_TRY(rp_kernel_find(device, "codec", "add_loss", NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, sums);
    rp_arg_u32(&launch, place);
    rp_arg_buffer(&launch, back->buffer);
    rp_arg_tensor(&launch, from);
    rp_arg_u32(&launch, (uint32_t)count);
    RP_TRY(rp_launch_run(&launch, 1, &items, &items));
fail:
    return err;
}

rp_codec_loss rp_codec_sum_loss(const float *sums) {
    rp_codec_loss loss = {0};
    for (uint32_t i = 0; i < RP_CODEC_LOSS_ITEMS; i++) {
        loss.lost += (double)sums[2 * i];
        loss.all += (double)sums[2 * i + 1];
    }
    return loss;
}
