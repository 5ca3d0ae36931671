/* The ledger of a board: an update has the gradients of its step's samples, each once. The rings of
 * runners (ring.h) compare theirs, too. */
#include "expect.h"

#include "agent/runner_own.h"

enum { BATCH = 16 };

static rp_job job;
static runner_stage stage;
static rp_runner runner;
static char waiting; /* in place of the port for the sums of other boards */

/* `first`, `end`: the share of the board in 16ths of a step. */
static void begin(double first, double end) {
    job = (rp_job){.stage = 2,
                   .share = {first, end},
                   .epoch_samples = 40,
                   .batch = BATCH,
                   .micro = 4,
                   .method = {.kind = rp_sched_find("gpipe")}};
    stage = (runner_stage){.job = &job, .summands = end > 0 ? (rp_port_in *)&waiting : NULL};
    runner = (rp_runner){.held = &stage,
                         .at = {.held_count = 1},
                         .sched.shape = {.epoch_samples = 40, .batch = BATCH, .micro = 4}};
    rp_runner_begin_account(&runner, 5);
}

static rp_err backward(uint64_t step, uint32_t first, uint32_t count) {
    const rp_op op = {.kind = RP_OP_BACKWARD, .step = step, .samples = {first, count}};
    return rp_runner_account_gradient(&stage, &op);
}

static rp_err update(uint64_t step) {
    const rp_op op = {.kind = RP_OP_UPDATE, .step = step};
    return rp_runner_account_update(&runner, &stage, &op);
}

static void refused(rp_err err, const char *text) {
    expect_err(err, RP_ERR_PEER);
    if (!strstr(rp_err_message(), text)) {
        fail_msg("%s\nexpected in it: %s", rp_err_message(), text);
    }
}

/* Also in a short step at an epoch's end. */
static void whole_steps_are_right(void **state) {
    (void)state;
    rp_run_ledger own;
    rp_run_ledger due = {.digest = 5};
    begin(0, 0);
    for (uint64_t step = 0; step < 3; step++) {
        const uint32_t samples = rp_runner_step_samples(&runner, step);
        for (uint32_t i = 0; i < samples; i += 4) { /* the last one first, as gpipe has them */
            expect_ok(backward(step, samples - i - 4, 4));
        }
        expect_ok(update(step));
    }
    rp_run_ledger_add_steps(&due, &runner.sched.shape, 0, 3);
    expect_ok(rp_runner_ledger(&runner, &own));
    assert_int_equal(own.digest, due.digest);
    assert_int_equal(own.samples, 40);
}

static void other_samples_are_refused(void **state) {
    (void)state;
    begin(0, 0);
    expect_ok(backward(0, 0, 12));
    refused(update(0), "stage 2: the update of step 1 has gradients of 12 samples, expected 16");
    begin(0, 0);
    refused(update(1), "step 2 has gradients of 0 samples, expected 16");
    begin(0, 0);
    expect_ok(backward(0, 0, 16));
    expect_ok(backward(0, 4, 4));
    refused(update(0), "20 samples, expected 16");
    begin(0, 0); /* the right number of them */
    expect_ok(backward(0, 0, 12));
    expect_ok(backward(0, 8, 4));
    refused(update(0), "16 samples, expected 16, each once");
    begin(0, 0);
    expect_ok(backward(1, 0, 16));
    refused(update(0), "the update of step 1 ");
    begin(0, 0);
    expect_ok(backward(1, 0, 8));
    refused(backward(0, 8, 8), "a gradient of step 1 arrived before step 2 was complete");
}

/* Two boards share the stage: this one has the first half of every step. */
static void a_shared_stage_has_the_samples_of_all(void **state) {
    (void)state;
    begin(0, 0.5);
    expect_ok(backward(0, 0, 8));
    stage.all = rp_contributions_of(0, (rp_range){0, 16});
    expect_ok(update(0));
    assert_int_equal(stage.ledger.samples, 16);
    expect_ok(backward(1, 0, 8)); /* what the other board has sent is missing */
    refused(update(1), "step 2 has gradients of 8 samples of all boards, expected 16");
    begin(0, 0.5);
    expect_ok(backward(0, 0, 4)); /* its own, although the sum says otherwise */
    stage.all = rp_contributions_of(0, (rp_range){0, 16});
    refused(update(0), "of 4 samples of this board, expected 8");
    begin(0, 0.5);
    expect_ok(backward(0, 0, 8)); /* one of the other board's twice */
    stage.all = rp_contributions_of(0, (rp_range){0, 15});
    rp_contributions_add(&stage.all, 0, (rp_range){9, 1});
    refused(update(0), "of 16 samples of all boards, expected 16, each once");
}

/* A stage without weights: nothing is exchanged, each board answers for its own samples. */
static void a_shared_stage_without_weights_has_its_own(void **state) {
    (void)state;
    rp_run_ledger due = {.digest = 5};
    begin(0, 0.5);
    stage.summands = NULL;
    expect_ok(backward(0, 0, 8));
    expect_ok(update(0));
    rp_run_ledger_add_steps(&due, &runner.sched.shape, 0, 1);
    assert_int_equal(stage.ledger.digest, due.digest);
    expect_ok(backward(1, 0, 4));
    refused(update(1), "of 4 samples of this board, expected 8");
    begin(0, 0.03125); /* no sample of a short step */
    stage.summands = NULL;
    expect_ok(update(2));
}

static void stages_of_a_board_agree(void **state) {
    (void)state;
    rp_run_ledger own;
    begin(0, 0);
    runner_stage two[2] = {stage, stage};
    rp_job other = {.stage = 4};
    two[1].job = &other;
    runner.held = two;
    runner.at.held_count = 2;
    rp_runner_begin_account(&runner, 9);
    expect_ok(rp_runner_ledger(&runner, &own));
    assert_int_equal(own.digest, 9);
    rp_run_ledger_add_steps(&two[1].ledger, &runner.sched.shape, 0, 1);
    refused(rp_runner_ledger(&runner, &own), "the ledgers of stages 2 and 4 differ: 0 and 16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_steps_are_right),
        cmocka_unit_test(other_samples_are_refused),
        cmocka_unit_test(a_shared_stage_has_the_samples_of_all),
        cmocka_unit_test(a_shared_stage_without_weights_has_its_own),
        cmocka_unit_test(stages_of_a_board_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
