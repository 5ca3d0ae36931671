#include "data/check.h"

#include <math.h>

#include "data/scan.h"

typedef struct {
    const rp_data *data;
    rp_split split;
} part;

static rp_err check_values(const part *p, uint32_t index, const float *x) {
    const size_t width = rp_shape_count(&p->data->sample);
    for (size_t i = 0; i < width; i++) {
        if (!isfinite(x[i])) {
            return rp_fail(RP_ERR_FORMAT, "%s: %s sample %u: value %zu is not finite",
                           p->data->kind->name, rp_split_name(p->split), index, i);
        }
    }
    return RP_OK;
}

/* Reads a sample with its target, as a run would. */
static rp_err check_sample(void *context, uint32_t index) {
    const part *p = context;
    const size_t row_width = rp_data_row_width(p->data);
    const bool has_labels = rp_data_has_labels(p->data);
    int32_t *labels;
    rp_arena scratch;
    float *x;
    float *row;
    rp_err err;
    rp_arena_init(&scratch, "sample", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, rp_shape_count(&p->data->sample), &x));
    RP_TRY(RP_ARENA_NEW(&scratch, row_width, &row));
    RP_TRY(RP_ARENA_NEW(&scratch, row_width, &labels));
    RP_TRY(rp_data_batch(p->data, p->split, 0, &index, 1, false, x, has_labels ? labels : NULL,
                         has_labels ? NULL : row));
    RP_TRY(p->data->type == RP_F32 ? check_values(p, index, x) : RP_OK);
fail:
    rp_arena_finish(&scratch);
    return err;
}

rp_err rp_data_check(const rp_data *data) {
    rp_scan_result result = {0};
    for (rp_split split = RP_SPLIT_TRAIN; split < RP_SPLITS; split++) {
        part p = {data, split};
        const rp_err err = rp_scan(data->count[split], data->workers, check_sample, &p, &result);
        if (err != RP_OK) {
            return err;
        }
    }
    return rp_scan_end(&result);
}
