/* What offload and recomputation save and cost on one stage: stage 0 of vgg16 in eight, by
 * pipedream, eight microbatches in flight. bench_offload MODEL [OPS] [ROUNDS]: device bytes as the
 * device counts them, and seconds an op, the processor's and the clock's, the least of some rounds
 * that take turns in one process; what goes to flash ($RINGPIPE_FLASH, or /var/tmp) in a step; and
 * whether weights have the bits of the run that keeps all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/flash.h"
#include "stage/stage.h"

static const char job_format[] =
    "stage: 0\nstages: 8\ncut: [conv3, conv5, conv7, conv9, conv10, conv12, conv13]\n"
    "sample: [3, 32, 32]\nclasses: 10\nseed: 1\nbatch: 8\nmicrobatch: 8\nepoch_samples: 65536\n"
    "steps: 5000\nloss: cross-entropy\noptimizer: {kind: sgd, lr: 0.01, momentum: 0.9}\n"
    "schedule: pipedream\noffload: %s\nrecompute: %s\n";

typedef struct {
    size_t bytes, slot_bytes;
    uint32_t slots, stashes;
    double wall_s, cpu_s; /* of an op */
    double step_bytes;    /* to flash */
    uint64_t weights;     /* a digest of them */
} result;

/* FNV-1a, by G. Fowler, L. C. Noll, K.-P. Vo */
static rp_err digest_weights(rp_arena *arena, rp_stage *stage, uint64_t *out) {
    rp_err err = RP_OK;
    *out = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < rp_stage_tensor_count(stage, true); i++) {
        char name[256];
        rp_shape shape;
        unsigned char *bytes;
        RP_TRY(rp_stage_tensor_at(stage, i, name, sizeof name, &shape));
        const size_t count = rp_shape_count(&shape);
        RP_TRY(RP_ARENA_NEW(arena, count * sizeof(float), &bytes));
        RP_TRY(rp_stage_tensor_read(stage, i, 0, count, (float *)(void *)bytes));
        for (size_t b = 0; b < count * sizeof(float); b++) {
            *out = (*out ^ bytes[b]) * UINT64_C(0x100000001b3);
        }
    }
fail:
    return err;
}

static rp_err run_op(rp_stage *stage, const rp_op *op, char *memory) {
    const void *in[] = {memory};
    void *out[] = {memory};
    const rp_stage_piece whole = {.samples = op->samples, .part = in};
    switch (op->kind) {
    case RP_OP_FORWARD:
        return rp_stage_forward(stage, op, &whole, 1, out);
    case RP_OP_UPDATE:
        return rp_stage_update(stage, op, 1.0f, false);
    default:
        return rp_stage_backward(stage, op, &whole, 1, out);
    }
}

static rp_err measure(rp_device *device, rp_node *model, const char *offload, const char *recompute,
                      uint32_t ops, result *out) {
    const rp_clock now = rp_clock_real();
    const rp_site site = {.clock = &now, .device = device};
    rp_stage *stage = NULL;
    rp_sched_state list;
    rp_node *root;
    rp_arena arena;
    rp_job job;
    rp_op op;
    char text[1024];
    char *memory;
    rp_err err;
    rp_arena_init(&arena, "bench", 0);
    (void)snprintf(text, sizeof text, job_format, offload, recompute);
    RP_TRY(rp_config_read_text(&arena, text, strlen(text), "job", &root));
    RP_TRY(rp_job_parse(&arena, root, model, &job));
    RP_TRY(RP_ARENA_NEW(&arena, 1 << 24, &memory));
    RP_TRY(rp_stage_prepare(&arena, rp_executor_find("opencl"), &site, &job, &stage));
    const rp_layout *layout = rp_stage_layout(stage);
    *out = (result){.bytes = rp_stage_facts(stage).used_bytes,
                    .slot_bytes = layout->slot_bytes,
                    .slots = layout->slots,
                    .stashes = layout->stashes};
    const rp_sched_shape shape = rp_job_sched_shape(&job, 0, job.steps);
    rp_sched_start(&list, &shape);
    int64_t start_ns = 0;
    clock_t start_cpu = 0;
    uint64_t written = 0;
    uint32_t steps = 0;
    for (uint32_t i = 0; i < 2 * ops && job.method.kind->next(&list, &op); i++) {
        if (i == ops) { /* the pipe is full */
            RP_TRY(rp_stage_drain(stage));
            start_ns = rp_clock_now_ns(&now);
            start_cpu = clock();
            written = rp_stage_facts(stage).flash_bytes;
        }
        steps += i >= ops && op.kind == RP_OP_UPDATE;
        RP_TRY(run_op(stage, &op, memory));
    }
    RP_TRY(rp_stage_drain(stage));
    out->wall_s = (double)(rp_clock_now_ns(&now) - start_ns) * 1e-9 / ops;
    out->cpu_s = (double)(clock() - start_cpu) / CLOCKS_PER_SEC / ops;
    out->step_bytes = (double)(rp_stage_facts(stage).flash_bytes - written) / steps;
    RP_TRY(digest_weights(&arena, stage, &out->weights));
fail:
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
    return err;
}

enum { WAYS = 6 };
static const char *const ways[WAYS][2] = {{"none", "none"}, {"host", "none"}, {"flash", "none"},
                                          {"none", "all"},  {"host", "all"},  {"flash", "all"}};

static void print_way(uint32_t i, const result *r, const result *plain) {
    printf("%-7s  %-9s  %5u  %13u  %11.2f  %11.2f  %7.2f  %5.3f  %7.2f  %8.3f  %7.2f  %10.2f  %s\n",
           ways[i][0], ways[i][1], r->slots, r->stashes, (double)r->slot_bytes / (1 << 20),
           (double)r->bytes / (1 << 20), (double)r->bytes / (double)plain->bytes, r->wall_s,
           r->wall_s / plain->wall_s, r->cpu_s, r->cpu_s / plain->cpu_s, r->step_bytes / (1 << 20),
           r->weights == plain->weights ? "same" : "OTHER");
}

static rp_err measure_all(rp_device *device, const char *model_path, uint32_t ops, uint32_t rounds,
                          result best[WAYS]) {
    rp_err err = RP_OK;
    for (uint32_t n = 0; n < rounds * WAYS; n++) {
        result *own = &best[n % WAYS];
        rp_node *model;
        rp_arena arena;
        result r = {0};
        rp_arena_init(&arena, "model", 0); /* its keys are read once */
        err = rp_config_read_file(&arena, model_path, &model);
        err = err == RP_OK ? measure(device, model, ways[n % WAYS][0], ways[n % WAYS][1], ops, &r)
                           : err;
        rp_arena_finish(&arena);
        RP_TRY(err);
        const result before = n < WAYS ? r : *own;
        *own = r;
        own->wall_s = before.wall_s < r.wall_s ? before.wall_s : r.wall_s;
        own->cpu_s = before.cpu_s < r.cpu_s ? before.cpu_s : r.cpu_s;
    }
fail:
    return err;
}

int main(int argc, char **argv) {
    const uint32_t ops = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 45;
    const uint32_t rounds = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1;
    const rp_device_options options = {.threads = 1};
    rp_device *device = NULL;
    rp_arena arena;
    result best[WAYS] = {{0}};
    double rate[2];
    rp_err err;
    rp_arena_init(&arena, "bench", 0);
    if (argc < 2 || ops == 0 || rounds == 0) {
        return rp_err_exit_code(rp_fail(RP_ERR_USAGE, "expected a model file: vgg16.yaml"));
    }
    RP_TRY(rp_device_open(&arena, &options, &device));
    RP_TRY(rp_flash_measure(rp_flash_folder(), &rate[0], &rate[1]));
    printf("flash in %s: %.0f MB/s written, %.0f read\n", rp_flash_folder(), rate[0] * 1e-6,
           rate[1] * 1e-6);
    RP_TRY(measure_all(device, argv[1], ops, rounds, best));
    printf("offload  recompute  slots  on the device  a slot, MiB  device, MiB  of none   "
           "s/op  of none  cpu s/op  of none  flash, MiB  bits\n");
    for (uint32_t i = 0; i < WAYS; i++) {
        print_way(i, &best[i], &best[0]);
    }
fail:
    rp_device_close(&device);
    rp_arena_finish(&arena);
    return rp_err_exit_code(err);
}
