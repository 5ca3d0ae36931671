/* Batch normalisation of [C] or [C, ...] samples, statistics over the microbatch and all pixels.
 *
 * Training normalises with the biased variance and updates the running statistics once per forward,
 * with the unbiased variance. A single element, where PyTorch raises an error, is normalised to 0
 * and does not update running_var; statistics that are not finite update nothing. `deferred` is
 * torchgpipe's DeferredBatchNorm: the microbatches' statistics are merged and applied once per
 * step, with the biased variance. If the STATE tensors are NULL (a repeated forward), nothing is
 * updated. A renewal (SWA's: reset, then the cumulative mean over forwards) is a momentum of 1,
 * 1/2, 1/3, ...; no method renews `deferred` ones. Frozen, it is a scale and a shift by the running
 * statistics, like torchvision's FrozenBatchNorm2d.
 *
 * Trap: torchgpipe adds up x and x^2; mean and sum of squared deviations are equivalent and do not
 * cancel, so the SCRATCH parameters store these. */
#include "device/program.h"
#include "nn/layer_common.h"

enum {
    WEIGHT,
    BIAS,
    RUNNING_MEAN,
    RUNNING_VAR,
    STEP_MEAN,
    STEP_SQUARE,
    STEP_COUNT,
    CHUNK_ELEMENTS = 4096, /* elements that stay in a core's L1 cache between two passes */
    COLUMN_ROWS = 32,
    LANES = 16,      /* floats processed together by a work-item */
    GROUP_ITEMS = 1, /* WG of kernels/batchnorm.cl */
    CHANNEL_GROUP = 16
};
#define GROUP_DEFINE "-DWG=1"

enum { MODE_DIRECT, MODE_DEFERRED, MODE_KEEP }; /* as in kernels/batchnorm.cl */

typedef struct {
    float eps, momentum;
    bool deferred;
} batchnorm_spec;

/* How n samples are divided into chunks; see kernels/batchnorm.cl. */
typedef struct {
    uint32_t n, channels, pixels, images, piece, chunks, lanes;
} grid;

static grid grid_of(const rp_shape *in, uint32_t n) {
    const uint32_t pixels = (uint32_t)rp_shape_count(in) / in->dim[0];
    grid g = {.n = n, .channels = in->dim[0], .pixels = pixels, .lanes = 1};
    if (pixels == 1) {
        g.images = COLUMN_ROWS;
        g.piece = 1;
        g.chunks = rp_layer_divide_up(n, COLUMN_ROWS);
    } else if (pixels <= CHUNK_ELEMENTS) {
        g.images = CHUNK_ELEMENTS / pixels;
        g.piece = pixels;
        g.chunks = rp_layer_divide_up(n, g.images);
    } else {
        g.images = 1;
        g.piece =
            rp_layer_divide_up(
                rp_layer_divide_up(pixels, rp_layer_divide_up(pixels, CHUNK_ELEMENTS)), LANES) *
            LANES;
        g.chunks = n * rp_layer_divide_up(pixels, g.piece);
    }
    while (g.lanes < GROUP_ITEMS && g.lanes * LANES < g.piece) {
        g.lanes *= 2;
    }
    return g;
}

static rp_err parse_batchnorm(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)data;
    batchnorm_spec *spec = layer->spec;
    rp_err err;
    *spec = (batchnorm_spec){.eps = 1e-5f, .momentum = 0.1f};
    RP_TRY(rp_node_f32(keys, "eps", 0.0, 1e6, &spec->eps));
    RP_TRY(rp_node_f32(keys, "momentum", 0.0, 1.0, &spec->momentum));
    RP_TRY(rp_node_bool(keys, "deferred", &spec->deferred));
    return RP_OK;
fail:
    return err;
}

static rp_err plan_batchnorm(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const batchnorm_spec *spec = layer->spec;
    const bool deferred = spec->deferred && !layer->frozen;
    const double elements = (double)rp_shape_count(in);
    if (in->dims == 0) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': batchnorm needs samples [C] or [C, ...]",
                       layer->name);
    }
    const rp_shape channels = rp_shape_1(in->dim[0]);
    *out = (rp_layer_plan){
        .out = *in,
        .param_count = deferred ? STEP_COUNT + 1 : RUNNING_VAR + 1,
        .param =
            {
                [WEIGHT] = {"weight", channels, RP_PARAM_TRAINED, RP_INIT_ONE, 0.0f},
                [BIAS] = {"bias", channels, RP_PARAM_TRAINED, RP_INIT_ZERO, 0.0f},
                [RUNNING_MEAN] = {"running_mean", channels, RP_PARAM_STATE, RP_INIT_ZERO, 0.0f},
                [RUNNING_VAR] = {"running_var", channels, RP_PARAM_STATE, RP_INIT_ONE, 0.0f},
            },
        .saved_count = !layer->frozen,
        .saved = {{.fixed_bytes = 2 * (size_t)in->dim[0] * sizeof(float)}},
        .needs_x = !layer->frozen,
        .in_place = layer->frozen,
        .whole = !layer->frozen,
        .sharing = layer->frozen ? 0 : (uint32_t)rp_shape_count(in) / in->dim[0],
        .flops_forward = (layer->frozen ? 3.0 : 8.0) * elements,
        .flops_backward = (layer->frozen ? 1.0 : 9.0) * elements,
    };
    if (deferred) {
        const char *const suffix[] = {"step_mean", "step_square", "step_count"};
        for (uint32_t i = STEP_MEAN; i <= STEP_COUNT; i++) {
            out->param[i] =
                (rp_param){suffix[i - STEP_MEAN], channels, RP_PARAM_SCRATCH, RP_INIT_ZERO, 0.0f};
        }
    }
    return RP_OK;
}

static size_t workspace_bytes(const rp_layer *layer, const rp_layer_plan *plan_of,
                              const rp_shape *in, uint32_t n, rp_gemm_choice choice) {
    (void)layer;
    (void)plan_of;
    (void)choice;
    const grid g = grid_of(in, n);
    return (5 + 3 * (size_t)g.chunks) * g.channels * sizeof(float);
}

/* Begins a launch whose grid is one work-item per channel. */
static rp_err begin_launch(const rp_layer_call *call, const char *entry, rp_launch *launch) {
    rp_kernel *kernel;
    rp_err err = rp_kernel_find(call->device, "batchnorm", entry, GROUP_DEFINE, &kernel);
    if (err == RP_OK) {
        *launch = rp_launch_begin(kernel);
    }
    return err;
}

static rp_err run_channels(rp_launch *launch, const grid *g) {
    return rp_launch_run(launch, 1, (size_t[]){g->channels}, (size_t[]){CHANNEL_GROUP});
}

/* Begins a launch over all elements: `entry`, or `columns` for single pixels. */
static rp_err begin_chunks(const rp_layer_call *call, const grid *g, const char *entry,
                           const char *columns, rp_launch *launch) {
    return begin_launch(call, g->pixels == 1 ? columns : entry, launch);
}

/* Adds the arguments that describe the chunks, then `add` unless it is negative, and launches. */
static rp_err run_chunks(rp_launch *launch, const grid *g, int add) {
    rp_arg_u32(launch, g->n);
    rp_arg_u32(launch, g->channels);
    if (g->pixels > 1) {
        rp_arg_u32(launch, g->pixels);
    }
    rp_arg_u32(launch, g->images);
    if (g->pixels > 1) {
        rp_arg_u32(launch, g->piece);
        rp_arg_u32(launch, g->lanes);
    }
    if (add >= 0) {
        rp_arg_u32(launch, (uint32_t)add);
    }
    if (g->pixels == 1) {
        return rp_launch_run(launch, 2,
                             (size_t[]){rp_layer_divide_up(g->channels, LANES), g->chunks},
                             (size_t[]){1, 1});
    }
    return rp_launch_run(launch, 2, (size_t[]){(size_t)g->chunks * GROUP_ITEMS, g->channels},
                         (size_t[]){GROUP_ITEMS, 1});
}

static const rp_buffer *param_of(const rp_layer_call *call, uint32_t index) {
    return call->param[index] ? call->param[index]->buffer : NULL;
}

static rp_err stats_of_batch(const rp_layer_call *call, const grid *g, rp_buffer *stats) {
    const batchnorm_spec *spec = call->layer->spec;
    const bool moves = param_of(call, RUNNING_MEAN) && param_of(call, RUNNING_VAR);
    rp_launch launch;
    rp_err err;
    RP_TRY(begin_chunks(call, g, "moments", "moments_columns", &launch));
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_tensor(&launch, call->x[0]);
    RP_TRY(run_chunks(&launch, g, -1));

    RP_TRY(begin_launch(call, "combine", &launch));
    rp_arg_buffer(&launch, stats);
    for (uint32_t i = RUNNING_MEAN; i <= STEP_COUNT; i++) {
        rp_arg_buffer(&launch, param_of(call, i));
    }
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_u32(&launch, g->channels);
    rp_arg_u32(&launch, g->chunks);
    rp_arg_f32(&launch, spec->eps);
    rp_arg_f32(&launch, call->renewal ? 1.0f / (float)call->renewal : spec->momentum);
    rp_arg_u32(&launch, !moves ? MODE_KEEP : spec->deferred ? MODE_DEFERRED : MODE_DIRECT);
    RP_TRY(run_channels(&launch, g));
    return RP_OK;
fail:
    return err;
}

static rp_err stats_of_running(const rp_layer_call *call, const grid *g, rp_buffer *stats) {
    const batchnorm_spec *spec = call->layer->spec;
    rp_launch launch;
    rp_err err;
    RP_TRY(begin_launch(call, "stats_of_running", &launch));
    rp_arg_buffer(&launch, stats);
    rp_arg_buffer(&launch, param_of(call, RUNNING_MEAN));
    rp_arg_buffer(&launch, param_of(call, RUNNING_VAR));
    rp_arg_u32(&launch, g->channels);
    rp_arg_f32(&launch, spec->eps);
    RP_TRY(run_channels(&launch, g));
    return RP_OK;
fail:
    return err;
}

static rp_err forward_batchnorm(const rp_layer_call *call) {
    const grid g = grid_of(&call->in[0], call->n);
    rp_buffer *stats = call->training && call->saved[0] ? call->saved[0] : call->workspace;
    rp_launch launch;
    rp_err err;
    RP_TRY(call->training ? stats_of_batch(call, &g, stats) : stats_of_running(call, &g, stats));
    RP_TRY(begin_chunks(call, &g, "normalise", "normalise_columns", &launch));
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_buffer(&launch, stats);
    rp_arg_buffer(&launch, param_of(call, WEIGHT));
    rp_arg_buffer(&launch, param_of(call, BIAS));
    RP_TRY(run_chunks(&launch, &g, -1));
    return RP_OK;
fail:
    return err;
}

/* dw and db when wanted, and the coefficients of dx; both need the same two sums. */
static rp_err backward_sums(const rp_layer_call *call, const grid *g, const rp_buffer *stats) {
    rp_launch launch;
    rp_err err;
    RP_TRY(begin_chunks(call, g, "gradient_sums", "gradient_sums_columns", &launch));
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_buffer(&launch, stats);
    RP_TRY(run_chunks(&launch, g, -1));

    RP_TRY(begin_launch(call, "gradient_combine", &launch));
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_buffer(&launch, call->want_dw ? call->dparam[WEIGHT]->buffer : NULL);
    rp_arg_buffer(&launch, call->want_dw ? call->dparam[BIAS]->buffer : NULL);
    rp_arg_buffer(&launch, stats);
    rp_arg_buffer(&launch, param_of(call, WEIGHT));
    rp_arg_u32(&launch, g->channels);
    rp_arg_u32(&launch, g->chunks);
    rp_arg_f32(&launch, (float)g->n * (float)g->pixels);
    rp_arg_u32(&launch, call->training);
    rp_arg_u32(&launch, call->accumulate);
    RP_TRY(run_channels(&launch, g));
    return RP_OK;
fail:
    return err;
}

/* dx (+)= dy weight / sqrt(running_var + eps); does not read x. */
static rp_err backward_frozen(const rp_layer_call *call, const grid *g) {
    rp_launch launch;
    rp_err err;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    RP_TRY(stats_of_running(call, g, call->workspace));
    RP_TRY(begin_chunks(call, g, "scale_gradient", "scale_gradient_columns", &launch));
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_buffer(&launch, call->workspace);
    rp_arg_buffer(&launch, param_of(call, WEIGHT));
    RP_TRY(run_chunks(&launch, g, call->dx_add[0]));
    return RP_OK;
fail:
    return err;
}

static rp_err backward_batchnorm(const rp_layer_call *call) {
    const grid g = grid_of(&call->in[0], call->n);
    if (call->layer->frozen) {
        return backward_frozen(call, &g);
    }
    rp_buffer *stats = call->training ? call->saved[0] : call->workspace;
    rp_launch launch;
    rp_err err;
    if (!call->training) {
        RP_TRY(stats_of_running(call, &g, stats));
    }
    RP_TRY(backward_sums(call, &g, stats));
    if (call->want_dx && call->dx[0]) {
        RP_TRY(begin_chunks(call, &g, "gradient", "gradient_columns", &launch));
        rp_arg_tensor(&launch, call->dx[0]);
        rp_arg_tensor(&launch, call->dy);
        rp_arg_tensor(&launch, call->x[0]);
        rp_arg_buffer(&launch, stats);
        rp_arg_buffer(&launch, call->workspace);
        RP_TRY(run_chunks(&launch, &g, call->dx_add[0]));
    }
    return RP_OK;
fail:
    return err;
}

static rp_err commit_statistics(const rp_layer_call *call) {
    const batchnorm_spec *spec = call->layer->spec;
    const grid g = grid_of(&call->in[0], 1);
    rp_launch launch;
    rp_err err;
    if (!spec->deferred || call->layer->frozen) {
        return RP_OK;
    }
    RP_TRY(begin_launch(call, "commit", &launch));
    for (uint32_t i = RUNNING_MEAN; i <= STEP_COUNT; i++) {
        rp_arg_buffer(&launch, param_of(call, i));
    }
    rp_arg_u32(&launch, g.channels);
    rp_arg_f32(&launch, spec->momentum);
    RP_TRY(run_channels(&launch, &g));
    return RP_OK;
fail:
    return err;
}

const rp_layer_kind rp_layer_batchnorm = {
    .name = "batchnorm",
    .keys = "eps, momentum, deferred",
    .source = "Ioffe & Szegedy 2015; torch.nn.BatchNorm2d; deferred: torchgpipe, METHODS 2",
    .spec_bytes = sizeof(batchnorm_spec),
    .inputs_min = 1,
    .inputs_max = 1,
    .parse = parse_batchnorm,
    .plan = plan_batchnorm,
    .workspace_bytes = workspace_bytes,
    .forward = forward_batchnorm,
    .backward = backward_batchnorm,
    .commit = commit_statistics,
};
