/* What activations in 16 bits save and cost: a model on one board, by gpipe.
 *
 *   bench_storage MODEL SAMPLE TOKENS BATCH MICRO [STEPS] [ROUNDS]
 *   bench_storage host/models/gpt-micro.yaml '[128]' 65 32 8
 *   bench_storage host/models/vgg-narrow.yaml '[3, 32, 32]' 0 64 8
 *
 * TOKENS 0: samples of floats, of 10 classes. Device bytes as the device counts them, and seconds
 * of a step, the clock's and the processor's, the least of some rounds that take turns in one
 * process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "stage/stage.h"

enum { FORMATS = 3, INPUT_FLOATS = 1 << 22 };
static const char *const formats[FORMATS] = {"f32", "bf16", "f16"};

typedef struct {
    const char *model, *sample;
    uint32_t tokens, batch, micro, steps;
} order;

typedef struct {
    size_t bytes, slot_bytes;
    uint32_t slots;
    double wall_s, cpu_s; /* of a step */
} result;

static rp_err parse_job(rp_arena *arena, const order *o, const char *format, rp_job *out) {
    rp_node *model;
    rp_node *root;
    char *text;
    rp_err err;
    RP_TRY(rp_arena_printf(arena, &text,
                           "stage: 0\nstages: 1\ncut: []\nsample: %s\nsample_type: %s\n"
                           "tokens: %u\nclasses: %u\nseed: 1\nbatch: %u\nmicrobatch: %u\n"
                           "epoch_samples: 1048576\nsteps: 5000\nloss: cross-entropy\n"
                           "target_width: %u\noptimizer: {kind: adamw, lr: 0.001}\n"
                           "schedule: gpipe\nstorage: %s\n",
                           o->sample, o->tokens ? "i32" : "f32", o->tokens,
                           o->tokens ? o->tokens : 10, o->batch, o->micro,
                           o->tokens ? (uint32_t)strtoul(o->sample + 1, NULL, 10) : 1, format));
    RP_TRY(rp_config_read_file(arena, o->model, &model));
    RP_TRY(rp_config_read_text(arena, text, strlen(text), "job", &root));
    RP_TRY(rp_job_parse(arena, root, model, out));
fail:
    return err;
}

static rp_err run_step(rp_stage *stage, const rp_job *job, rp_sched_state *list, float *input,
                       void *targets) {
    const void *in[] = {input};
    const void *labels[] = {targets};
    rp_op op;
    rp_err err = RP_OK;
    while (job->method.kind->next(list, &op) && op.kind != RP_OP_UPDATE) {
        RP_TRY(
            op.kind == RP_OP_FORWARD
                ? rp_stage_forward(stage, &op, &(rp_stage_piece){op.samples, in, 0}, 1, NULL)
                : rp_stage_backward(stage, &op, &(rp_stage_piece){op.samples, labels, 0}, 1, NULL));
    }
    RP_TRY(rp_stage_update(stage, &op, 1.0f, false));
    RP_TRY(rp_stage_drain(stage));
fail:
    return err;
}

static rp_err measure(rp_device *device, const order *o, const char *format, result *out) {
    const rp_clock now = rp_clock_real();
    const rp_site site = {.clock = &now, .device = device};
    rp_stage *stage = NULL;
    rp_sched_state list;
    rp_arena arena;
    rp_job job;
    float *input;
    char *targets;
    rp_err err;
    rp_arena_init(&arena, "bench", 0);
    RP_TRY(parse_job(&arena, o, format, &job));
    RP_TRY(RP_ARENA_NEW(&arena, INPUT_FLOATS, &input));
    RP_TRY(RP_ARENA_NEW(&arena, INPUT_FLOATS, &targets));
    rp_rng rng = rp_rng_named(1, "bench/input");
    for (uint32_t i = 0; i < INPUT_FLOATS && !o->tokens; i++) {
        input[i] = rp_rng_uniform(&rng) * 2 - 1;
    }
    RP_TRY(rp_stage_prepare(&arena, rp_executor_find("opencl"), &site, &job, &stage));
    *out = (result){.bytes = rp_stage_facts(stage).used_bytes,
                    .slot_bytes = rp_stage_layout(stage)->slot_bytes,
                    .slots = rp_stage_layout(stage)->slots};
    const rp_sched_shape shape = rp_job_sched_shape(&job, 0, job.steps);
    rp_sched_start(&list, &shape);
    RP_TRY(run_step(stage, &job, &list, input, targets));
    const int64_t start_ns = rp_clock_now_ns(&now);
    const clock_t start_cpu = clock();
    for (uint32_t i = 0; i < o->steps; i++) {
        RP_TRY(run_step(stage, &job, &list, input, targets));
    }
    out->wall_s = (double)(rp_clock_now_ns(&now) - start_ns) * 1e-9 / o->steps;
    out->cpu_s = (double)(clock() - start_cpu) / CLOCKS_PER_SEC / o->steps;
fail:
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
    return err;
}

static uint32_t number(int argc, char **argv, int index, uint32_t missing) {
    return index < argc ? (uint32_t)strtoul(argv[index], NULL, 10) : missing;
}

int main(int argc, char **argv) {
    const rp_device_options options = {.threads = 1};
    rp_device *device = NULL;
    rp_arena arena;
    result best[FORMATS] = {{0}};
    rp_err err;
    rp_arena_init(&arena, "bench", 0);
    if (argc < 6) {
        return rp_err_exit_code(
            rp_fail(RP_ERR_USAGE, "expected MODEL SAMPLE TOKENS BATCH MICRO [STEPS] [ROUNDS]"));
    }
    const order o = {.model = argv[1],
                     .sample = argv[2],
                     .tokens = number(argc, argv, 3, 0),
                     .batch = number(argc, argv, 4, 0),
                     .micro = number(argc, argv, 5, 0),
                     .steps = number(argc, argv, 6, 3)};
    RP_TRY(rp_device_open(&arena, &options, &device));
    for (uint32_t n = 0; n < number(argc, argv, 7, 2) * FORMATS; n++) {
        result *own = &best[n % FORMATS];
        result r = {0};
        RP_TRY(measure(device, &o, formats[n % FORMATS], &r));
        r.wall_s = n >= FORMATS && own->wall_s < r.wall_s ? own->wall_s : r.wall_s;
        r.cpu_s = n >= FORMATS && own->cpu_s < r.cpu_s ? own->cpu_s : r.cpu_s;
        *own = r;
    }
    printf(
        "storage  slots  a slot, MiB  device, MiB  of f32   s/step  of f32  cpu s/step  of f32\n");
    for (uint32_t f = 0; f < FORMATS; f++) {
        printf("%-7s  %5u  %11.2f  %11.2f  %6.2f  %7.3f  %6.3f  %10.3f  %6.3f\n", formats[f],
               best[f].slots, (double)best[f].slot_bytes / (1 << 20),
               (double)best[f].bytes / (1 << 20), (double)best[f].bytes / (double)best[0].bytes,
               best[f].wall_s, best[f].wall_s / best[0].wall_s, best[f].cpu_s,
               best[f].cpu_s / best[0].cpu_s);
    }
fail:
    rp_device_close(&device);
    rp_arena_finish(&arena);
    return rp_err_exit_code(err);
}
