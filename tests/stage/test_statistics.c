/* A step that is skipped leaves nothing in the running statistics, whatever the schedule. */
#include "agent/ring.h"

#include <math.h>

enum { CHANNELS = 3, STEPS = 8, SKIPPED = 3, BATCH = 4, MICRO = 2, FORWARDS = STEPS * BATCH };

static const char model_format[] = "input: [3]\nlayers:\n"
                                   "  - {name: bn, kind: batchnorm%s}\n"
                                   "  - {name: fc1, kind: dense, out: 8}\n"
                                   "  - {name: fc2, kind: dense, out: 3}\n";
static const char job_format[] =
    "sample: [3]\nclasses: 3\nseed: 3\nbatch: 4\nmicrobatch: 2\nepoch_samples: 32\nsteps: 8\n"
    "loss: cross-entropy\noptimizer: {kind: sgd, lr: 0.1}\nschedule: %s\n";

/* The forwards that count, in their order. */
typedef struct {
    rp_op op[FORWARDS];
    uint32_t count;
} forwards;

static float buffer[2][1024]; /* parcels in and out */

/* Of the skipped step finite, but far from all others. */
static float value_of(uint64_t step, uint32_t sample, uint32_t channel) {
    const uint32_t mix = ((uint32_t)step * 31 + sample * 7 + channel * 3) % 17;
    return (float)mix * (step == SKIPPED ? 1e12f : 1.0f) - 3.0f;
}

static void run_pass(rp_stage *stage, const rp_op *op) {
    const void *in = buffer[0];
    void *out = buffer[1];
    const rp_stage_piece piece = {.samples = op->samples, .part = &in};
    memset(buffer[0], 0, sizeof buffer[0]);
    for (uint32_t s = 0; s < op->samples.count && op->kind == RP_OP_FORWARD; s++) {
        for (uint32_t c = 0; c < CHANNELS; c++) {
            buffer[0][s * CHANNELS + c] = value_of(op->step, op->samples.first + s, c);
        }
    }
    if (op->kind == RP_OP_FORWARD) {
        expect_ok(rp_stage_forward(stage, op, &piece, 1, &out));
    } else {
        expect_ok(rp_stage_backward(stage, op, &piece, op->kind != RP_OP_BACKWARD_WEIGHT, &out));
    }
    expect_ok(rp_stage_drain(stage));
}

static void read_statistics(rp_stage *stage, float out[2][CHANNELS]) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < rp_stage_tensor_count(stage, false); i++) {
        char name[128];
        rp_shape shape;
        expect_ok(rp_stage_tensor_at(stage, i, name, sizeof name, &shape));
        for (uint32_t k = 0; k < 2; k++) {
            if (strcmp(name, k ? "bn.running_var" : "bn.running_mean") == 0) {
                expect_ok(rp_stage_tensor_read(stage, i, 0, CHANNELS, out[k]));
                found++;
            }
        }
    }
    assert_int_equal(found, 2);
}

/* Later forwards that had run on the statistics of the skipped step count no more. */
static void forget(forwards *all, uint64_t step) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        if (all->op[i].step < step) {
            all->op[kept++] = all->op[i];
        }
    }
    all->count = kept;
}

static void drive(const char *executor, const char *schedule, bool deferred, forwards *all,
                  float out[2][CHANNELS], float before[2][CHANNELS], float after[2][CHANNELS]) {
    const rp_site site = {.device = test_device_open()};
    char model[512];
    char text[512];
    rp_arena arena;
    rp_stage *stage;
    rp_sched_state list;
    rp_job job;
    rp_op op;
    (void)snprintf(model, sizeof model, model_format, deferred ? ", deferred: true" : "");
    (void)snprintf(text, sizeof text, job_format, schedule);
    rp_arena_init(&arena, "test", 0);
    expect_ok(test_parse(&arena, model, text, "[fc2]", 2, 0, &job));
    expect_ok(rp_stage_prepare(&arena, rp_executor_find(executor), &site, &job, &stage));
    const rp_sched_shape shape = rp_job_sched_shape(&job, 0, STEPS);
    bool begun = false;
    all->count = 0;
    for (rp_sched_start(&list, &shape); rp_job_next(&job, &list, &op);) {
        const bool skip = op.step == SKIPPED;
        if (op.kind == RP_OP_FORWARD && skip && !begun) {
            read_statistics(stage, before);
            begun = true;
        }
        if (op.kind == RP_OP_FORWARD) {
            all->op[all->count++] = op;
        }
        if (op.kind != RP_OP_UPDATE) {
            run_pass(stage, &op);
            continue;
        }
        expect_ok(rp_stage_update(stage, &op, 1, skip));
        if (skip) {
            forget(all, op.step);
            read_statistics(stage, after);
        }
    }
    read_statistics(stage, out);
    rp_stage_destroy(&stage);
    rp_arena_finish(&arena);
}

/* Of one microbatch, or of the microbatches of a step together, in double. */
static void move_reference(const rp_op *op, uint32_t count, bool deferred,
                           double running[2][CHANNELS]) {
    for (uint32_t c = 0; c < CHANNELS; c++) {
        double sum = 0;
        double squares = 0;
        double n = 0;
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t s = 0; s < op[i].samples.count; s++, n++) {
                sum += (double)value_of(op[i].step, op[i].samples.first + s, c);
            }
        }
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t s = 0; s < op[i].samples.count; s++) {
                const double d = (double)value_of(op[i].step, op[i].samples.first + s, c) - sum / n;
                squares += d * d;
            }
        }
        running[0][c] = 0.9 * running[0][c] + 0.1 * sum / n;
        running[1][c] = 0.9 * running[1][c] + 0.1 * squares / (deferred ? n : n - 1);
    }
}

static void expect_statistics(const char *schedule, bool deferred, bool flushed) {
    double want[2][CHANNELS] = {{0, 0, 0}, {1, 1, 1}};
    float got[2][CHANNELS];
    float before[2][CHANNELS];
    float after[2][CHANNELS];
    forwards all;
    const uint32_t together = deferred ? BATCH / MICRO : 1;
    drive("opencl", schedule, deferred, &all, got, before, after);
    assert_true(all.count > STEPS && all.count <= (STEPS - 1) * BATCH / MICRO);
    for (uint32_t i = 0; i < all.count; i += together) {
        assert_true(all.op[i].step != SKIPPED);
        move_reference(&all.op[i], together, deferred, want);
    }
    for (uint32_t i = 0; i < 2 * CHANNELS; i++) {
        expect_close(got[i / CHANNELS][i % CHANNELS], want[i / CHANNELS][i % CHANNELS], 1e-5, 1e-6);
    }
    if (flushed) {
        assert_int_equal(all.count, (STEPS - 1) * BATCH / MICRO);
        assert_memory_equal(before, after, sizeof before);
        drive("digest", schedule, deferred, &all, got, before, after);
        assert_memory_equal(before, after, sizeof before);
        assert_memory_not_equal(got, after, sizeof got);
    }
}

static void steps_that_flush(void **state) {
    (void)state;
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", "umpipe"};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        expect_statistics(schedules[i], false, true);
        expect_statistics(schedules[i], true, true);
    }
}

static void steps_that_overlap(void **state) {
    (void)state;
    static const char *const schedules[] = {"async", "pipedream", "pipedream-2bw",
                                            "{kind: ea-pipe, replicas: 2}", "xpipe"};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        expect_statistics(schedules[i], false, false);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_that_flush),
        cmocka_unit_test(steps_that_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
