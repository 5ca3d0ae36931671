#include "data/check.h"

#include <math.h>
#include <poll.h>

enum { BATCH = 64, DEPTH = 2, WAIT_MS = 1000 };

static rp_err check_batch(const rp_data *data, rp_split split, const rp_batch *batch) {
    const size_t width = rp_shape_count(&data->sample);
    for (size_t i = 0; i < batch->count * width; i++) {
        if (!isfinite(batch->x[i])) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s sample %zu: value %zu is not finite",
                           data->kind->name, rp_split_name(split),
                           (size_t)(batch->step * BATCH) + i / width, i % width);
        }
    }
    return RP_OK;
}

static rp_err check_part(const rp_data *data, rp_split split) {
    const uint64_t steps = (data->count[split] + BATCH - 1) / BATCH;
    rp_feeder *feeder = NULL;
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "check", 0);
    RP_TRY(rp_feeder_open(&arena, data, RP_FEEDER_THREAD, split, false, BATCH, 0, steps, DEPTH,
                          &feeder));
    for (uint64_t step = 0; step < steps;) {
        const rp_batch *batch;
        struct pollfd ready = {.fd = rp_feeder_eventfd(feeder), .events = POLLIN};
        (void)poll(&ready, 1, WAIT_MS); /* however long a sample takes: it is asked for again */
        err = rp_feeder_take(feeder, &batch);
        if (err == RP_ERR_AGAIN) {
            continue;
        }
        RP_TRY(err);
        RP_TRY(check_batch(data, split, batch));
        rp_feeder_return(feeder, batch);
        step++;
    }
fail:
    rp_feeder_close(&feeder);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_data_check(const rp_data *data) {
    rp_err err = RP_OK;
    for (rp_split split = RP_SPLIT_TRAIN; split < RP_SPLITS && err == RP_OK; split++) {
        err = data->count[split] > 0 ? check_part(data, split) : RP_OK;
    }
    return err;
}
