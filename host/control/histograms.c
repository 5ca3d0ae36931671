/* Histograms of the weights: counted as a save brings them, so they cost a run nothing else. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"

rp_err rp_histograms_begin(rp_controller *c) {
    rp_err err = RP_OK;
    c->keep.save.histogram = NULL;
    if (c->run.histograms && c->train.position.step > c->keep.save.drawn_step) {
        RP_TRY(
            RP_ARENA_NEW(&c->keep.save.arena, c->run.model->param_count, &c->keep.save.histogram));
        RP_TRY(RP_ARENA_NEW(&c->keep.save.arena, RP_HISTOGRAM_BUCKETS, &c->keep.save.limit));
        rp_histogram_limits(c->keep.save.limit);
    }
fail:
    return err;
}

/* What the optimiser and replicas hold has other names. */
void rp_histograms_add(rp_controller *c, const char *name, const void *floats, size_t count) {
    const rp_model *model = c->run.model;
    for (uint32_t i = 0; c->keep.save.histogram && i < model->param_count; i++) {
        if (strcmp(model->param[i].name, name) == 0) {
            rp_histogram_add(&c->keep.save.histogram[i], c->keep.save.limit, floats, count);
            return;
        }
    }
}

/* One line for all of them. */
static rp_err note_not_finite(rp_controller *c) {
    const rp_model *model = c->run.model;
    uint32_t tensors = 0;
    uint32_t first = 0;
    char text[320];
    for (uint32_t i = model->param_count; i-- > 0;) {
        const bool any = c->keep.save.histogram[i].nan + c->keep.save.histogram[i].infinite > 0;
        tensors += any;
        first = any ? i : first;
    }
    if (tensors == 0) {
        return RP_OK;
    }
    (void)snprintf(text, sizeof text,
                   "'%.60s' has %" PRIu64 " NaN and %" PRIu64
                   " infinite values of %zu, and %u tensors in all have such: they are in no "
                   "bucket of the histograms",
                   model->param[first].name, c->keep.save.histogram[first].nan,
                   c->keep.save.histogram[first].infinite, model->param[first].count, tensors);
    return rp_record_note(rp_folder_record(c->folder), "not_finite", c->train.position.step, text);
}

rp_err rp_histograms_end(rp_controller *c) {
    const rp_model *model = c->run.model;
    rp_err err = RP_OK;
    if (!c->keep.save.histogram) {
        return RP_OK;
    }
    for (uint32_t i = 0; i < model->param_count; i++) {
        RP_TRY(rp_record_histogram(rp_folder_record(c->folder), c->train.position.step,
                                   model->param[i].name, &c->keep.save.histogram[i]));
    }
    RP_TRY(note_not_finite(c));
    c->keep.save.drawn_step = c->train.position.step;
    c->keep.save.histogram = NULL;
fail:
    return err;
}
