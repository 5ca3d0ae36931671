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
                         "codec %s: %zu elements of %zu samples, as %zu bytes, do not lie in "
                         "their buffers",
                         rp_codec_name(codec), count, samples, bytes);
}

/* Changes are encoded like values, with as many levels. */
static const char *name_of_kernel(rp_codec codec) {
    switch (codec) {
    case RP_CODEC_AQSGD4:
        return rp_codec_name(RP_CODEC_INT4);
    case RP_CODEC_AQSGD2:
        return "int2";
    default:
        return rp_codec_kept(codec) > 0 ? "topk" : rp_codec_name(codec);
    }
}

static rp_err find_kernel(rp_device *device, rp_codec codec, const char *direction,
                          rp_launch *launch) {
    char entry[ENTRY_BYTES];
    rp_kernel *kernel;
    RP_ASSERT(codec != RP_CODEC_F32);
    (void)snprintf(entry, sizeof entry, "%s_%s", direction, name_of_kernel(codec));
    const rp_err err = rp_kernel_find(device, "codec", entry, NULL, &kernel);
    if (err == RP_OK) {
        *launch = rp_launch_begin(kernel);
    }
    return err;
}

/* Elements of all samples, or of each where they are encoded in groups. */
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

/* Of all samples: blocks, tiles, or elements. */
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
    const bool rows = codec == RP_CODEC_INT8; /* an item an element, also where they have scales */
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

/* ---- what is remembered ---------------------------------------------------------------------- */

static rp_err run_on_memory(rp_launch *launch, const rp_codec_memory *memory, const rp_tensor *of,
                            const bool *change) {
    const uint32_t samples = of->shape.dim[0];
    const uint32_t count = samples > 0 ? (uint32_t)(rp_shape_count(&of->shape) / samples) : 0;
    const size_t items[2] = {count, samples};
    if (!rp_tensor_fits(of, rp_shape_count(&of->shape)) || count == 0 ||
        ((size_t)memory->first + samples) * sizeof(uint32_t) > rp_buffer_bytes(memory->order)) {
        return rp_fail(RP_ERR_SHAPE,
                       "codec: %u samples of %u elements from %u on do not lie in their buffers",
                       samples, count, memory->first);
    }
    rp_arg_buffer(launch, memory->samples);
    rp_arg_buffer(launch, memory->order);
    rp_arg_u32(launch, memory->first);
    rp_arg_u32(launch, (uint32_t)(rp_buffer_bytes(memory->samples) / (count * sizeof(uint16_t))));
    rp_arg_u32(launch, count);
    rp_arg_u32(launch, samples);
    if (change) {
        rp_arg_u32(launch, *change);
    }
    return rp_launch_run(launch, 2, items, (size_t[]){GROUP_ITEMS, 1});
}

rp_err rp_codec_change(rp_device *device, const rp_codec_memory *memory, rp_buffer *to,
                       const rp_tensor *from) {
    rp_kernel *kernel;
    rp_err err;
    if (rp_shape_count(&from->shape) * sizeof(float) > rp_buffer_bytes(to)) {
        return rp_fail(RP_ERR_SHAPE, "codec: no room for the changes of %zu elements",
                       rp_shape_count(&from->shape));
    }
    RP_TRY(rp_kernel_find(device, "codec", "change", NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, to);
    rp_arg_tensor(&launch, from);
    RP_TRY(run_on_memory(&launch, memory, from, NULL));
fail:
    return err;
}

rp_err rp_codec_remember(rp_device *device, const rp_codec_memory *memory, const rp_tensor *values,
                         bool change) {
    rp_kernel *kernel;
    rp_err err;
    RP_TRY(rp_kernel_find(device, "codec", "remember", NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_tensor(&launch, values);
    RP_TRY(run_on_memory(&launch, memory, values, &change));
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
        return rp_fail(RP_ERR_SHAPE, "codec: a loss of %zu elements against %zu", count,
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
