/* What was in flight is taken over whole or not at all. */
#include "expect.h"

#include "agent/runner.h"

static const char model_text[] = "input: [4]\nlayers:\n  - {name: fc1, kind: dense, out: 5}\n"
                                 "  - {name: fc2, kind: dense, out: 3}\n";
static const char job_text[] =
    "stage: 0\nstages: 2\ncut: [fc2]\nsample: [4]\nclasses: 3\nseed: 1\nbatch: 2\nmicrobatch: 2\n"
    "epoch_samples: 20\nsteps: 10\nstep_first: 3\nloss: cross-entropy\n"
    "optimizer: {kind: sgd, lr: 0.1}\nschedule: pipedream\n";

/* The first of two stages: one microbatch is in flight behind every step, no parcel waits. */
typedef struct {
    rp_arena arena;
    rp_device *device;
    rp_clock clock;
    rp_job job;
    rp_stage *stage;
    rp_runner *runner;
    char *bytes;
    size_t count;
} fixture;

static void open_runner(fixture *f) {
    const rp_device_options wanted = {.threads = 1};
    rp_node *root;
    rp_node *model;
    *f = (fixture){.clock = rp_clock_real()};
    rp_arena_init(&f->arena, "test", 0);
    expect_ok(rp_device_open(&f->arena, &wanted, &f->device));
    const rp_site site = {.device = f->device};
    expect_ok(rp_config_read_text(&f->arena, job_text, strlen(job_text), "job", &root));
    expect_ok(rp_config_read_text(&f->arena, model_text, strlen(model_text), "model", &model));
    expect_ok(rp_job_parse(&f->arena, root, model, &f->job));
    expect_ok(rp_stage_prepare(&f->arena, rp_executor_find("opencl"), &site, &f->job, &f->stage));
    const rp_runner_options options = {
        .clock = &f->clock, .held_count = 1, .held = {{&f->job, f->stage}}};
    expect_ok(rp_runner_open(&f->arena, &options, &f->runner));
    f->count = rp_stage_in_flight_bytes(f->stage);
    assert_true(f->count > 8);
    expect_ok(RP_ARENA_NEW(&f->arena, f->count, &f->bytes));
}

static void close_runner(fixture *f) {
    rp_runner_close(&f->runner);
    rp_stage_destroy(&f->stage);
    rp_device_close(&f->device);
    rp_arena_finish(&f->arena);
}

/* The step can not start, and the reason names both numbers. */
static void expect_short(fixture *f, size_t came) {
    char numbers[64];
    (void)snprintf(numbers, sizeof numbers, "%zu of %zu bytes", came, f->count);
    assert_int_equal(rp_runner_train(f->runner, 3, 10, false), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), numbers));
}

static void a_short_transfer_is_an_error(void **state) {
    (void)state;
    fixture f;
    open_runner(&f);
    expect_ok(rp_runner_resume(f.runner, 0, f.count));
    expect_short(&f, 0);
    expect_ok(rp_runner_in_flight_write(f.runner, 0, f.count - 4, f.bytes));
    expect_short(&f, f.count - 4);
    expect_ok(rp_runner_in_flight_write(f.runner, f.count - 4, 4, f.bytes));
    expect_ok(rp_runner_train(f.runner, 3, 10, false));
    close_runner(&f);
}

/* A repeated piece would hide a missing one. */
static void bytes_come_in_order(void **state) {
    (void)state;
    fixture f;
    open_runner(&f);
    assert_int_equal(rp_runner_in_flight_write(f.runner, 0, 4, f.bytes), RP_ERR_PEER);
    assert_int_equal(rp_runner_resume(f.runner, 0, f.count - 4), RP_ERR_PEER);
    expect_ok(rp_runner_resume(f.runner, 0, f.count));
    assert_int_equal(rp_runner_in_flight_write(f.runner, 4, 4, f.bytes), RP_ERR_PEER);
    expect_ok(rp_runner_in_flight_write(f.runner, 0, 4, f.bytes));
    assert_int_equal(rp_runner_in_flight_write(f.runner, 0, 4, f.bytes), RP_ERR_PEER);
    assert_int_equal(rp_runner_in_flight_write(f.runner, 4, f.count, f.bytes), RP_ERR_PEER);
    expect_ok(rp_runner_in_flight_write(f.runner, 4, f.count - 4, f.bytes));
    expect_ok(rp_runner_train(f.runner, 3, 10, false));
    close_runner(&f);
}

/* Without a word of what was in flight the pipes are filled anew. */
static void nothing_in_flight_is_nothing_short(void **state) {
    (void)state;
    fixture f;
    open_runner(&f);
    expect_ok(rp_runner_train(f.runner, 3, 10, false));
    close_runner(&f);
}

/* Stage 0 has forwarded the step at which it pauses. */
static void what_is_in_flight_is_drained(void **state) {
    (void)state;
    fixture f;
    open_runner(&f);
    expect_ok(rp_runner_resume(f.runner, 0, f.count));
    expect_ok(rp_runner_in_flight_write(f.runner, 0, f.count, f.bytes));
    assert_int_equal(rp_runner_train(f.runner, 3, 3, true), RP_ERR_PEER);
    assert_non_null(strstr(rp_err_message(), "step 3 is in flight"));
    expect_ok(rp_runner_train(f.runner, 3, 4, true));
    close_runner(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_transfer_is_an_error),
        cmocka_unit_test(bytes_come_in_order),
        cmocka_unit_test(nothing_in_flight_is_nothing_short),
        cmocka_unit_test(what_is_in_flight_is_drained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
