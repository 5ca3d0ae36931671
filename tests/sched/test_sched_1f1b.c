#include "schedule.h"

extern const rp_sched_kind rp_sched_1f1b;

static void drawings(void **state) {
    (void)state;
    assert_true(draws(
        &rp_sched_1f1b, 4, 4,
        "1f1b, 4 stages, 4 microbatches: 14 columns, bubble 42.9 %\n"
        "F0 F1 F2 F3 .  .  .  B0 .  B1 .  B2 .  B3   stage 0  in flight 4  versions 1  gap 0\n"
        ".  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3 .    stage 1  in flight 3  versions 1  gap 0\n"
        ".  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3 .  .    stage 2  in flight 2  versions 1  gap 0\n"
        ".  .  .  F0 B0 F1 B1 F2 B2 F3 B3 .  .  .    stage 3  in flight 1  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_1f1b, 3, 2,
                      "1f1b, 3 stages, 2 microbatches: 8 columns, bubble 50.0 %\n"
                      "F0 F1 .  .  .  B0 .  B1   stage 0  in flight 2  versions 1  gap 0\n"
                      ".  F0 F1 .  B0 .  B1 .    stage 1  in flight 2  versions 1  gap 0\n"
                      ".  .  F0 B0 F1 B1 .  .    stage 2  in flight 1  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_1f1b, 1, 3,
                      "1f1b, 1 stage, 3 microbatches: 6 columns, bubble 0.0 %\n"
                      "F0 B0 F1 B1 F2 B2   stage 0  in flight 1  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_1f1b, 2, 1,
                      "1f1b, 2 stages, 1 microbatch: 4 columns, bubble 50.0 %\n"
                      "F0 .  .  B0   stage 0  in flight 1  versions 1  gap 0\n"
                      ".  F0 B0 .    stage 1  in flight 1  versions 1  gap 0\n"));
}

static void drawing_of_4_by_8(void **state) {
    (void)state;
    assert_true(draws(&rp_sched_1f1b, 4, 8,
                      "1f1b, 4 stages, 8 microbatches: 22 columns, bubble 27.3 %\n"
                      "F0 F1 F2 F3 .  .  .  B0 F4 B1 F5 B2 F6 B3 F7 B4 .  B5 .  B6 .  B7 "
                      "  stage 0  in flight 4  versions 1  gap 0\n"
                      ".  F0 F1 F2 .  .  B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 .  B6 .  B7 .  "
                      "  stage 1  in flight 3  versions 1  gap 0\n"
                      ".  .  F0 F1 .  B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 .  B7 .  .  "
                      "  stage 2  in flight 2  versions 1  gap 0\n"
                      ".  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 .  .  .  "
                      "  stage 3  in flight 1  versions 1  gap 0\n"));
}

static uint32_t d_minus_k(uint32_t stages, uint32_t stage, uint32_t micro) {
    return micro < stages - stage ? micro : stages - stage;
}

static void sizes(void **state) {
    (void)state;
    check_all_sizes(&rp_sched_1f1b, d_minus_k);
}

/* METHODS 1: (M + D - 1)(tF + tB). */
static void duration(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 16; stages++) {
        for (uint32_t micro = 1; micro <= 20; micro++) {
            expect_close(makespan(&rp_sched_1f1b, stages, micro, 1.25, 0.75, 1.5),
                         (micro + stages - 1) * 3.5, 1e-12, 0);
        }
    }
}

/* The list of METHODS 1: min(D-1-k, M) forwards, then pairs, then the rest, then the update. */
static void order(void **state) {
    (void)state;
    for (uint32_t stage = 0; stage < 4; stage++) {
        for (uint32_t micro = 1; micro <= 9; micro++) {
            const rp_sched_shape shape = {.stages = 4,
                                          .stage = stage,
                                          .step_end = 1,
                                          .epoch_samples = micro,
                                          .batch = micro,
                                          .micro = 1};
            rp_sched_state s;
            rp_op op;
            rp_sched_start(&s, &shape);
            const uint32_t warm = 3 - stage < micro ? 3 - stage : micro;
            for (uint32_t i = 0; i < 2 * micro; i++) {
                const uint32_t pair = i < warm ? 0 : i - warm;
                const bool forward = i < warm || (pair % 2 == 0 && i < 2 * micro - warm);
                assert_true(rp_sched_1f1b.next(&s, &op));
                assert_int_equal(op.kind, forward ? RP_OP_FORWARD : RP_OP_BACKWARD);
            }
            assert_true(rp_sched_1f1b.next(&s, &op));
            assert_int_equal(op.kind, RP_OP_UPDATE);
            assert_int_equal(op.samples.count, micro);
            assert_false(rp_sched_1f1b.next(&s, &op));
            assert_false(rp_sched_1f1b.next(&s, &op));
        }
    }
}

static void more_warmup_holds_more(void **state) {
    (void)state;
    const rp_sched_shape shape = {
        .stages = 4, .step_end = 2, .epoch_samples = 8, .batch = 8, .micro = 1, .advance = 1};
    rp_arena arena;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_sched_replay(&arena, &rp_sched_1f1b, &shape, NULL, NULL, NULL, &facts));
    for (uint32_t k = 0; k < 4; k++) {
        assert_int_equal(facts.stage[k].in_flight_max, 2 * (3 - k) + 1);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawings), cmocka_unit_test(drawing_of_4_by_8),
        cmocka_unit_test(sizes),    cmocka_unit_test(duration),
        cmocka_unit_test(order),    cmocka_unit_test(more_warmup_holds_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
