#include "agent/profile.h"

#include "device/ready.h"

enum { REPEATS_MIN = 2, REPEATS_MAX = 64 };
static const double WORTH_S = 0.02; /* measure at least this long */

rp_job rp_profile_job(const rp_job *job, uint32_t index, uint32_t first[4]) {
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
    alone.size = NULL; /* sizes are of the run's stages */
    alone.cut = (rp_cut){.stage_count = stages, .first = first};
    return alone;
}

static rp_err time_layer(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                         uint32_t index, double *seconds) {
    rp_arena arena;
    rp_arena_init(&arena, "profile", 0);
    uint32_t first[4];
    rp_job alone = rp_profile_job(job, index, first);
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

rp_err rp_profile_refuse_cancelled(const rp_device_builder *builder) {
    return rp_device_builder_is_cancelled(builder)
               ? rp_fail(RP_ERR_INTERRUPTED, "the profile is no longer needed")
               : RP_OK;
}

rp_err rp_profile_layers(rp_device_builder *builder, const rp_executor_kind *kind,
                         const rp_site *site, const rp_job *job, double *seconds) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < job->model->layer_count; i++) {
        rp_device_builder_say(builder, i, job->model->layer_count);
        RP_TRY(rp_profile_refuse_cancelled(builder));
        RP_TRY(time_layer(kind, site, job, i, &seconds[2 * (size_t)i]));
    }
    rp_device_builder_say(builder, job->model->layer_count, job->model->layer_count);
fail:
    return err;
}

/* ---- building -------------------------------------------------------------------------------- */

static rp_err build_layer(const rp_executor_kind *kind, const rp_site *site, const rp_job *job,
                          uint32_t index) {
    rp_arena arena;
    rp_arena_init(&arena, "profile", 0);
    uint32_t first[4];
    const rp_job alone = rp_profile_job(job, index, first);
    rp_stage *stage = NULL;
    const rp_err err = rp_stage_prepare(&arena, kind, site, &alone, &stage);
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
    return err;
}

/* One round over the remaining layers. If a whole round was postponed, the next one waits for its
 * first layer. */
static rp_err build_round(rp_device_builder *builder, const rp_executor_kind *kind,
                          const rp_site *site, const rp_job *job, bool *built, uint32_t *done) {
    const uint32_t layers = job->model->layer_count;
    const uint32_t before = *done;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < layers; i++) {
        if (built[i]) {
            continue;
        }
        RP_TRY(rp_profile_refuse_cancelled(builder));
        err = build_layer(kind, site, job, i);
        built[i] = err == RP_OK;
        *done += built[i];
        RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
        rp_device_pass_over(site->device, true);
        rp_device_builder_say(builder, *done, layers);
    }
    rp_device_pass_over(site->device, *done > before);
fail:
    return err;
}

rp_err rp_profile_build(rp_device_builder *builder, const rp_executor_kind *kind,
                        const rp_site *site, const rp_job *job) {
    const uint32_t layers = job->model->layer_count;
    uint32_t done = 0;
    bool *built;
    rp_arena arena;
    rp_arena_init(&arena, "profile", 0);
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&arena, layers, &built));
    rp_device_builder_say(builder, 0, layers);
    rp_device_pass_over(site->device, true);
    while (done < layers) {
        RP_TRY(build_round(builder, kind, site, job, built, &done));
    }
fail:
    rp_device_pass_over(site->device, false);
    rp_arena_finish(&arena);
    return err;
}
