/* The best evaluation, and a run that ends because evaluations bring no gain. */
#include "segment.h"

#include <sys/stat.h>

static void open_tracked(void) {
    static const char *const set[] = {"train.stop_after.without_gain=2"};
    open_train_with(set, 1);
    (void)mkdir(rp_folder_paths_of(run_folder)->checkpoints, 0700);
}

/* An evaluation with so many correct samples. */
static bool evaluate(uint32_t correct) {
    bool over = false;
    bool stops;
    const rp_message message = {
        .frame = {.which_body = RP_KIND_EVALUATE_DONE,
                  .body.evaluate_done = {.samples = TEST, .loss_sum = TEST, .correct = correct}}};
    expect_ok(rp_train_begin_evaluation(train, RP_SPLIT_TEST, true));
    expect_ok(rp_train_on_evaluated(train, LAST, &message));
    for (uint32_t i = 0; i < 200 && !over; i++) {
        expect_ok(rp_train_step_pass(train, &over));
        pass_ms(1);
        finish_boards(position.step); /* after they have got their inputs */
    }
    assert_true(over);
    expect_ok(rp_train_keep_score(train, &stops));
    return stops;
}

static void a_run_without_gain_ends(void **state) {
    (void)state;
    open_tracked();
    train_to(1);
    assert_false(evaluate(10)); /* anything is better than nothing */
    assert_int_equal(rp_train_best(train)->step, 1);
    train_to(2);
    assert_false(evaluate(12));
    assert_int_equal(rp_train_best(train)->step, 2);
    expect_close(rp_train_best(train)->value, 0.5, 0, 0);
    train_to(3);
    assert_false(evaluate(12)); /* as good is no gain */
    assert_int_equal(rp_train_end(train), STEPS);
    train_to(4);
    assert_true(evaluate(11));
    assert_int_equal(rp_train_stop_step(train), 4);
    assert_int_equal(rp_train_end(train), 4);
    expect_events(1, .kind = RP_EVENT_STOPPED, .step = 4, .evaluations = 2, .best_step = 2,
                  .accuracy = 0.5);
    close_train();
}

/* What was noted is read again where the run is resumed, or goes back. */
static void a_resumed_run_knows_the_best(void **state) {
    (void)state;
    bool stops;
    open_tracked();
    train_to(1);
    assert_false(evaluate(12));
    train_to(2);
    assert_false(evaluate(3));
    rp_train_resume_best(train);
    assert_int_equal(rp_train_best(train)->step, 1);
    assert_int_equal(rp_train_best(train)->since, 1);
    assert_int_equal(rp_train_stop_step(train), 0);
    expect_ok(rp_train_keep_score(train, &stops)); /* the same evaluation is not counted twice */
    assert_false(stops);
    assert_int_equal(rp_train_best(train)->since, 1);
    train_to(3);
    assert_true(evaluate(3));
    rp_train_resume_best(train);
    assert_int_equal(rp_train_stop_step(train), 3);
    position.step = 4; /* after the end of before: the run has been made longer */
    rp_train_resume_best(train);
    assert_int_equal(rp_train_stop_step(train), 0);
    assert_int_equal(rp_train_end(train), STEPS);
    close_train();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_without_gain_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(a_resumed_run_knows_the_best, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
