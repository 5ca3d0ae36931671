#include "predict/evaluate.h"

#include <poll.h>

#include "base/clock.h"

enum { DEPTH = 2, WAIT_MS = 1000 };

/* Class of a sample. With mixup in the run file the target is a row, which is one-hot in
 * evaluation. */
static int32_t label_of(const rp_data *data, const rp_batch *batch, uint32_t index) {
    const float *row = batch->rows + (size_t)index * rp_data_row_width(data);
    uint32_t class = 0;
    while (class < data->classes && !(row[class] > 0.5f)) {
        class ++;
    }
    return (int32_t) class;
}

/* The outputs for target `index` of a sample. Those of pixels are [outputs, pixels]: they are
 * gathered in `row`. */
static const float *outputs_of(const rp_data *data, const float *y, uint32_t index,
                               uint32_t outputs, float *row) {
    for (uint32_t k = 0; data->masks && k < outputs; k++) {
        row[k] = y[(size_t)k * data->target_width + index];
    }
    return data->masks ? row : y + (size_t)index * outputs;
}

/* Adds the `count` targets of a sample that count. y: its outputs; row: [out->outputs] scratch. */
static rp_err add_labels(const rp_data *data, const int32_t *label, uint32_t count, const float *y,
                         float smoothing, float *row, rp_confusion *out) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (!data->ignores || label[i] != data->ignore) {
            RP_TRY(rp_confusion_add(out, outputs_of(data, y, i, out->outputs, row), label[i],
                                    smoothing));
        }
    }
fail:
    return err;
}

/* y: [micro][outputs of a sample], then room for a row of `out`. */
static rp_err add_batch(rp_network *network, const rp_data *data, const rp_batch *batch, float *y,
                        float smoothing, rp_confusion *out) {
    const uint32_t outputs = rp_network_outputs_at(network, batch->time);
    const uint32_t width = rp_batch_row_width(data, batch);
    float *row = y + (size_t)rp_network_micro(network) * rp_network_outputs(network);
    rp_err err;
    RP_TRY(rp_network_run(network, batch->time, batch->x, batch->count, y));
    for (uint32_t i = 0; i < batch->count; i++) {
        const float *own = y + (size_t)i * outputs;
        if (batch->labels) {
            const int32_t *labels = batch->labels + (size_t)i * width;
            RP_TRY(add_labels(data, labels, width - data->ignores, own, smoothing, row, out));
            out->sequences++;
        } else if (data->classes > 0) {
            RP_TRY(rp_confusion_add(out, own, label_of(data, batch, i), smoothing));
        } else {
            RP_TRY(rp_confusion_add_values(out, own, batch->rows + (size_t)i * outputs));
        }
    }
fail:
    return err;
}

static void show_progress(FILE *file, uint32_t so_far, uint32_t all, int64_t *shown_ns) {
    const rp_clock clock = rp_clock_real();
    const int64_t now_ns = rp_clock_now_ns(&clock);
    if (file && now_ns - *shown_ns >= RP_NS_PER_S / 5) {
        *shown_ns = now_ns;
        (void)fprintf(file, "\r\033[K%u of %u samples", so_far, all);
        (void)fflush(file);
    }
}

rp_err rp_evaluate_part(rp_network *network, const rp_data *data, rp_split split, float smoothing,
                        FILE *progress, rp_confusion *out) {
    const uint32_t micro = rp_network_micro(network);
    const uint64_t steps = (data->count[split] - 1) / micro + 1;
    rp_feeder *feeder = NULL;
    int64_t shown_ns = 0;
    uint32_t done = 0;
    rp_arena arena;
    float *y;
    rp_err err;
    RP_ASSERT(data->count[split] > 0);
    rp_arena_init(&arena, "evaluation", 0);
    RP_TRY(RP_ARENA_NEW(&arena, (size_t)micro * rp_network_outputs(network) + out->outputs, &y));
    RP_TRY(rp_feeder_open(&arena, data, RP_FEEDER_THREAD, split, false, micro, 0, steps, DEPTH,
                          &feeder));
    for (uint64_t step = 0; step < steps;) {
        const rp_batch *batch;
        struct pollfd ready = {.fd = rp_feeder_eventfd(feeder), .events = POLLIN};
        (void)poll(&ready, 1, WAIT_MS); /* the loop repeats if a sample takes longer */
        err = rp_feeder_take(feeder, &batch);
        if (err == RP_ERR_AGAIN) {
            continue;
        }
        RP_TRY(err);
        const uint32_t count = batch->count;
        err = add_batch(network, data, batch, y, smoothing, out);
        rp_feeder_return(feeder, batch);
        RP_TRY(err);
        done += count;
        show_progress(progress, done, data->count[split], &shown_ns);
        step++;
    }
    if (out->samples == 0) {
        err = rp_split_refuse_uncounted(split);
    }
fail:
    if (progress && shown_ns > 0) {
        (void)fprintf(progress, "\r\033[K");
        (void)fflush(progress);
    }
    rp_feeder_close(&feeder);
    rp_arena_finish(&arena);
    return err;
}
