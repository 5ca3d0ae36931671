#include "nn/conv.h"

#include <stdio.h>

enum {
    DIRECT_CHANNELS_MAX = 4, /* channels of a group */
    DIRECT_TAPS_MAX = 25,    /* sums in wide registers */
    TILE_FLOATS = 4096,      /* of a plane in local memory: half of a core's L1 cache */
    GROUP_ROWS = 16
};

/* How a correlation iterates over rows of w_out results; see kernels/conv.cl. */
typedef struct {
    rp_pair step;
    uint32_t lanes, tile_w, strip;
    size_t bytes; /* of local memory; 0 if not even one row of results fits */
} tiles;

static rp_pair span_of(const rp_conv_spec *spec) {
    return (rp_pair){spec->dilation.h * (spec->kernel.h - 1),
                     spec->dilation.w * (spec->kernel.w - 1)};
}

static tiles tiles_of(const rp_conv_spec *spec, rp_pair step, uint32_t h_out, uint32_t w_out) {
    tiles t = {.step = step, .lanes = rp_layer_lanes(w_out)};
    const rp_pair span = span_of(spec);
    const uint64_t wide = ((uint64_t)w_out + t.lanes - 1) / t.lanes * t.lanes;
    const uint64_t tile_w = wide * step.w + span.w;
    if (tile_w * (span.h + 1) > TILE_FLOATS) {
        return t;
    }
    const uint64_t strip = (TILE_FLOATS / tile_w - span.h - 1) / step.h + 1;
    t.tile_w = (uint32_t)tile_w;
    t.strip = strip < h_out ? (uint32_t)strip : h_out;
    t.bytes = ((t.strip - 1) * step.h + span.h + 1) * tile_w * sizeof(float);
    return t;
}

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
                     .taps = spec->kernel.h * spec->kernel.w};
}

static tiles tiles_forward(const rp_conv *v) {
    return tiles_of(v->spec, v->spec->stride, v->p, v->q);
}

static tiles tiles_input(const rp_conv *v) {
    return tiles_of(v->spec, rp_pair_same(1), v->h, v->w);
}

bool rp_conv_is_direct(const rp_conv *v) {
    return v->spec->groups > 1 && v->cg <= DIRECT_CHANNELS_MAX && v->taps <= DIRECT_TAPS_MAX &&
           tiles_forward(v).bytes > 0 && tiles_input(v).bytes > 0;
}

static rp_err begin_launch(const rp_layer_call *call, const rp_conv *v, const char *entry, tiles t,
                           bool turned, rp_launch *launch) {
    const rp_conv_spec *spec = v->spec;
    const rp_pair up = turned ? spec->stride : rp_pair_same(1);
    char defines[192];
    snprintf(defines, sizeof defines,
             "-DR=%u -DS=%u -DSTEP_Y=%u -DSTEP_X=%u -DUP_Y=%u -DUP_X=%u -DDILATION_Y=%u "
             "-DDILATION_X=%u -DTURNED=%d -DLANES=%u",
             spec->kernel.h, spec->kernel.w, t.step.h, t.step.w, up.h, up.w, spec->dilation.h,
             spec->dilation.w, turned, t.lanes);
    return rp_layer_begin(call, "conv", entry, defines, launch);
}

static void add_planes(rp_launch *launch, uint32_t h_out, uint32_t w_out, uint32_t h, uint32_t w) {
    rp_arg_i32(launch, (int32_t)h_out);
    rp_arg_i32(launch, (int32_t)w_out);
    rp_arg_i32(launch, (int32_t)h);
    rp_arg_i32(launch, (int32_t)w);
}

/* May be negative. */
static void add_pad(rp_launch *launch, int32_t pad_y, int32_t pad_x) {
    rp_arg_i32(launch, pad_y);
    rp_arg_i32(launch, pad_x);
}

static void add_tiles(rp_launch *launch, const tiles *t) {
    rp_arg_i32(launch, (int32_t)t->strip);
    rp_arg_i32(launch, (int32_t)t->tile_w);
}

static rp_err run_groups(rp_launch *launch, size_t x, size_t y, size_t z) {
    return rp_launch_run(launch, 3, (size_t[]){x, y, z}, (size_t[]){1, 1, 1});
}

rp_err rp_conv_direct_forward(const rp_layer_call *call, const rp_conv *v) {
    rp_launch launch;
    const tiles t = tiles_forward(v);
    rp_err err = begin_launch(call, v, "correlate", t, false, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_buffer(&launch, call->param[RP_CONV_WEIGHT]->buffer);
    rp_arg_buffer(&launch, v->spec->bias ? call->param[RP_CONV_BIAS]->buffer : NULL);
    rp_arg_u32(&launch, v->kg);
    rp_arg_u32(&launch, v->cg);
    add_planes(&launch, v->p, v->q, v->h, v->w);
    add_pad(&launch, (int32_t)v->spec->pad.h, (int32_t)v->spec->pad.w);
    add_tiles(&launch, &t);
    rp_arg_u32(&launch, v->add);
    rp_arg_u32(&launch, v->spec->relu);
    rp_arg_local(&launch, t.bytes);
    return run_groups(&launch, (v->p + t.strip - 1) / t.strip, v->k, v->n);
}

rp_err rp_conv_direct_input(const rp_layer_call *call, const rp_conv *v, rp_rows dy) {
    rp_launch launch;
    const tiles t = tiles_input(v);
    const rp_pair span = span_of(v->spec);
    rp_err err = begin_launch(call, v, "correlate", t, true, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_buffer(&launch, dy.buffer);
    rp_arg_u64(&launch, dy.first);
    rp_arg_buffer(&launch, call->param[RP_CONV_WEIGHT]->buffer);
    rp_arg_buffer(&launch, NULL);
    rp_arg_u32(&launch, v->cg);
    rp_arg_u32(&launch, v->kg);
    add_planes(&launch, v->h, v->w, v->p, v->q);
    add_pad(&launch, (int32_t)span.h - (int32_t)v->spec->pad.h,
            (int32_t)span.w - (int32_t)v->spec->pad.w);
    add_tiles(&launch, &t);
    rp_arg_u32(&launch, call->dx_add[0]);
    rp_arg_u32(&launch, 0);
    rp_arg_local(&launch, t.bytes);
    return run_groups(&launch, (v->h + t.strip - 1) / t.strip, v->c, v->n);
}

size_t rp_conv_direct_part_floats(const rp_conv *v) {
    return (size_t)v->k * v->cg * v->taps * rp_layer_chunk_count(v->n, (size_t)v->p * v->q);
}

rp_err rp_conv_direct_weight(const rp_layer_call *call, const rp_conv *v, rp_rows dy,
                             uint64_t part_first) {
    rp_launch launch;
    const tiles t = tiles_forward(v);
    const uint32_t images = rp_layer_chunk_images(v->n, (size_t)v->p * v->q);
    const uint32_t chunks = (v->n + images - 1) / images;
    rp_err err = begin_launch(call, v, "correlate_weight", t, false, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, part_first);
    rp_arg_buffer(&launch, dy.buffer);
    rp_arg_u64(&launch, dy.first);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_u32(&launch, v->n);
    rp_arg_u32(&launch, images);
    rp_arg_u32(&launch, v->kg);
    rp_arg_u32(&launch, v->cg);
    add_planes(&launch, v->p, v->q, v->h, v->w);
    add_pad(&launch, (int32_t)v->spec->pad.h, (int32_t)v->spec->pad.w);
    add_tiles(&launch, &t);
    rp_arg_local(&launch, t.bytes);
    err = run_groups(&launch, chunks, v->k * v->cg, 1);
    return err == RP_OK ? rp_layer_sum_parts(call, call->dparam[RP_CONV_WEIGHT]->buffer, part_first,
                                             v->k * v->cg * v->taps, chunks)
                        : err;
}

rp_err rp_conv_gather_columns(const rp_layer_call *call, const rp_conv *v, uint32_t group,
                              uint32_t first, uint32_t images, uint64_t columns_first) {
    rp_launch launch;
    const size_t rows = (size_t)images * v->cg * v->h;
    const tiles t = {.step = v->spec->stride, .lanes = 16};
    rp_err err = begin_launch(call, v, "gather_columns", t, false, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u64(&launch, columns_first);
    rp_arg_u32(&launch, (uint32_t)rows);
    rp_arg_u32(&launch, images);
    rp_arg_u32(&launch, first);
    rp_arg_u32(&launch, v->c);
    rp_arg_u32(&launch, group * v->cg);
    rp_arg_u32(&launch, v->cg);
    add_planes(&launch, v->h, v->w, v->p, v->q);
    add_pad(&launch, (int32_t)v->spec->pad.h, (int32_t)v->spec->pad.w);
    rp_arg_u32(&launch, call->dx_add[0]);
    return rp_layer_run_items(&launch, rows, GROUP_ROWS);
}
