#include "nn/conv.h"

#include <stdio.h>

enum {
    DIRECT_CHANNELS_MAX = 4, /* of a group */
    DIRECT_KERNEL_MAX = 7,   /* one wide register a column of the kernel */
    GROUP_ROWS = 16
};

rp_conv rp_conv_of(const rp_layer *layer, const rp_layer_plan *plan, const rp_shape *in,
                   uint32_t n) {
    const rp_conv_spec *spec = layer->spec;
    return (rp_conv){.spec = spec,
                     .n = n,
                     .c = in->dim[0],
                     .h = in->dim[1],
                     .w = in->dim[2],
                     .k = spec->out,
                     .p = plan->out.dim[1],
                     .q = plan->out.dim[2],
                     .cg = in->dim[0] / spec->groups,
                     .kg = spec->out / spec->groups,
                     .taps = spec->kernel * spec->kernel};
}

bool rp_conv_is_direct(const rp_conv_spec *spec, uint32_t channels) {
    return spec->groups > 1 && channels / spec->groups <= DIRECT_CHANNELS_MAX &&
           spec->kernel <= DIRECT_KERNEL_MAX;
}

static rp_err begin(const rp_layer_call *call, const rp_conv *conv, const char *entry,
                    rp_launch *launch) {
    char defines[96];
    snprintf(defines, sizeof defines, "-DR=%u -DSTRIDE=%u -DDILATION=%u", conv->spec->kernel,
             conv->spec->stride, conv->spec->dilation);
    return rp_layer_begin(call, "conv", entry, defines, launch);
}

static void add_channels(rp_launch *launch, const rp_conv *conv) {
    rp_arg_u32(launch, conv->c);
    rp_arg_u32(launch, conv->cg);
    rp_arg_u32(launch, conv->k);
    rp_arg_u32(launch, conv->kg);
}

static void add_sizes(rp_launch *launch, const rp_conv *conv) {
    rp_arg_i32(launch, (int32_t)conv->h);
    rp_arg_i32(launch, (int32_t)conv->w);
    rp_arg_i32(launch, (int32_t)conv->p);
    rp_arg_i32(launch, (int32_t)conv->q);
    rp_arg_i32(launch, (int32_t)conv->spec->pad);
}

rp_err rp_conv_direct_forward(const rp_layer_call *call, const rp_conv *conv) {
    rp_launch launch;
    const size_t rows = (size_t)conv->n * conv->k * conv->p;
    rp_err err = begin(call, conv, "direct_forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->y->buffer);
    rp_arg_buffer(&launch, call->x[0]->buffer);
    rp_arg_buffer(&launch, call->param[RP_CONV_WEIGHT]->buffer);
    rp_arg_buffer(&launch, conv->spec->bias ? call->param[RP_CONV_BIAS]->buffer : NULL);
    rp_arg_u32(&launch, (uint32_t)rows);
    add_channels(&launch, conv);
    add_sizes(&launch, conv);
    rp_arg_u32(&launch, conv->spec->relu);
    return rp_layer_run_items(&launch, rows, GROUP_ROWS);
}

rp_err rp_conv_direct_input(const rp_layer_call *call, const rp_conv *conv, rp_rows dy) {
    rp_launch launch;
    const size_t rows = (size_t)conv->n * conv->c * conv->h;
    rp_err err = begin(call, conv, "direct_input", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->dx[0]->buffer);
    rp_arg_buffer(&launch, dy.buffer);
    rp_arg_u64(&launch, dy.first);
    rp_arg_buffer(&launch, call->param[RP_CONV_WEIGHT]->buffer);
    rp_arg_u32(&launch, (uint32_t)rows);
    add_channels(&launch, conv);
    add_sizes(&launch, conv);
    rp_arg_u32(&launch, call->dx_add[0]);
    return rp_layer_run_items(&launch, rows, GROUP_ROWS);
}

size_t rp_conv_direct_part_floats(const rp_conv *conv) {
    return (size_t)conv->k * conv->cg * conv->taps *
           rp_layer_chunk_count(conv->n, (size_t)conv->p * conv->q);
}

rp_err rp_conv_direct_weight(const rp_layer_call *call, const rp_conv *conv, rp_rows dy,
                             uint64_t part_first) {
    rp_launch launch;
    const uint32_t images = rp_layer_chunk_images(conv->n, (size_t)conv->p * conv->q);
    const uint32_t chunks = (conv->n + images - 1) / images;
    const uint32_t lines = conv->k * conv->cg * conv->spec->kernel;
    rp_err err = begin(call, conv, "direct_weight", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, part_first);
    rp_arg_buffer(&launch, dy.buffer);
    rp_arg_u64(&launch, dy.first);
    rp_arg_buffer(&launch, call->x[0]->buffer);
    rp_arg_u32(&launch, conv->n);
    rp_arg_u32(&launch, images);
    add_channels(&launch, conv);
    add_sizes(&launch, conv);
    err = rp_launch_run(&launch, 2, (size_t[]){lines, chunks}, (size_t[]){4, 1});
    return err == RP_OK ? rp_layer_sum_parts(call, call->dparam[RP_CONV_WEIGHT]->buffer, part_first,
                                             lines * conv->spec->kernel, chunks)
                        : err;
}

rp_err rp_conv_gather_columns(const rp_layer_call *call, const rp_conv *conv, uint32_t group,
                              uint32_t first, uint32_t images, uint64_t columns_first) {
    rp_launch launch;
    const size_t rows = (size_t)images * conv->cg * conv->h;
    rp_err err = begin(call, conv, "gather_columns", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->dx[0]->buffer);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, columns_first);
    rp_arg_u32(&launch, (uint32_t)rows);
    rp_arg_u32(&launch, images);
    rp_arg_u32(&launch, first);
    rp_arg_u32(&launch, conv->c);
    rp_arg_u32(&launch, group * conv->cg);
    rp_arg_u32(&launch, conv->cg);
    add_sizes(&launch, conv);
    rp_arg_u32(&launch, call->dx_add[0]);
    return rp_layer_run_items(&launch, rows, GROUP_ROWS);
}
