#include "expect.h"

#include "planning/advance.h"

enum { STAGES = 4 };

/* Every op takes `op` seconds, every hop `delay`. */
static rp_advance_choice choose_fed(const char *schedule, double op, double delay, double feed) {
    const double ops[STAGES] = {op, op, op, op};
    const double none[STAGES] = {0};
    const double delays[STAGES] = {delay, delay, delay, delay};
    const rp_sched_costs costs = {
        .forward = ops, .backward_input = ops, .backward_weight = none, .delay = delays};
    const rp_sched_shape shape = {.stages = STAGES, .batch = 8, .micro = 8, .epoch_samples = 8};
    rp_arena arena;
    rp_node *root;
    rp_method method;
    rp_advance_choice choice;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_config_read_text(&arena, schedule, strlen(schedule), "test", &root));
    expect_ok(rp_method_parse(root, STAGES, &method));
    assert_true(method.advance_auto);
    expect_ok(rp_advance_choose(&method, &shape, &costs, feed, &choice));
    rp_arena_finish(&arena);
    return choice;
}

static rp_advance_choice choose_advance(const char *schedule, double op, double delay) {
    return choose_fed(schedule, op, delay, 0);
}

static void links_without_delay_need_none(void **state) {
    (void)state;
    const rp_advance_choice choice = choose_advance("schedule: {kind: async, advance: auto}", 1, 0);
    assert_int_equal(choice.advance, 0);
    assert_true(choice.busy[0] > 0.95);
}

/* Between two neighbours a forward, a backward and two hops lie behind each forward that is open
 * besides one's own: 2 op of work hide 2 op + 2 delay with 1 + delay / op forwards a hop. */
static void each_op_of_delay_needs_one(void **state) {
    (void)state;
    for (uint32_t delay = 1; delay <= RP_ADVANCE_AUTO; delay++) {
        const rp_advance_choice choice =
            choose_advance("schedule: {kind: pipeoptim, advance: auto}", 0.5, 0.5 * delay);
        assert_int_equal(choice.advance, delay);
        assert_true(choice.busy[delay] > 0.9 && choice.busy[delay - 1] < 0.9 * choice.busy[delay]);
    }
}

/* Far links: the most that there is, and no board is kept busy. */
static void the_most_is_not_always_enough(void **state) {
    (void)state;
    const rp_advance_choice choice =
        choose_advance("schedule: {kind: async, advance: auto}", 1, 50);
    assert_int_equal(choice.advance, RP_ADVANCE_AUTO);
    assert_true(choice.busy[RP_ADVANCE_AUTO] < 0.5);
}

/* A stated limit decides how far it may go: (1 + a) (D - 1) updates, or R - 1 steps of other
 * replicas; and no farther than what the links need. */
static void a_limit_is_kept(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        uint32_t advance;
    } cases[] = {
        {"schedule: {kind: async, advance: {max_staleness: 3}}", 0},
        {"schedule: {kind: async, advance: {max_staleness: 29}}", 8},
        {"schedule: {kind: async, advance: {max_staleness: 30}}", 9},
        {"schedule: {kind: async, advance: {max_staleness: 1000}}", 12},
        {"schedule: {kind: ea-pipe, advance: {max_staleness: 8}}", 1}, /* 7 replicas, not 10 */
        {"schedule: {kind: ea-pipe, replicas: 4, advance: {max_staleness: 8}}", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_advance_choice choice = choose_advance(cases[i].schedule, 0.5, 6);
        if (choice.advance != cases[i].advance) {
            fail_msg("%s: %u", cases[i].schedule, choice.advance);
        }
        assert_true(choice.tried > choice.advance);
        assert_int_equal(rp_advance_wanted(&choice), 12);
    }
}

/* Inputs that come slowly set the pace: more in flight would be stale for nothing. */
static void a_slow_feed_needs_none(void **state) {
    (void)state;
    const char *schedule = "schedule: {kind: async, advance: auto}";
    assert_int_equal(choose_fed(schedule, 0.5, 1.5, 0).advance, 3);
    const rp_advance_choice choice = choose_fed(schedule, 0.5, 1.5, 2);
    assert_int_equal(choice.advance, 1);
    expect_close(choice.busy_most, 0.5, 1e-12, 0);
    expect_close(choice.busy[1], 0.5, 1e-12, 0);
}

/* Replicas follow what is in flight, unless they are given: then more forwards find no replica, and
 * only hold up the backwards behind them. */
static void replicas_follow(void **state) {
    (void)state;
    rp_advance_choice choice = choose_advance("schedule: {kind: ea-pipe, advance: auto}", 1, 2);
    assert_int_equal(choice.advance, 2);
    choice = choose_advance("schedule: {kind: ea-pipe, replicas: 4, advance: auto}", 1, 2);
    assert_int_equal(choice.advance, 0);
    assert_true(choice.busy[RP_ADVANCE_AUTO] <= choice.busy[0]);
}

/* METHODS 13: without a flush every board is busy, if the method has microbatches enough; GPipe has
 * its M / (M + D - 1). */
static void methods_keep_boards_busy(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        uint32_t micros; /* of a step; 0: one a stage */
        double busy;     /* 0: at least 0.95 */
    } cases[] = {
        {"async", 1, 0},
        {"pipedream", 1, 0},
        {"{kind: pipedream, vertical_sync: true}", 1, 0},
        {"spectrain", 1, 0},
        {"pipeoptim", 1, 0},
        {"{kind: pipeoptim, advance: 2}", 1, 0},
        {"{kind: pipeoptim, weights: stash}", 1, 0},
        {"ea-pipe", 1, 0},
        {"{kind: ea-pipe, lean: true}", 1, 0},
        {"{kind: ea-pipe, replicas: 2, weights: pipeoptim}", 1, 0},
        {"pipedream-2bw", 0, 0},
        {"{kind: pipedream-2bw, weights: pipeoptim}", 0, 0},
        {"xpipe", 0, 0},
        {"avgpipe", 8, 0}, /* 2 (D - 1) + 1 are in flight */
        {"gpipe", 1, 1.0 / 4},
        {"gpipe", 0, 4.0 / 7},
        {"1f1b", 8, 8.0 / 11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        rp_arena arena;
        rp_node *root;
        rp_method method;
        double busy;
        const uint32_t micros = cases[i].micros ? cases[i].micros : STAGES;
        const rp_sched_shape shape = {
            .stages = STAGES, .batch = 8, .micro = 8 / micros, .epoch_samples = 8};
        (void)snprintf(text, sizeof text, "schedule: %s", cases[i].schedule);
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_config_read_text(&arena, text, strlen(text), "test", &root));
        expect_ok(rp_method_parse(root, STAGES, &method));
        expect_ok(rp_advance_busy(&method, &shape, NULL, &busy));
        if (cases[i].busy > 0) {
            expect_close(busy, cases[i].busy, 1e-12, 0);
        } else if (!(busy >= 0.95)) {
            fail_msg("%s: %g", text, busy);
        }
        rp_arena_finish(&arena);
    }
}

/* A change costs a drain: it has to be worth one, and measurements that differ a little are not. */
static void a_change_must_pay(void **state) {
    (void)state;
    const rp_advance_choice choice = {.advance = 2, .busy = {0.5, 0.93, 0.97, 0.975, 0.985}};
    assert_true(rp_advance_pays(&choice, 0));
    assert_false(rp_advance_pays(&choice, 1));
    assert_false(rp_advance_pays(&choice, 2));
    assert_true(rp_advance_pays(&choice, 3));
    assert_true(rp_advance_pays(&choice, 4)); /* also where it costs between 1 and 2 % */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_without_delay_need_none),
        cmocka_unit_test(each_op_of_delay_needs_one),
        cmocka_unit_test(the_most_is_not_always_enough),
        cmocka_unit_test(a_limit_is_kept),
        cmocka_unit_test(a_slow_feed_needs_none),
        cmocka_unit_test(replicas_follow),
        cmocka_unit_test(methods_keep_boards_busy),
        cmocka_unit_test(a_change_must_pay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
