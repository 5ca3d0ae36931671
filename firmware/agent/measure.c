#include "agent/measure.h"

#include <inttypes.h>
#include <stdio.h>

#include "agent/measure_overhead.h"
#include "agent/profile.h"
#include "base/median.h"

enum { ROUNDS = 5, ROUNDS_MAX = 11, REPEATS_MAX = 64 };
static const double WORTH_S = 0.0005; /* a repeat has as many passes as take this long */
static const double SPREAD_MOST = 0.2;
/* part of the time shared equally by all layers; the rest is shared by work */
static const double SHARED_PART = 0.5;
static const double BESIDES_PART = 0.1;

static const rp_op_kind op_of[RP_MEASURED_PASSES] = {
    [RP_MEASURED_FORWARD] = RP_OP_FORWARD,
    [RP_MEASURED_BACKWARD] = RP_OP_BACKWARD,
    [RP_MEASURED_BACKWARD_INPUT] = RP_OP_BACKWARD_INPUT,
    [RP_MEASURED_BACKWARD_WEIGHT] = RP_OP_BACKWARD_WEIGHT,
};

/* The measurement of one layer. */
typedef struct {
    rp_stage *stage;
    const rp_measure_order *order;
    uint32_t sizes; /* sizes of the order for which this layer has memory and time */
    double time_s;  /* limit of its time; then the time used */
    double spent_s;
    uint32_t passes[RP_MEASURED_SIZES_MAX][RP_MEASURED_PASSES]; /* in a repeat */
    uint32_t count[RP_MEASURED_SIZES_MAX][RP_MEASURED_PASSES];
    double repeat_s[RP_MEASURED_SIZES_MAX][RP_MEASURED_PASSES][ROUNDS_MAX];
} layer_work;

/* ---- one layer ------------------------------------------------------------------------------- */

static rp_err time_pass(layer_work *w, uint32_t size, uint32_t pass, uint32_t passes, double *out) {
    const rp_err err =
        rp_stage_time_op(w->stage, op_of[pass], w->order->samples[size], passes, out);
    w->spent_s += err == RP_OK ? *out * passes : 0;
    return err;
}

/* Runs each size once: this loads kernels and determines the passes of a repeat. A size whose
 * passes would take more than the remaining time is omitted, with all larger ones. */
static rp_err try_sizes(layer_work *w) {
    rp_err err = RP_OK;
    double last_s = 0;
    for (uint32_t i = 0; i < w->sizes; i++) {
        const double growth = i > 0 ? (double)w->order->samples[i] / w->order->samples[i - 1] : 0;
        double all_s = 0;
        if (i > 0 && w->spent_s + 2 * growth * last_s > w->time_s) {
            w->sizes = i;
        }
        for (uint32_t p = 0; p < RP_MEASURED_PASSES && i < w->sizes; p++) {
            double once_s;
            RP_TRY(time_pass(w, i, p, 1, &once_s));
            RP_TRY(time_pass(w, i, p, 1, &once_s)); /* again, without loading kernels */
            const double passes = WORTH_S / (once_s + 1e-9);
            w->passes[i][p] = passes > REPEATS_MAX ? REPEATS_MAX
                              : passes > 1         ? (uint32_t)passes
                                                   : 1;
            w->repeat_s[i][p][0] = once_s;
            all_s += once_s;
        }
        last_s = all_s;
    }
fail:
    return err;
}

static bool wants_more(const layer_work *w, uint32_t size, uint32_t pass, uint32_t round) {
    double sorted[ROUNDS_MAX];
    double median;
    double spread;
    for (uint32_t i = 0; i < w->count[size][pass]; i++) {
        sorted[i] = w->repeat_s[size][pass][i];
    }
    rp_median(sorted, w->count[size][pass], &median, &spread);
    return round < ROUNDS || spread > SPREAD_MOST;
}

static rp_err run_rounds(layer_work *w) {
    rp_err err = RP_OK;
    bool any = true;
    for (uint32_t round = 0; round < ROUNDS_MAX && any; round++) {
        any = false;
        for (uint32_t i = 0; i < w->sizes; i++) {
            for (uint32_t p = 0; p < RP_MEASURED_PASSES; p++) {
                const bool late = round > 0 && w->spent_s > w->time_s;
                if (!late && wants_more(w, i, p, round)) {
                    RP_TRY(time_pass(w, i, p, w->passes[i][p], &w->repeat_s[i][p][w->count[i][p]]));
                    w->count[i][p]++;
                    any = true;
                }
            }
        }
    }
fail:
    return err;
}

static void put_nothing(const rp_measure_order *order, uint32_t layers, uint32_t layer,
                        double *values) {
    for (uint32_t i = 0; i < order->sizes; i++) {
        for (uint32_t p = 0; p < RP_MEASURED_PASSES; p++) {
            values[rp_measured_at(layers, i, layer, p) + 1] = -1;
        }
    }
}

static bool is_asked_for(const rp_measure_order *order, uint32_t layer) {
    bool found = order->layers == 0;
    for (uint32_t i = 0; i < order->layers; i++) {
        found = found || order->layer[i] == layer;
    }
    return found;
}

static void put_values(layer_work *w, uint32_t layers, uint32_t layer, double *values) {
    for (uint32_t i = 0; i < w->order->sizes; i++) {
        for (uint32_t p = 0; p < RP_MEASURED_PASSES; p++) {
            double *at = &values[rp_measured_at(layers, i, layer, p)];
            at[0] = 0;
            at[1] = -1;
            if (i < w->sizes) {
                rp_median(w->repeat_s[i][p], w->count[i][p], &at[0], &at[1]);
            }
        }
    }
}

/* Prepares a stage of the layer alone, with the largest microbatch for which there is memory. Its
 * schedule splits backwards; its stage can also run whole ones. */
static rp_err prepare_layer(rp_arena *arena, const rp_executor_kind *kind, const rp_site *site,
                            const rp_job *job, uint32_t index, layer_work *w) {
    uint32_t first[4];
    rp_err err = RP_ERR_MEMORY;
    for (; w->sizes > 0; w->sizes--) {
        rp_job alone = rp_profile_job(job, index, first);
        alone.method.kind = rp_sched_find("zb-h1");
        alone.batch = alone.micro = w->order->samples[w->sizes - 1];
        rp_arena_finish(arena);
        rp_arena_init(arena, "measure", 0);
        rp_job *own;
        RP_TRY(RP_ARENA_NEW(arena, 1, &own));
        *own = alone;
        err = rp_stage_prepare(arena, kind, site, own, &w->stage);
        if (err == RP_OK || w->sizes == 1 || (err != RP_ERR_MEMORY && err != RP_ERR_LIMIT)) {
            break;
        }
        rp_stage_destroy(&w->stage);
    }
fail:
    return err;
}

static rp_err measure_layer(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                            uint32_t index, layer_work *w, double *values) {
    const uint32_t layers = job->model->layer_count;
    rp_arena arena;
    rp_err err;
    double warm_s;
    rp_arena_init(&arena, "measure", 0);
    RP_TRY(prepare_layer(&arena, kind, site, job, index, w));
    RP_TRY(try_sizes(w));
    RP_TRY(run_rounds(w));
    put_values(w, layers, index, values);
    double *update_s = &values[rp_measured_update_at(layers, w->order->sizes, index)];
    RP_TRY(rp_stage_time_op(w->stage, RP_OP_UPDATE, 0, 1, &warm_s));
    RP_TRY(rp_stage_time_op(w->stage, RP_OP_UPDATE, 0, ROUNDS, update_s));
fail:
    rp_stage_destroy(&w->stage);
    rp_arena_finish(&arena);
    return err;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static rp_err time_copy(rp_device *device, rp_buffer *buffer, void *memory, uint32_t copy,
                        double *out) {
    const size_t bytes = RP_MEASURED_COPY_BYTES[copy % 2];
    const rp_clock clock = rp_clock_real();
    double repeat_s[ROUNDS];
    double spread;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const int64_t start_ns = rp_clock_now_ns(&clock);
        RP_TRY(copy < 2 ? rp_buffer_write_now(device, buffer, 0, memory, bytes)
                        : rp_buffer_read_now(device, memory, buffer, 0, bytes));
        repeat_s[i] = (double)(rp_clock_now_ns(&clock) - start_ns) * 1e-9;
    }
    rp_median(repeat_s, ROUNDS, out, &spread);
fail:
    return err;
}

static rp_err measure_copies(rp_device *device, double *out) {
    rp_darena *memory = NULL;
    rp_buffer *buffer;
    char *bytes;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "copies", 0);
    RP_TRY(RP_ARENA_NEW(&arena, RP_MEASURED_COPY_BYTES[1], &bytes));
    RP_TRY(rp_darena_open(&arena, device, "copies", 0, 0, &memory));
    RP_TRY(rp_darena_take(memory, RP_MEASURED_COPY_BYTES[1], &buffer));
    for (uint32_t i = 0; i < RP_MEASURED_COPIES; i++) {
        RP_TRY(time_copy(device, buffer, bytes, i, &out[i]));
    }
fail:
    rp_darena_close(&memory);
    rp_arena_finish(&arena);
    return err;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* FNV-1a, by G. Fowler, L. C. Noll, K.-P. Vo */
static uint64_t add_text(uint64_t key, const char *text) {
    do {
        key = (key ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    } while (*text++);
    return key;
}

void rp_measure_kind(const rp_device *device, char *out, size_t bytes) {
    const rp_device_facts *facts = rp_device_facts_of(device);
    const rp_tuning_origin *tuning = rp_device_tuning_origin(device);
    const char *const texts[] = {facts->platform,
                                 facts->name,
                                 facts->vendor,
                                 facts->driver,
                                 facts->version,
                                 tuning->applied ? tuning->applied : "",
                                 rp_gemm_choice_name(rp_device_gemm(device))};
    uint64_t key = UINT64_C(0xcbf29ce484222325);
    char units[16];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        key = add_text(key, texts[i]);
    }
    (void)snprintf(units, sizeof units, "%u", facts->compute_units);
    (void)snprintf(out, bytes, "%016" PRIx64, add_text(key, units));
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Divides the time: one part equally among all layers, one by their work. */
static double time_of(const rp_job *job, uint32_t layer, double all_s) {
    const rp_model *model = job->model;
    const double whole = rp_model_flops_forward(model, 0, model->layer_count);
    const double own = rp_model_flops_forward(model, layer, layer + 1);
    const double work = whole > 0 ? own / whole : 0;
    return all_s * (SHARED_PART / model->layer_count + (1 - SHARED_PART) * work);
}

rp_err rp_measure_layers(rp_device_builder *builder, const rp_executor_kind *kind,
                         const rp_site *site, const rp_job *job, const rp_measure_order *order,
                         double *values) {
    const uint32_t layers = job->model->layer_count;
    layer_work *work;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "measure", 0);
    RP_TRY(RP_ARENA_NEW(&arena, 1, &work));
    for (uint32_t i = 0; i < layers; i++) {
        rp_device_builder_say(builder, i, layers);
        RP_TRY(rp_profile_refuse_cancelled(builder));
        if (!is_asked_for(order, i)) {
            put_nothing(order, layers, i, values);
            continue;
        }
        *work = (layer_work){
            .order = order, .sizes = order->sizes, .time_s = time_of(job, i, order->seconds)};
        RP_TRY(measure_layer(kind, site, job, i, work, values));
    }
    if (site->device) {
        RP_TRY(measure_copies(site->device, &values[rp_measured_copy_at(layers, order->sizes, 0)]));
        RP_TRY(order->besides
                   ? rp_measure_overhead(kind, site, job, order, BESIDES_PART * order->seconds,
                                         &values[rp_measured_besides_at(layers, order->sizes, 0)])
                   : RP_OK);
    }
    rp_device_builder_say(builder, layers, layers);
fail:
    rp_arena_finish(&arena);
    return err;
}
