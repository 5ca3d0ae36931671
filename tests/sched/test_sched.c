#include "schedule.h"

extern const rp_sched_kind rp_sched_gpipe, rp_sched_1f1b;

static void kinds_are_found_by_name(void **state) {
    (void)state;
    uint32_t count = 0;
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++, count++) {
        assert_ptr_equal(rp_sched_find((*kind)->name), *kind);
        assert_non_null((*kind)->source);
    }
    assert_true(count >= 3);
    assert_null(rp_sched_find("1F1B"));
    assert_null(rp_sched_find(""));
}

/* A kind that nothing issues would be drawn, traced and told over the wire by nobody's test. */
static void some_schedule_issues_every_kind_of_op(void **state) {
    (void)state;
    uint32_t issued[RP_OP_KINDS] = {0};
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++) {
        const rp_sched_shape shape = {
            .stages = 3, .step_end = 4, .epoch_samples = 16, .batch = 8, .micro = 2};
        rp_sched_state list;
        rp_op op;
        rp_sched_start(&list, &shape);
        while ((*kind)->next(&list, &op)) {
            issued[op.kind]++;
        }
    }
    for (uint32_t i = 0; i < RP_OP_KINDS; i++) {
        if (issued[i] == 0) {
            fail_msg("no schedule issues op %u, '%s'", i, rp_op_letter(i));
        }
    }
    assert_int_equal(RP_OP_UPDATE, 4); /* on the wire */
}

static void ranges_of_a_step(void **state) {
    (void)state;
    const rp_sched_shape shape = {
        .stages = 1, .step_end = 9, .epoch_samples = 25, .batch = 10, .micro = 4};
    assert_int_equal(rp_sched_epoch_steps(&shape), 3);
    for (uint64_t step = 0; step < 9; step++) {
        const bool last = step % 3 == 2;
        assert_int_equal(rp_sched_step_samples(&shape, step), last ? 5 : 10);
        assert_int_equal(rp_sched_micro_count(&shape, step), last ? 2 : 3);
        const rp_range range = rp_sched_micro_range(&shape, step, last ? 1 : 2);
        assert_int_equal(range.first, last ? 4 : 8);
        assert_int_equal(range.count, last ? 1 : 2);
    }
    /* an epoch of whole steps, a microbatch larger than the batch, numbers beyond 32 bits */
    const rp_sched_shape whole = {.stages = 1, .epoch_samples = 20, .batch = 10, .micro = 16};
    assert_int_equal(rp_sched_epoch_steps(&whole), 2);
    assert_int_equal(rp_sched_step_samples(&whole, 1), 10);
    assert_int_equal(rp_sched_micro_count(&whole, 1), 1);
    assert_int_equal(rp_sched_micro_range(&whole, 1, 0).count, 10);
    const rp_sched_shape large = {.stages = 1,
                                  .epoch_samples = UINT64_C(10000000000000),
                                  .batch = UINT32_MAX,
                                  .micro = UINT32_MAX - 1};
    assert_int_equal(rp_sched_epoch_steps(&large), 2329);
    assert_int_equal(rp_sched_step_samples(&large, 2328), 1316137240);
    assert_int_equal(rp_sched_micro_range(&large, 0, 1).first, UINT32_MAX - 1);
    assert_int_equal(rp_sched_micro_range(&large, 0, 1).count, 1);
}

/* Two stages, two microbatches, the second one short, a slow link and an update, worked out by
 * hand: the second parcel, ready at 3, waits until the first has left the link at 8. */
static void costs_and_links(void **state) {
    (void)state;
    const double forward[] = {2, 4}, input[] = {1, 2}, weight[] = {3, 4};
    const double update[] = {0.5, 0.25}, send[] = {6, 1};
    const rp_sched_costs costs = {.forward = forward,
                                  .backward_input = input,
                                  .backward_weight = weight,
                                  .update = update,
                                  .send = send};
    const rp_sched_shape shape = {
        .stages = 2, .step_end = 1, .epoch_samples = 6, .batch = 6, .micro = 4};
    rp_arena arena;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_sched_replay(&arena, &rp_sched_gpipe, &shape, &costs, NULL, NULL, &facts));
    /* stage 0: F0 0-2, F1 2-3 (half); link: 2-8, 8-11
     * stage 1: F0 8-12, F1 12-14, B1 14-17, B0 17-23, U 23-23.25; link back: 17-17.5, 23-24
     * stage 0: B1 17.5-19.5, B0 24-28, U 28-28.5 */
    expect_close(facts.stage[1].end, 23.25, 1e-12, 0);
    expect_close(facts.stage[0].end, 28.5, 1e-12, 0);
    expect_close(facts.makespan, 28.5, 1e-12, 0);
    expect_close(facts.stage[0].busy, 9.5, 1e-12, 0);
    expect_close(facts.stage[1].busy, 15.25, 1e-12, 0);
    expect_close(facts.bubble, 1 - 24.75 / 57, 1e-12, 0);
    rp_arena_finish(&arena);
}

/* A parcel has the medium when it is ready and those that were ready sooner have left, whichever
 * board did its op first. */
static void edges_take_turns_on_a_medium(void **state) {
    (void)state;
    static const double edge[] = {2, 2, 2, 2};
    static const uint32_t medium[] = {1, 1, 1, 1};
    static const uint32_t apart[] = {0, 0, 0, 0};
    static const struct {
        double forward[3];
        const uint32_t *medium;
        double makespan;
    } cases[] = {
        /* stage 0: F 0-1, 1-2; links 1-3, 3-5; stage 1: F 3-4, 5-6; links 4-6, 6-8; stage 2: F 6-7,
         * 8-9, B 9-10, 10-11; links 10-12, 12-14; stage 1: 12-13, 14-15; links 13-15, 15-17; stage
         * 0: 15-16, 17-18 */
        {{1, 1, 1}, apart, 18},
        /* the medium: 1-3, 3-5, 5-7 (ready 4), 7-9 (ready 6); stage 2: F 7-8, 9-10, B 10-11, 11-12;
         * the medium: 11-13, 13-15 (ready 12), 15-17 (ready 14), 17-19; stage 0: 17-18, 19-20 */
        {{1, 1, 1}, medium, 20},
        /* stage 0: F 0-10, 10-20; the medium: 10-12, and 13-15 for stage 1, whose op began behind
         * one that sends at 20: 20-22; stage 1: F 22-23; 23-25; stage 2: F 25-26, B 26-27, 27-28;
         * the medium: 27-29, 29-31, 31-33 (ready 30), 33-35; stage 0: 33-34, 35-36 */
        {{10, 1, 1}, medium, 36}};
    const rp_sched_shape shape = {
        .stages = 3, .step_end = 1, .epoch_samples = 2, .batch = 2, .micro = 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_sched_costs costs = {
            .forward = cases[i].forward, .edge = edge, .medium = cases[i].medium};
        rp_arena arena;
        rp_sched_facts facts;
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_sched_replay(&arena, &rp_sched_gpipe, &shape, &costs, NULL, NULL, &facts));
        expect_close(facts.makespan, cases[i].makespan, 1e-12, 0);
        for (uint32_t e = 0; e < 4; e++) {
            assert_int_equal(facts.edge[e].parcels, 2);
            expect_close(facts.edge[e].busy, 4, 1e-12, 0);
        }
        rp_arena_finish(&arena);
    }
}

/* GPipe with microbatch sizes of each stage's own, as UMPIPE has them; backwards first to last. */
static const uint32_t *unequal_sizes;

static bool next_unequal(rp_sched_state *s, rp_op *op) {
    const uint32_t size = unequal_sizes[s->shape.stage];
    const uint32_t count = s->shape.batch / size;
    if (s->f + s->b == 2 * count) {
        return false;
    }
    const bool forward = s->f < count;
    const uint32_t micro = (uint32_t)(forward ? s->f++ : s->b++);
    *op = (rp_op){.kind = forward ? RP_OP_FORWARD : RP_OP_BACKWARD,
                  .stage = s->shape.stage,
                  .samples = {micro * size, size},
                  .micro = micro};
    return true;
}

/* METHODS 10, toy of 4 processes and 16 samples: tf = a + 0.3 b, tb = 2 tf, tc = 0.05 b. */
static double unequal_makespan(const uint32_t sizes[4]) {
    const rp_sched_kind unequal = {.name = "unequal", .source = "", .next = next_unequal};
    static const double a[] = {0.2, 1, 0.2, 0.2};
    double forward[4], backward[4], none[4] = {0}, send[4];
    for (uint32_t k = 0; k < 4; k++) {
        const double microbatches = 16 / (double)sizes[k]; /* the replay scales by count / 16 */
        forward[k] = microbatches * (a[k] + 0.3 * sizes[k]);
        backward[k] = 2 * forward[k];
        send[k] = 16 * 0.05;
    }
    const rp_sched_costs costs = {
        .forward = forward, .backward_input = backward, .backward_weight = none, .send = send};
    const rp_sched_shape shape = {
        .stages = 4, .step_end = 1, .epoch_samples = 16, .batch = 16, .micro = 16};
    rp_arena arena;
    rp_sched_facts facts;
    unequal_sizes = sizes;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_sched_replay(&arena, &unequal, &shape, &costs, NULL, NULL, &facts));
    rp_arena_finish(&arena);
    return facts.makespan;
}

static void ranges_may_differ_by_stage(void **state) {
    (void)state;
    static const uint32_t choice[] = {1, 2, 4, 8};
    double equal = 1e9, best = 1e9;
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t sizes[] = {choice[i & 3], choice[i >> 2 & 3], choice[i >> 4 & 3],
                                  choice[i >> 6]};
        const double span = unequal_makespan(sizes);
        const bool same = sizes[0] == sizes[1] && sizes[1] == sizes[2] && sizes[2] == sizes[3];
        best = span < best ? span : best;
        equal = same && span < equal ? span : equal;
    }
    expect_close(equal, 40.2, 1e-12, 0); /* the figures of METHODS 10 */
    expect_close(best, 38.7, 1e-12, 0);
    expect_close(unequal_makespan((const uint32_t[]){4, 4, 2, 2}), 38.7, 1e-12, 0);
}

/* Stage 0 wants its gradient after one forward; the last stage wants two activations first. */
static bool next_stuck(rp_sched_state *s, rp_op *op) {
    const bool first = s->shape.stage == 0;
    if (s->f < 2 && (!first || s->f == s->b)) {
        *op = rp_sched_micro_op(s, RP_OP_FORWARD, s->step, s->f++);
    } else if (s->b < 2) {
        *op = rp_sched_micro_op(s, RP_OP_BACKWARD, s->step, s->b++);
    } else {
        return false;
    }
    return true;
}

/* No backwards at all: nobody waits, but everything is left behind. */
static bool next_forgetful(rp_sched_state *s, rp_op *op) {
    if (s->f == 2) {
        return false;
    }
    *op = rp_sched_micro_op(s, RP_OP_FORWARD, s->step, s->f++);
    return true;
}

/* Its backward of microbatch 0 stands before its forward. */
static bool next_reversed(rp_sched_state *s, rp_op *op) {
    if (s->b == 0) {
        *op = rp_sched_micro_op(s, RP_OP_BACKWARD, s->step, s->b++);
        return true;
    }
    return next_forgetful(s, op);
}

static rp_err replay_bad(bool (*next)(rp_sched_state *, rp_op *)) {
    const rp_sched_kind bad = {.name = "bad", .source = "", .flushed = true, .next = next};
    const rp_sched_shape shape = {
        .stages = 2, .step_end = 1, .epoch_samples = 2, .batch = 2, .micro = 1};
    rp_arena arena;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    const rp_err err = rp_sched_replay(&arena, &bad, &shape, NULL, NULL, NULL, &facts);
    rp_arena_finish(&arena);
    return err;
}

static void wrong_schedules_are_named(void **state) {
    (void)state;
    expect_err(replay_bad(next_stuck), RP_ERR_FAULT);
    assert_string_equal(rp_err_message(),
                        "schedule bad: deadlock; stage 0 at B0 of step 0 waits for a gradient from "
                        "stage 1; stage 1 at F1 of step 0 waits for an activation from stage 0");
    expect_err(replay_bad(next_reversed), RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), "stage 0 at B0 of step 0 waits for its own forward"));
    expect_err(replay_bad(next_forgetful), RP_ERR_FAULT);
    assert_non_null(strstr(rp_err_message(), "stage 0 ends with 2 forwards and 0 weight "
                                             "gradients of stage 0 left"));
}

static void no_memory_is_an_error(void **state) {
    (void)state;
    const rp_sched_shape shape = {
        .stages = 16, .step_end = 1, .epoch_samples = 2, .batch = 2, .micro = 1};
    rp_arena arena;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 64);
    expect_err(rp_sched_replay(&arena, &rp_sched_1f1b, &shape, NULL, NULL, NULL, &facts),
               RP_ERR_MEMORY);
    rp_arena_finish(&arena);
}

typedef struct {
    uint32_t count;
    double last;
    double node_end[8];
} visits;

static void visit_slot(void *context, const rp_sched_slot *slot) {
    visits *v = context;
    v->count++;
    assert_true(slot->start >= v->last);                 /* in order of start */
    assert_true(slot->start >= v->node_end[slot->node]); /* one op at a time on a node */
    v->last = slot->start;
    v->node_end[slot->node] = slot->end;
}

static void every_op_is_visited_in_order(void **state) {
    (void)state;
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++) {
        const rp_sched_shape shape = {
            .stages = 4, .step_end = 3, .epoch_samples = 18, .batch = 8, .micro = 1};
        const uint32_t per_micro = (*kind)->split_backward ? 3 : 2;
        visits v = {0};
        rp_arena arena;
        rp_sched_facts facts;
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_sched_replay(&arena, *kind, &shape, NULL, visit_slot, &v, &facts));
        if ((*kind)->flushed) {
            assert_int_equal(v.count, 4 * (18 * per_micro + 3));
        }
        rp_arena_finish(&arena);
    }
}

static void an_empty_run_takes_no_time(void **state) {
    (void)state;
    const rp_sched_shape shape = {
        .stages = 3, .step_first = 7, .step_end = 7, .epoch_samples = 2, .batch = 2, .micro = 1};
    rp_arena arena;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_sched_replay(&arena, &rp_sched_1f1b, &shape, NULL, NULL, NULL, &facts));
    expect_close(facts.makespan, 0, 0, 0);
    expect_close(facts.bubble, 0, 0, 0);
    rp_arena_finish(&arena);
}

/* The checkers of schedule.h notice: a schedule that drops its last backward, one that keeps a
 * count outside of its state. */
static bool next_dropping(rp_sched_state *s, rp_op *op) {
    if (s->step < s->shape.step_end && s->f == 2 && s->b == 1) {
        *op = rp_sched_end_step(s);
        return true;
    }
    return rp_sched_1f1b.next(s, op);
}

static bool next_impure(rp_sched_state *s, rp_op *op) {
    static uint32_t calls;
    const bool more = rp_sched_1f1b.next(s, op);
    op->micro += calls++;
    return more;
}

static void checkers_notice(void **state) {
    (void)state;
    const rp_sched_shape shape = {
        .stages = 2, .step_end = 2, .epoch_samples = 4, .batch = 2, .micro = 1};
    rp_sched_kind kind = rp_sched_1f1b;
    assert_true(each_sample_once(&kind, &shape));
    kind.next = next_dropping;
    assert_false(each_sample_once(&kind, &shape));
    kind.next = next_impure;
    assert_false(each_sample_once(&kind, &shape));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_found_by_name),
        cmocka_unit_test(some_schedule_issues_every_kind_of_op),
        cmocka_unit_test(ranges_of_a_step),
        cmocka_unit_test(costs_and_links),
        cmocka_unit_test(edges_take_turns_on_a_medium),
        cmocka_unit_test(ranges_may_differ_by_stage),
        cmocka_unit_test(wrong_schedules_are_named),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(every_op_is_visited_in_order),
        cmocka_unit_test(an_empty_run_takes_no_time),
        cmocka_unit_test(checkers_notice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
