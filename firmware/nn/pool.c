#include "nn/pool.h"

#include <stdio.h>

enum { BYTE_CELLS_MAX = 256, GROUP_ROWS = 16 };

/* What kernels/pool.cl calls COUNT. */
typedef enum { COUNT_WINDOW, COUNT_PADDED, COUNT_IMAGE } count_of;

static rp_err check_pad(const rp_node *keys, uint32_t kernel, uint32_t pad) {
    return pad <= kernel / 2 ? RP_OK
                             : rp_node_fail(keys, "expected at most half the kernel, %u, found %u",
                                            kernel / 2, pad);
}

rp_err rp_pool_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    rp_pool_spec *spec = layer->spec;
    rp_err err;
    RP_TRY(rp_node_need(keys, "kernel"));
    RP_TRY(rp_layer_read_pair(keys, "kernel", 1, RP_LAYER_WINDOW_MAX, &spec->kernel));
    spec->stride = spec->kernel;
    RP_TRY(rp_layer_read_pair(keys, "stride", 1, RP_LAYER_WINDOW_MAX, &spec->stride));
    RP_TRY(rp_layer_read_pair(keys, "pad", 0, RP_LAYER_WINDOW_MAX, &spec->pad));
    RP_TRY(check_pad(rp_node_find(keys, "pad"), spec->kernel.h, spec->pad.h));
    RP_TRY(check_pad(rp_node_find(keys, "pad"), spec->kernel.w, spec->pad.w));
    RP_TRY(rp_node_bool(keys, "ceil_mode", &spec->ceil_mode));
fail:
    return err;
}

rp_err rp_pool_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_pool_spec *spec = layer->spec;
    rp_err err = rp_layer_need_image(layer, in);
    if (err != RP_OK) {
        return err;
    }
    const uint32_t p = rp_layer_window_count(in->dim[1], spec->kernel.h, spec->stride.h,
                                             spec->pad.h, 1, spec->ceil_mode);
    const uint32_t q = rp_layer_window_count(in->dim[2], spec->kernel.w, spec->stride.w,
                                             spec->pad.w, 1, spec->ceil_mode);
    if (p == 0 || q == 0) {
        char text[RP_LAYER_SHAPE_TEXT];
        char pad[RP_LAYER_PAIR_TEXT];
        return rp_fail(RP_ERR_SHAPE, "layer '%s': a %ux%u window with pad %s does not fit into %s",
                       layer->name, spec->kernel.h, spec->kernel.w,
                       rp_layer_pair_text(spec->pad, pad), rp_layer_shape_text(in, text));
    }
    *out = (rp_layer_plan){.out = rp_shape_3(in->dim[0], p, q)};
    out->flops_forward = (double)rp_shape_count(&out->out) * spec->kernel.h * spec->kernel.w;
    out->flops_backward = out->flops_forward;
    return RP_OK;
}

size_t rp_pool_index_bytes(const rp_pool_spec *spec) {
    return spec->kernel.h * spec->kernel.w <= BYTE_CELLS_MAX ? 1 : 2;
}

/* A maximum counts nothing, so that it needs no other kernels. */
static count_of count_for(const rp_pool_spec *spec) {
    return !spec->average             ? COUNT_WINDOW
           : !spec->count_include_pad ? COUNT_IMAGE
           : spec->ceil_mode          ? COUNT_PADDED
                                      : COUNT_WINDOW;
}

rp_err rp_pool_begin(const rp_layer_call *call, const char *entry, rp_launch *launch) {
    const rp_pool_spec *spec = call->layer->spec;
    char defines[128];
    snprintf(defines, sizeof defines,
             "-DR=%u -DS=%u -DSTRIDE_Y=%u -DSTRIDE_X=%u -DCOUNT=%d -DINDEX=%s -DLANES=%u",
             spec->kernel.h, spec->kernel.w, spec->stride.h, spec->stride.w, (int)count_for(spec),
             rp_pool_index_bytes(spec) == 1 ? "uchar" : "ushort",
             rp_layer_lanes(call->plan->out.dim[2]));
    return rp_layer_begin(call, "pool", entry, defines, launch);
}

rp_err rp_pool_run(const rp_layer_call *call, rp_launch *launch, uint32_t row_height, int add) {
    const rp_pool_spec *spec = call->layer->spec;
    const rp_shape *in = &call->in[0];
    const rp_shape *out = &call->plan->out;
    const size_t rows = (size_t)call->n * in->dim[0] * row_height;
    rp_arg_u32(launch, (uint32_t)rows);
    rp_arg_i32(launch, (int32_t)in->dim[1]);
    rp_arg_i32(launch, (int32_t)in->dim[2]);
    rp_arg_i32(launch, (int32_t)out->dim[1]);
    rp_arg_i32(launch, (int32_t)out->dim[2]);
    rp_arg_i32(launch, (int32_t)spec->pad.h);
    rp_arg_i32(launch, (int32_t)spec->pad.w);
    if (add >= 0) {
        rp_arg_u32(launch, (uint32_t)add);
    }
    return rp_layer_run_items(launch, rows, GROUP_ROWS);
}
