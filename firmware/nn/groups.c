#include "nn/groups.h"

enum { WEIGHT, BIAS, LANES = 16, GROUP_ITEMS = 4 };

/* Saved by a forward for each sample. */
static size_t stats_floats(const rp_groups *groups) {
    return (groups->rms ? 1 : 2) * (size_t)groups->rows * groups->groups;
}

void rp_groups_plan(const rp_shape *in, const rp_groups *groups, const rp_shape *affine,
                    rp_layer_plan *out) {
    const double elements = (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = *in,
        .param_count = groups->rms ? 1 : 2,
        .param =
            {
                [WEIGHT] = {"weight", *affine, RP_PARAM_TRAINED, RP_INIT_ONE, 0.0f},
                [BIAS] = {"bias", *affine, RP_PARAM_TRAINED, RP_INIT_ZERO, 0.0f},
            },
        .saved_count = 1,
        .saved = {{.sample_bytes = stats_floats(groups) * sizeof(float)}},
        .needs_x = true,
        /* By its root mean square a single value does not become 0. */
        .sharing = groups->rms ? 0 : groups->wide * groups->pixels,
        .flops_forward = 8.0 * elements,
        .flops_backward = 14.0 * elements,
    };
}

/* Rows in one first-level sum over the batch, as for a bias. */
static uint32_t chunk_images(const rp_groups *groups, uint32_t rows) {
    return rp_layer_chunk_images(rows, groups->pixels == 1 ? LANES : groups->pixels);
}

size_t rp_groups_workspace_bytes(const rp_groups *groups, uint32_t n) {
    const uint32_t rows = n * groups->rows;
    const size_t chunks = rp_layer_divide_up(rows, chunk_images(groups, rows));
    return (groups->rms ? 1 : 2) * chunks * groups->groups * groups->wide * sizeof(float);
}

static rp_err begin(const rp_layer_call *call, const rp_groups *groups, const char *entry,
                    rp_launch *launch) {
    return rp_layer_begin(call, "groupnorm", entry, groups->rms ? "-DRMS=1" : NULL, launch);
}

static void put_sizes(const rp_layer_call *call, const rp_groups *groups, rp_launch *launch) {
    rp_arg_u32(launch, call->n * groups->rows);
    rp_arg_u32(launch, groups->groups);
    rp_arg_u32(launch, groups->wide);
    rp_arg_u32(launch, groups->pixels);
}

rp_err rp_groups_forward(const rp_layer_call *call, const rp_groups *groups, float eps) {
    rp_launch launch;
    rp_err err = begin(call, groups, "group_forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_buffer(&launch, call->saved[0]);
    rp_arg_u32(&launch, call->saved_first * groups->rows);
    rp_arg_buffer(&launch, call->param[WEIGHT]->buffer);
    rp_arg_buffer(&launch, groups->rms ? NULL : call->param[BIAS]->buffer);
    put_sizes(call, groups, &launch);
    rp_arg_f32(&launch, eps);
    return rp_layer_run_items(&launch, (size_t)call->n * groups->rows * groups->groups,
                              GROUP_ITEMS);
}

static void put_gradient(const rp_layer_call *call, const rp_groups *groups, rp_launch *launch) {
    rp_arg_tensor(launch, call->dy);
    rp_arg_tensor(launch, call->x[0]);
    rp_arg_buffer(launch, call->saved[0]);
    rp_arg_u32(launch, call->saved_first * groups->rows);
}

static rp_err backward_parameters(const rp_layer_call *call, const rp_groups *groups) {
    const bool columns = groups->pixels == 1;
    const uint32_t channels = groups->groups * groups->wide;
    const uint32_t rows = call->n * groups->rows;
    const uint32_t images = chunk_images(groups, rows);
    const uint32_t chunks = rp_layer_divide_up(rows, images);
    const size_t items = columns ? rp_layer_divide_up(channels, LANES) : channels;
    rp_launch launch;
    rp_err err;
    RP_TRY(begin(call, groups, columns ? "parameter_columns" : "parameter_planes", &launch));
    rp_arg_buffer(&launch, call->workspace);
    put_gradient(call, groups, &launch);
    put_sizes(call, groups, &launch);
    rp_arg_u32(&launch, images);
    RP_TRY(rp_launch_run(&launch, 2, (size_t[]){items, chunks}, (size_t[]){GROUP_ITEMS, 1}));
    RP_TRY(rp_layer_sum_parts(call, call->dparam[WEIGHT]->buffer, 0, channels, chunks));
    if (!groups->rms) {
        RP_TRY(rp_layer_sum_parts(call, call->dparam[BIAS]->buffer, (uint64_t)chunks * channels,
                                  channels, chunks));
    }
    return RP_OK;
fail:
    return err;
}

static rp_err backward_input(const rp_layer_call *call, const rp_groups *groups) {
    rp_launch launch;
    rp_err err = begin(call, groups, "group_backward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    put_gradient(call, groups, &launch);
    rp_arg_buffer(&launch, call->param[WEIGHT]->buffer);
    put_sizes(call, groups, &launch);
    rp_arg_u32(&launch, call->dx_add[0]);
    return rp_layer_run_items(&launch, (size_t)call->n * groups->rows * groups->groups,
                              GROUP_ITEMS);
}

rp_err rp_groups_backward(const rp_layer_call *call, const rp_groups *groups) {
    rp_err err = RP_OK;
    if (call->want_dw) {
        err = backward_parameters(call, groups);
    }
    if (err == RP_OK && call->want_dx && call->dx[0]) {
        err = backward_input(call, groups);
    }
    return err;
}
