#include "agent/warm.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/profile.h"
#include "base/config.h"
#include "device/builder.h"
#include "device/ready.h"
#include "stage/stage.h"

enum { SAY_EVERY_MS = 1000 };

/* The usual settings: kernels depend little on sizes, and not on the number of classes. */
static const char JOB[] = "stage: 0\nstages: %u\ncut: [%s]\nsample: [%s]\nclasses: 10\nseed: 1\n"
                          "batch: 64\nmicrobatch: 16\nepoch_samples: 64\nsteps: 1\n"
                          "loss: cross-entropy\noptimizer: {kind: sgd, lr: 0.1, momentum: 0.9}\n"
                          "schedule: gpipe\nnormalise: {mean: [0], std: [1]}\n";

typedef struct {
    rp_arena *arena;
    rp_device *device;
    rp_job job;   /* one stage */
    rp_job apart; /* each layer is a stage, so that a relu is not merged with the layer before */
    rp_stage *stage;
} warm;

static rp_err find_model(rp_arena *arena, const char *name, char **out) {
    const char *folder = getenv("RINGPIPE_MODELS");
    rp_err err;
    if (strchr(name, '/') || strstr(name, ".yaml")) {
        return rp_arena_string(arena, name, out);
    }
    folder = folder ? folder : RP_MODELS_DIR;
    RP_TRY(rp_arena_printf(arena, out, "%s/%s.yaml", folder, name));
    if (access(*out, R_OK) != 0) {
        err = rp_fail(
            RP_ERR_USAGE,
            "--warm: no model '%s': expected a name of a model in %s, or a path to a model file",
            name, folder);
    }
fail:
    return err;
}

static rp_err read_job(rp_arena *arena, const char *path, const char *sample, uint32_t stages,
                       const char *cut, rp_job *out) {
    char *text;
    rp_node *model;
    rp_node *root;
    rp_err err;
    RP_TRY(rp_config_read_file(arena, path, &model));
    RP_TRY(rp_arena_printf(arena, &text, JOB, stages, cut, sample ? sample : "3, 32, 32"));
    RP_TRY(rp_config_read_text(arena, text, strlen(text), "--sample", &root));
    RP_TRY(rp_job_parse(arena, root, model, out));
fail:
    return err;
}

static rp_err read_jobs(warm *w, const char *name, const char *sample) {
    const rp_model *model;
    char *path;
    char *cut;
    size_t used = 0;
    rp_err err;
    RP_TRY(find_model(w->arena, name, &path));
    RP_TRY(read_job(w->arena, path, sample, 1, "", &w->job));
    w->job.codec[0][0] = RP_CODEC_UINT8; /* for pixels; inputs as f32 need no kernel */
    model = w->job.model;
    const size_t room = (size_t)model->layer_count * (RP_LAYER_NAME_MAX + 2) + 1;
    RP_TRY(RP_ARENA_NEW(w->arena, room, &cut));
    for (uint32_t i = 1; i < model->layer_count; i++) {
        used += (size_t)snprintf(cut + used, room - used, "%s%s", i > 1 ? ", " : "",
                                 model->layer[i].name);
    }
    RP_TRY(read_job(w->arena, path, sample, model->layer_count, cut, &w->apart));
fail:
    return err;
}

/* On the builder's thread: each layer alone, as for a profile or a cut next to it, then all. */
static rp_err build_stage(rp_device_builder *builder, void *context) {
    warm *w = context;
    const rp_site site = {.device = w->device};
    const rp_executor_kind *executor = rp_executor_find("opencl");
    double *seconds;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(w->arena, 2 * (size_t)w->job.model->layer_count, &seconds));
    RP_TRY(rp_profile_layers(builder, executor, &site, &w->apart, seconds));
    RP_TRY(rp_stage_prepare(w->arena, executor, &site, &w->job, &w->stage));
fail:
    return err;
}

static void say_count(FILE *out, rp_build_count count) {
    (void)fprintf(out, "%u of %u kernels are ready\n", count.ready, count.kernels);
    (void)fflush(out);
}

static rp_err wait_for_build(rp_device_builder *builder, const warm *w, const volatile int *stopped,
                             FILE *out) {
    struct pollfd end = {.fd = rp_device_builder_eventfd(builder), .events = POLLIN};
    while (!rp_device_builder_is_done(builder)) {
        (void)poll(&end, 1, SAY_EVERY_MS);
        if (*stopped) {
            rp_device_builder_cancel(builder);
        }
        if (!rp_device_builder_is_done(builder)) {
            say_count(out, rp_device_build_count(w->device));
        }
    }
    return rp_device_builder_join(builder);
}

rp_err rp_agent_warm(rp_arena *arena, rp_device *device, const char *model, const char *sample,
                     const volatile int *stopped, FILE *out) {
    warm w = {.arena = arena, .device = device};
    rp_device_builder *builder = NULL;
    rp_build_count count;
    rp_err err;
    RP_TRY(read_jobs(&w, model, sample));
    RP_TRY(rp_device_builder_open(arena, device, &builder));
    RP_TRY(rp_device_builder_start(builder, build_stage, &w));
    RP_TRY(wait_for_build(builder, &w, stopped, out));
    count = rp_device_build_count(device);
    (void)fprintf(out, "%s: %u kernels built in %.1f s, %u found in the cache\n", model,
                  count.built, (double)count.build_ns * 1e-9, count.ready - count.built);
fail:
    rp_device_builder_close(&builder); /* waits for its thread */
    rp_stage_destroy(&w.stage);
    return err;
}
