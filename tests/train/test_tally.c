/* Reports of the boards that share the last stage: a step is complete when all parts are there. */
#include "../plan/plans.h"
#include "link/link.h"
#include "train/tally.h"

static const spread_stage stages[] = {{.nodes = 1, .micro = 2},
                                      {.nodes = 3, .share = {0.25, 0.5}, .micro = 2}};

static rp_tally tally;
static rp_arena arena;

static void open_tally(void) {
    rp_arena_init(&arena, "test", 0);
    const rp_plan *plan = spread_plan(&arena, "gpipe", stages, 2, 8); /* steps of 8 and 4 */
    expect_ok(rp_tally_open(&arena, plan, &tally));
    assert_int_equal(tally.count, 3);
}

static rp_err add(uint32_t board, uint64_t due, uint64_t step, uint32_t samples, double loss) {
    const rp_StepDone done = {.step = step, .samples = samples, .loss_sum = loss, .ignored = board};
    return rp_tally_add_step(&tally, board, due, &done);
}

static rp_err add_pass(uint32_t board, double loss) {
    const rp_EvaluateDone done = {.loss_sum = loss, .ignored = 2};
    return rp_tally_add_pass(&tally, board, &done);
}

static void a_step_needs_every_part(void **state) {
    (void)state;
    rp_loss_sum sum = {.loss = -1};
    open_tally();
    expect_ok(add(3, 0, 0, 4, 0.25));
    expect_ok(add(3, 0, 1, 2, 9)); /* one step ahead of the others */
    expect_ok(add(1, 0, 0, 2, 1e20));
    assert_false(rp_tally_take_step(&tally, 0, &sum));
    assert_true(sum.loss < 0);
    expect_ok(add(2, 0, 0, 2, -1e20));
    assert_true(rp_tally_take_step(&tally, 0, &sum));
    expect_close(sum.loss, 0.25, 0, 0); /* in the order of the boards, not of their reports */
    assert_false(rp_tally_take_step(&tally, 0, &sum));
    expect_ok(add(1, 1, 1, 1, 2));
    expect_ok(add(2, 1, 1, 1, 3));
    assert_true(rp_tally_take_step(&tally, 1, &sum));
    expect_close(sum.loss, 14, 0, 0);
    assert_int_equal(sum.ignored, 6);
    rp_arena_finish(&arena);
}

static void other_reports_are_refused(void **state) {
    (void)state;
    open_tally();
    expect_err(add(0, 0, 0, 8, 1), RP_ERR_PEER); /* it has another stage */
    expect_err(add(1, 0, 0, 4, 1), RP_ERR_PEER); /* the samples of board 3 */
    expect_ok(add(1, 2, 2, 2, 1));
    expect_err(add(1, 2, 2, 2, 1), RP_ERR_PEER);                       /* twice */
    expect_err(add(1, 2, 1, 1, 1), RP_ERR_PEER);                       /* over */
    expect_err(add(1, 2, 2 + RP_LINK_CONTROL_MAX, 2, 1), RP_ERR_PEER); /* too far ahead */
    expect_err(add_pass(0, 1), RP_ERR_PEER);
    rp_arena_finish(&arena);
}

static void a_pass_adds_up_by_board(void **state) {
    (void)state;
    open_tally();
    for (int twice = 0; twice < 2; twice++) {
        rp_tally_begin_pass(&tally);
        expect_ok(add_pass(3, 0.5));
        expect_ok(add_pass(1, 1e20));
        expect_ok(add_pass(2, -1e20));
        expect_ok(add_pass(3, 0.25));
        expect_close(rp_tally_pass_sum(&tally).loss, 0.75, 0, 0);
        assert_int_equal(rp_tally_pass_sum(&tally).ignored, 8);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_needs_every_part),
        cmocka_unit_test(other_reports_are_refused),
        cmocka_unit_test(a_pass_adds_up_by_board),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
