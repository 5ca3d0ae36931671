/* Histograms of the weights, counted while a save receives them, so they cost the run nothing
 * else. */
#include <string.h>

#include "keep/keep_own.h"

rp_err rp_histograms_begin(rp_keep *keep) {
    rp_save *save = &keep->save;
    const rp_runfile *run = keep->needs.run;
    rp_err err = RP_OK;
    RP_ASSERT(save->writer != NULL);
    save->histogram = NULL;
    if (run->record.histograms && save->step > save->drawn_step) {
        RP_TRY(RP_ARENA_NEW(&save->arena, run->model->param_count, &save->histogram));
        RP_TRY(RP_ARENA_NEW(&save->arena, RP_HISTOGRAM_BUCKETS, &save->limit));
        rp_histogram_limits(save->limit);
    }
fail:
    return err;
}

/* Tensors of the optimiser and of replicas have other names. */
void rp_histograms_add(rp_keep *keep, const char *name, const void *floats, size_t count) {
    const rp_model *model = keep->needs.run->model;
    for (uint32_t i = 0; keep->save.histogram && i < model->param_count; i++) {
        if (strcmp(model->param[i].name, name) == 0) {
            rp_histogram_add(&keep->save.histogram[i], keep->save.limit, floats, count);
            return;
        }
    }
}

/* Reports all of them in one line. */
static rp_err note_not_finite(rp_keep *keep) {
    const rp_model *model = keep->needs.run->model;
    const rp_histogram *histogram = keep->save.histogram;
    uint32_t tensors = 0;
    uint32_t first = 0;
    for (uint32_t i = model->param_count; i-- > 0;) {
        const bool any = histogram[i].nan + histogram[i].infinite > 0;
        tensors += any;
        first = any ? i : first;
    }
    if (tensors == 0) {
        return RP_OK;
    }
    return rp_record_event(rp_keep_record(keep),
                           &(rp_run_event){.kind = RP_EVENT_NOT_FINITE,
                                           .step = keep->save.step,
                                           .tensor = model->param[first].name,
                                           .nan = histogram[first].nan,
                                           .infinite = histogram[first].infinite,
                                           .values = model->param[first].count,
                                           .tensors = tensors});
}

rp_err rp_histograms_end(rp_keep *keep) {
    const rp_model *model = keep->needs.run->model;
    rp_save *save = &keep->save;
    rp_err err = RP_OK;
    if (!save->histogram) {
        return RP_OK;
    }
    RP_ASSERT(save->boards_left == 0);
    RP_ASSERT(save->step > save->drawn_step);
    for (uint32_t i = 0; i < model->param_count; i++) {
        const bool is_owner = model->param[i].owner == i; /* a tied tensor is saved once */
        RP_TRY(is_owner ? rp_record_histogram(rp_keep_record(keep), save->step,
                                              model->param[i].name, &save->histogram[i])
                        : RP_OK);
    }
    RP_TRY(note_not_finite(keep));
    save->drawn_step = save->step;
    save->histogram = NULL;
fail:
    return err;
}
