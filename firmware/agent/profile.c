#include "agent/profile.h"

enum { REPEATS_MIN = 2, REPEATS_MAX = 64 };
static const double WORTH_S = 0.02; /* measure at least this long */

/* The job with layer `index` alone in the middle of up to three stages. */
static rp_job job_of_layer(const rp_job *job, uint32_t index) {
    rp_job alone = *job;
    rp_cut *cut = &alone.cut;
    *cut = (rp_cut){0};
    alone.stage = index > 0;
    cut->first[alone.stage] = index;
    cut->first[alone.stage + 1] = index + 1;
    cut->stage_count = alone.stage + 1;
    if (index + 1 < job->model->layer_count) {
        cut->first[++cut->stage_count] = job->model->layer_count;
    }
    return alone;
}

static rp_err time_layer(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                         uint32_t index, double *seconds) {
    rp_arena arena;
    rp_arena_init(&arena, "profile", 0);
    rp_job alone = job_of_layer(job, index);
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

rp_err rp_profile_layers(const rp_device_builder *builder, const rp_executor_kind *kind,
                         const rp_site *site, const rp_job *job, double *seconds) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < job->model->layer_count; i++) {
        if (rp_device_builder_is_cancelled(builder)) {
            return rp_fail(RP_ERR_INTERRUPTED, "the profile is not wanted any more");
        }
        RP_TRY(time_layer(kind, site, job, i, &seconds[2 * (size_t)i]));
    }
fail:
    return err;
}
