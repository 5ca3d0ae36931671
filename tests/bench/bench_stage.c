/* What an op costs outside of the executor: the schedule's next op, the books of the stage, and the
 * command. bench_stage [SCHEDULE...]: microseconds an op of stage 0 of four, on the executor that
 * computes nothing and on the one that hashes 16 samples through two layers. */
#include <stdio.h>
#include <string.h>

#include "stage/stage.h"

static const char model_text[] = "input: [4]\nlayers:\n"
                                 "  - {name: a, kind: dense, out: 4}\n  - {name: a1, kind: tanh}\n"
                                 "  - {name: b, kind: dense, out: 4}\n  - {name: b1, kind: tanh}\n"
                                 "  - {name: c, kind: dense, out: 4}\n  - {name: c1, kind: tanh}\n"
                                 "  - {name: d, kind: dense, out: 4}\n  - {name: d1, kind: tanh}\n";
static const char job_format[] =
    "stage: 0\nstages: 4\ncut: [b, c, d]\nsample: [4]\nclasses: 4\nseed: 1\nbatch: 64\n"
    "microbatch: 16\nepoch_samples: 65536\nsteps: 5000\nloss: cross-entropy\n"
    "optimizer: {kind: adam, lr: 0.1}\nschedule: %s\n";

static rp_err run_op(rp_stage *stage, const rp_op *op) {
    static char memory[1 << 16];
    const void *in[] = {memory};
    void *out[] = {memory};
    const rp_stage_piece whole = {.samples = op->samples, .part = in};
    bool done = false;
    int64_t end_ns;
    rp_mark mark;
    rp_err err;
    switch (op->kind) {
    case RP_OP_FORWARD:
        RP_TRY(rp_stage_forward(stage, op, &whole, 1, out));
        break;
    case RP_OP_UPDATE:
        RP_TRY(rp_stage_update(stage, op, 1.0f, false));
        break;
    default:
        RP_TRY(rp_stage_backward(stage, op, &whole, 1, out));
    }
    RP_TRY(rp_stage_mark(stage, &mark));
    while (!done) {
        RP_TRY(rp_stage_poll(stage, &mark, &done, &end_ns));
    }
    rp_stage_release(stage, &mark);
fail:
    return err;
}

static rp_err measure_stage(const char *executor, const char *schedule) {
    const rp_clock clock = rp_clock_real();
    const rp_site site = {.clock = &clock};
    rp_stage *stage = NULL;
    rp_node *root;
    rp_node *model;
    rp_job job;
    rp_op op;
    rp_arena arena;
    char text[1024];
    uint64_t ops = 0;
    rp_err err;
    rp_arena_init(&arena, "bench", 0);
    (void)snprintf(text, sizeof text, job_format, schedule);
    RP_TRY(rp_config_read_text(&arena, text, strlen(text), "job", &root));
    RP_TRY(rp_config_read_text(&arena, model_text, strlen(model_text), "model", &model));
    RP_TRY(rp_job_parse(&arena, root, model, &job));
    RP_TRY(rp_stage_prepare(&arena, rp_executor_find(executor), &site, &job, &stage));
    const rp_sched_shape shape = rp_job_sched_shape(&job, 0, job.steps);
    rp_sched_state list;
    rp_sched_start(&list, &shape);
    const int64_t start_ns = rp_clock_now_ns(&clock);
    for (; job.method.kind->next(&list, &op); ops++) {
        RP_TRY(run_op(stage, &op));
    }
    printf("%-8s %-28s %8.3f us/op\n", executor, schedule,
           (double)(rp_clock_now_ns(&clock) - start_ns) * 1e-3 / (double)ops);
fail:
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
    return err;
}

int main(int argc, char **argv) {
    static char *usual[] = {
        "1f1b",      "zb-h1",         "pipedream", "{kind: pipedream, vertical_sync: true}",
        "pipeoptim", "pipedream-2bw", "avgpipe"};
    char **schedule = argc > 1 ? argv + 1 : usual;
    const int count = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof *usual);
    rp_err err = RP_OK;
    for (int i = 0; i < count && err == RP_OK; i++) {
        RP_TRY(measure_stage("timed", schedule[i]));
        RP_TRY(measure_stage("digest", schedule[i]));
    }
fail:
    return rp_err_exit_code(err);
}
