#include "agent/profile.h"

enum { REPEATS_MIN = 2, REPEATS_MAX = 64 };
static const double WORTH_S = 0.02; /* measure at least this long */

/* The job with layer `index` alone in the middle of up to three stages, whose cut is `first`. */
static rp_job job_of_layer(const rp_job *job, uint32_t index, uint32_t first[4]) {
    const uint32_t layers = job->model->layer_count;
    rp_job alone = *job;
    uint32_t stages = 0;
    alone.stage = index > 0;
    first[stages] = 0;
    stages += index > 0;
    first[stages++] = index;
    first[stages] = index + 1;
    if (index + 1 < layers) {
        first[++stages] = layers;
    }
    alone.cut = (rp_cut){.stage_count = stages, .first = first};
    return alone;
}

static rp_err time_layer(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                         uint32_t index, double *seconds) {
    rp_arena arena;
    rp_arena_init(&arena, "profile", 0);
    uint32_t first[4];
    rp_job alone = job_of_layer(job, index, first);
    rp_stage *stage = NULL;
    rp_err err;
    double once[2];
    RP_TRY(rp_stage_prepare(&arena, kind, site, &alone, &stage));
    RP_TRY(rp_stage_time(stage, 1, &once[0], &once[1]));
    double repeats = WORTH_S / (once[0] + once[1] + 1e-9);
    repeats = repeats < REPEATS_MIN ? REPEATS_MIN : repeats > REPEATS_MAX ? REPEATS_MAX : repeats;
    RP_TRY(rp_stage_time(stage, (uint32_t)repeats, &seconds[0], &seconds[1]));
fail:
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
    return err;
}

rp_err rp_profile_layers(rp_device_builder *builder, const rp_executor_kind *kind,
                         const rp_site *site, const rp_job *job, double *seconds) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < job->model->layer_count; i++) {
        rp_device_builder_say(builder, i, job->model->layer_count);
        if (rp_device_builder_is_cancelled(builder)) {
            return rp_fail(RP_ERR_INTERRUPTED, "the profile is not wanted any more");
        }
        RP_TRY(time_layer(kind, site, job, i, &seconds[2 * (size_t)i]));
    }
    rp_device_builder_say(builder, job->model->layer_count, job->model->layer_count);
fail:
    return err;
}
