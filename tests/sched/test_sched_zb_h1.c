#include "schedule.h"

extern const rp_sched_kind rp_sched_1f1b, rp_sched_zb_h1;

static void drawings(void **state) {
    (void)state;
    assert_true(draws(&rp_sched_zb_h1, 4, 4,
                      "zb-h1, 4 stages, 4 microbatches: 15 columns, bubble 20.0 %\n"
                      "F0 F1 F2 F3 .  .  .  B0 W0 B1 W1 B2 W2 B3 W3   "
                      "stage 0  in flight 4  stashes 4  versions 1  gap 0\n"
                      ".  F0 F1 F2 .  .  B0 F3 B1 W0 B2 W1 B3 W2 W3   "
                      "stage 1  in flight 3  stashes 4  versions 1  gap 0\n"
                      ".  .  F0 F1 .  B0 F2 B1 F3 B2 W0 B3 W1 W2 W3   "
                      "stage 2  in flight 2  stashes 4  versions 1  gap 0\n"
                      ".  .  .  F0 B0 F1 B1 F2 B2 F3 B3 W0 W1 W2 W3   "
                      "stage 3  in flight 1  stashes 4  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_zb_h1, 3, 2,
                      "zb-h1, 3 stages, 2 microbatches: 9 columns, bubble 33.3 %\n"
                      "F0 F1 .  .  .  B0 W0 B1 W1   "
                      "stage 0  in flight 2  stashes 2  versions 1  gap 0\n"
                      ".  F0 F1 .  B0 .  B1 W0 W1   "
                      "stage 1  in flight 2  stashes 2  versions 1  gap 0\n"
                      ".  .  F0 B0 F1 B1 W0 W1 .    "
                      "stage 2  in flight 1  stashes 2  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_zb_h1, 1, 3,
                      "zb-h1, 1 stage, 3 microbatches: 9 columns, bubble 0.0 %\n"
                      "F0 B0 W0 F1 B1 W1 F2 B2 W2   "
                      "stage 0  in flight 1  stashes 1  versions 1  gap 0\n"));
    assert_true(draws(&rp_sched_zb_h1, 2, 1,
                      "zb-h1, 2 stages, 1 microbatch: 5 columns, bubble 40.0 %\n"
                      "F0 .  .  B0 W0   stage 0  in flight 1  stashes 1  versions 1  gap 0\n"
                      ".  F0 B0 W0 .    stage 1  in flight 1  stashes 1  versions 1  gap 0\n"));
}

/* The handcrafted figure of the paper: 27 columns where an undivided backward takes 33. */
static void drawing_of_4_by_8(void **state) {
    (void)state;
    assert_true(
        draws(&rp_sched_zb_h1, 4, 8,
              "zb-h1, 4 stages, 8 microbatches: 27 columns, bubble 11.1 %\n"
              "F0 F1 F2 F3 .  .  .  B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7   "
              "stage 0  in flight 4  stashes 4  versions 1  gap 0\n"
              ".  F0 F1 F2 .  .  B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 W6 W7   "
              "stage 1  in flight 3  stashes 4  versions 1  gap 0\n"
              ".  .  F0 F1 .  B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 B7 W5 W6 W7   "
              "stage 2  in flight 2  stashes 4  versions 1  gap 0\n"
              ".  .  .  F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7   "
              "stage 3  in flight 1  stashes 4  versions 1  gap 0\n"));
}

/* METHODS 2: no stage holds more than stage 0 of 1F1B. */
static uint32_t d_everywhere(uint32_t stages, uint32_t stage, uint32_t micro) {
    (void)stage;
    return micro < stages ? micro : stages;
}

static void sizes(void **state) {
    (void)state;
    check_all_sizes(&rp_sched_zb_h1, d_everywhere);
}

/* METHODS 2: bubble (p-1)(T_F + T_B - T_W) on top of M(T_F + T_B + T_W), exact from M = p on when
 * T_W is the shortest. With fewer microbatches the way through the ring and back is all there is.
 */
static void bubble(void **state) {
    (void)state;
    static const double costs[][3] = {{1, 1, 1}, {1, 0.5, 0.5},   {2, 2, 1},   {3, 1, 1},
                                      {1, 3, 1}, {1.3, 1.1, 0.7}, {1, 2, 0.1}, {1.5, 1.2, 1.2}};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        const double f = costs[i][0], b = costs[i][1], w = costs[i][2];
        for (uint32_t stages = 1; stages <= 16; stages += trials(1, 3)) {
            for (uint32_t micro = 1; micro <= 40; micro++) {
                const double want = micro >= stages
                                        ? micro * (f + b + w) + (stages - 1) * (f + b - w)
                                        : (micro + stages - 1) * (f + b) + w;
                expect_close(makespan(&rp_sched_zb_h1, stages, micro, f, b, w), want, 1e-12, 0);
            }
        }
    }
}

/* Never slower than 1F1B, also when T_W is not the shortest. */
static void no_slower_than_1f1b(void **state) {
    (void)state;
    static const double costs[][3] = {{1, 1, 2}, {1, 2, 1.5}, {0.5, 1, 1}, {2, 0.5, 1}};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        const double f = costs[i][0], b = costs[i][1], w = costs[i][2];
        for (uint32_t stages = 1; stages <= 16; stages += 3) {
            for (uint32_t micro = 1; micro <= 20; micro++) {
                assert_true(makespan(&rp_sched_zb_h1, stages, micro, f, b, w) <=
                            makespan(&rp_sched_1f1b, stages, micro, f, b, w) + 1e-9);
            }
        }
    }
}

static uint32_t weight_order(const rp_sched_kind *kind, const rp_sched_shape *shape,
                             uint32_t micro[64]) {
    rp_sched_state s;
    rp_op op;
    uint32_t count = 0;
    rp_sched_start(&s, shape);
    while (kind->next(&s, &op)) {
        if (op.kind == RP_OP_BACKWARD || op.kind == RP_OP_BACKWARD_WEIGHT) {
            assert_true(count < 64);
            micro[count++] = op.micro;
        }
    }
    return count;
}

static void weight_gradients_are_summed_as_in_1f1b(void **state) {
    (void)state;
    for (uint32_t stage = 0; stage < 16; stage++) {
        for (uint32_t micro = 1; micro <= 20; micro++) {
            const rp_sched_shape shape = {.stages = 16,
                                          .stage = stage,
                                          .step_end = 3,
                                          .epoch_samples = 5 * micro,
                                          .batch = 2 * micro,
                                          .micro = 2};
            uint32_t plain[64], split[64];
            const uint32_t count = weight_order(&rp_sched_1f1b, &shape, plain);
            assert_int_equal(weight_order(&rp_sched_zb_h1, &shape, split), count);
            assert_memory_equal(plain, split, count * sizeof plain[0]);
        }
    }
}

/* Worker i of METHODS 2 (from 1): (p-i+1) activations and (i-1) waiting weight gradients; the one
 * input gradient just taken makes it i for a moment. */
static void deferred_weights(void **state) {
    (void)state;
    const rp_sched_shape shape = {
        .stages = 8, .step_end = 1, .epoch_samples = 24, .batch = 24, .micro = 1};
    rp_arena arena;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_sched_replay(&arena, &rp_sched_zb_h1, &shape, NULL, NULL, NULL, &facts));
    for (uint32_t k = 0; k < 8; k++) {
        assert_int_equal(facts.stage[k].in_flight_max, 8 - k);
        assert_int_equal(facts.stage[k].deferred_weights_max, k + 1);
        assert_int_equal(facts.stage[k].stash_max, 8);
    }
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawings),
        cmocka_unit_test(drawing_of_4_by_8),
        cmocka_unit_test(sizes),
        cmocka_unit_test(bubble),
        cmocka_unit_test(deferred_weights),
        cmocka_unit_test(no_slower_than_1f1b),
        cmocka_unit_test(weight_gradients_are_summed_as_in_1f1b),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
