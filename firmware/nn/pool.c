#include "nn/pool.h"

#include <stdio.h>

enum { KERNEL_MAX = 255, BYTE_KERNEL_MAX = 16, GROUP_ROWS = 16 };

rp_err rp_pool_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    rp_pool_spec *spec = layer->spec;
    rp_err err;
    RP_TRY(rp_node_need(keys, "kernel"));
    RP_TRY(rp_node_u32(keys, "kernel", 1, KERNEL_MAX, &spec->kernel));
    spec->stride = spec->kernel;
    RP_TRY(rp_node_u32(keys, "stride", 1, KERNEL_MAX, &spec->stride));
    RP_TRY(rp_node_u32(keys, "pad", 0, KERNEL_MAX, &spec->pad));
    if (spec->pad > spec->kernel / 2) {
        return rp_node_fail(rp_node_find(keys, "pad"),
                            "expected at most half the kernel, %u, found %u", spec->kernel / 2,
                            spec->pad);
    }
    return RP_OK;
fail:
    return err;
}

rp_err rp_pool_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_pool_spec *spec = layer->spec;
    rp_err err = rp_layer_need_image(layer, in);
    if (err != RP_OK) {
        return err;
    }
    uint32_t p = rp_layer_window_count(in->dim[1], spec->kernel, spec->stride, spec->pad, 1, false);
    uint32_t q = rp_layer_window_count(in->dim[2], spec->kernel, spec->stride, spec->pad, 1, false);
    if (p == 0 || q == 0) {
        char text[RP_LAYER_SHAPE_TEXT];
        return rp_fail(RP_ERR_SHAPE, "layer '%s': a %ux%u window with pad %u does not fit into %s",
                       layer->name, spec->kernel, spec->kernel, spec->pad,
                       rp_layer_shape_text(in, text));
    }
    *out = (rp_layer_plan){.out = rp_shape_3(in->dim[0], p, q)};
    out->flops_forward = (double)rp_shape_count(&out->out) * spec->kernel * spec->kernel;
    out->flops_backward = out->flops_forward;
    return RP_OK;
}

size_t rp_pool_index_bytes(const rp_pool_spec *spec) {
    return spec->kernel <= BYTE_KERNEL_MAX ? 1 : 2;
}

rp_err rp_pool_begin(const rp_layer_call *call, const char *entry, rp_launch *launch) {
    const rp_pool_spec *spec = call->layer->spec;
    char defines[96];
    snprintf(defines, sizeof defines, "-DR=%u -DSTRIDE=%u -DINDEX=%s -DLANES=%u", spec->kernel,
             spec->stride, rp_pool_index_bytes(spec) == 1 ? "uchar" : "ushort",
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
    rp_arg_i32(launch, (int32_t)spec->pad);
    if (add >= 0) {
        rp_arg_u32(launch, (uint32_t)add);
    }
    return rp_layer_run_items(launch, rows, GROUP_ROWS);
}
