#include "schedule.h"

#include <string.h>

#include "sched/method.h"

extern const rp_sched_kind rp_sched_interleaved_1f1b, rp_sched_1f1b;

static rp_err draw_chunks(FILE *file, const rp_sched_kind *kind, uint32_t nodes, uint32_t chunks,
                          uint32_t micro) {
    const rp_draw_options options = {
        .kind = kind, .stages = nodes, .chunks = chunks, .micro = micro};
    return rp_draw_schedule(file, &options);
}

static bool draws_chunks(uint32_t nodes, uint32_t chunks, uint32_t micro, const char *want) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    const rp_err err = draw_chunks(file, &rp_sched_interleaved_1f1b, nodes, chunks, micro);
    (void)fclose(file);
    const bool same = err == RP_OK && strcmp(text, want) == 0;
    if (!same) {
        print_error("drawn:\n%swanted:\n%s", text, want);
    }
    free(text);
    return same;
}

/* Megatron-LM's figure 4: 4 devices, 8 microbatches, 2 chunks. The order on each device is the
 * figure's; there a backward is twice as wide. `a` and `b` are the light and the dark chunk. */
static void drawing_of_the_paper(void **state) {
    (void)state;
    assert_true(draws_chunks(
        4, 2, 8,
        "interleaved-1f1b, 4 nodes of 2 stages, 8 microbatches: 38 columns, bubble 15.8 %\n"
        "F0a F1a F2a F3a F0b F1b F2b F3b F4a F5a F6a B0b F7a B1b .   .   F4b B2b F5b B3b F6b B0a "
        "F7b B1a B2a B3a .   B4b .   B5b .   B6b .   B7b B4a B5a B6a B7a "
        "  node 0  in flight 11  versions 1  gap 0\n"
        ".   F0a F1a F2a F3a F0b F1b F2b F3b F4a B0b F5a B1b F6a B2b F7a B3b F4b B0a F5b B1a F6b "
        "B2a F7b B3a .   B4b .   B5b .   B6b .   B7b B4a B5a B6a B7a .   "
        "  node 1  in flight 9  versions 1  gap 0\n"
        ".   .   F0a F1a F2a F3a F0b F1b F2b B0b F3b B1b F4a B2b F5a B3b F6a B0a F7a B1a F4b B2a "
        "F5b B3a F6b B4b F7b B5b .   B6b .   B7b B4a B5a B6a B7a .   .   "
        "  node 2  in flight 7  versions 1  gap 0\n"
        ".   .   .   F0a F1a F2a F3a F0b B0b F1b B1b F2b B2b F3b B3b F4a B0a F5a B1a F6a B2a F7a "
        "B3a F4b B4b F5b B5b F6b B6b F7b B7b B4a B5a B6a B7a .   .   .   "
        "  node 3  in flight 5  versions 1  gap 0\n"));
    assert_true(draws_chunks(
        2, 2, 2,
        "interleaved-1f1b, 2 nodes of 2 stages, 2 microbatches: 10 columns, bubble 20.0 %\n"
        "F0a F1a F0b F1b .   B0b .   B1b B0a B1a   node 0  in flight 4  versions 1  gap 0\n"
        ".   F0a F1a F0b B0b F1b B1b B0a B1a .     node 1  in flight 3  versions 1  gap 0\n"));
}

static void expect_same_op(const rp_op *a, const rp_op *b) {
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->stage, b->stage);
    assert_int_equal(a->step, b->step);
    assert_int_equal(a->micro, b->micro);
    assert_int_equal(a->samples.first, b->samples.first);
    assert_int_equal(a->samples.count, b->samples.count);
}

/* With one chunk a board it is 1F1B. */
static void one_chunk_is_1f1b(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 8; stages++) {
        for (uint32_t stage = 0; stage < stages; stage++) {
            const rp_sched_shape shape = {.stages = stages,
                                          .stage = stage,
                                          .step_end = 3,
                                          .epoch_samples = 40,
                                          .batch = 15,
                                          .micro = 2};
            rp_sched_state plain, chunked;
            rp_op a, b;
            rp_sched_start(&plain, &shape);
            rp_sched_start(&chunked, &shape);
            while (rp_sched_1f1b.next(&plain, &a)) {
                assert_true(rp_sched_interleaved_1f1b.next(&chunked, &b));
                expect_same_op(&a, &b);
            }
            assert_false(rp_sched_interleaved_1f1b.next(&chunked, &b));
        }
    }
}

/* Megatron-LM's schedule table, written out: the k-th virtual microbatch of a step. Places that the
 * step has no microbatch for are passed over. */
static void expect_order(const rp_sched_shape *shape, uint32_t micros) {
    const uint32_t nodes = shape->stages / shape->chunks;
    const uint32_t node = shape->stage;
    uint32_t chunk_of[512], micro_of[512];
    uint32_t count = 0;
    for (uint32_t first = 0; first < micros; first += nodes) {
        for (uint32_t chunk = 0; chunk < shape->chunks; chunk++) {
            for (uint32_t m = first; m < first + nodes; m++) {
                chunk_of[count] = chunk;
                micro_of[count++] = m;
            }
        }
    }
    uint32_t warm_up = 2 * (nodes - 1 - node) + (shape->chunks - 1) * nodes;
    warm_up = warm_up < count ? warm_up : count;
    rp_sched_state list;
    rp_op op;
    uint32_t f = 0, b = 0;
    rp_sched_start(&list, shape);
    while (b < count) {
        const bool forward = f < count && f < warm_up + 1 + b;
        const uint32_t i = forward ? f++ : b++;
        const uint32_t chunk = forward ? chunk_of[i] : shape->chunks - 1 - chunk_of[i];
        if (micro_of[i] >= micros) {
            continue;
        }
        assert_true(rp_sched_interleaved_1f1b.next(&list, &op));
        assert_int_equal(op.kind, forward ? RP_OP_FORWARD : RP_OP_BACKWARD);
        assert_int_equal(op.micro, micro_of[i]);
        assert_int_equal(op.stage, node + chunk * nodes);
    }
    for (uint32_t chunk = 0; chunk < shape->chunks; chunk++) {
        assert_true(rp_sched_interleaved_1f1b.next(&list, &op));
        assert_int_equal(op.kind, RP_OP_UPDATE);
        assert_int_equal(op.stage, node + chunk * nodes);
        assert_int_equal(op.samples.count, micros);
    }
}

static void order_is_megatrons(void **state) {
    (void)state;
    for (uint32_t nodes = 1; nodes <= 8; nodes++) {
        for (uint32_t chunks = 2; chunks <= 4; chunks++) {
            for (uint32_t micros = 1; micros <= 24; micros++) {
                for (uint32_t node = 0; node < nodes; node++) {
                    const rp_sched_shape shape = {.stages = nodes * chunks,
                                                  .stage = node,
                                                  .chunks = chunks,
                                                  .step_end = 1,
                                                  .epoch_samples = micros,
                                                  .batch = micros,
                                                  .micro = 1};
                    expect_order(&shape, micros);
                }
            }
        }
    }
}

/* A stage's own ops: each sample once, in the order of 1F1B's gradient sums; a copied state goes on
 * in the same way, also in the middle of the updates. */
static void stages_see_each_sample_once(void **state) {
    (void)state;
    for (uint32_t stage = 0; stage < 12; stage++) {
        for (uint32_t micros = 1; micros <= 17; micros++) {
            const rp_sched_shape shape = {.stages = 12,
                                          .stage = stage,
                                          .chunks = 3,
                                          .step_end = 3,
                                          .epoch_samples = 5 * micros,
                                          .batch = 2 * micros,
                                          .micro = 2};
            rp_sched_state list;
            rp_op op;
            uint64_t step = 0;
            uint32_t forward = 0, backward = 0;
            rp_sched_start(&list, &shape);
            for (;;) {
                rp_sched_state copy = list;
                rp_op again;
                const bool more = rp_sched_next_of_stage(&rp_sched_interleaved_1f1b, &list, &op);
                assert_int_equal(rp_sched_next_of_stage(&rp_sched_interleaved_1f1b, &copy, &again),
                                 more);
                if (!more) {
                    break;
                }
                expect_same_op(&op, &again);
                assert_int_equal(op.step, step);
                if (op.kind == RP_OP_FORWARD) {
                    assert_int_equal(op.micro, forward++);
                } else if (op.kind == RP_OP_BACKWARD) {
                    assert_int_equal(op.micro, backward++);
                    assert_true(backward <= forward);
                } else {
                    assert_int_equal(backward, rp_sched_micro_count(&shape, step));
                    forward = backward = 0;
                    step++;
                }
            }
            assert_int_equal(step, 3);
        }
    }
}

static rp_sched_facts play_schedule(rp_arena *arena, const rp_sched_kind *kind, uint32_t nodes,
                                    uint32_t chunks, uint32_t micros, double forward,
                                    double backward) {
    double cost[3][64];
    for (uint32_t k = 0; k < nodes * chunks; k++) {
        cost[0][k] = forward / chunks;
        cost[1][k] = backward / chunks;
        cost[2][k] = 0;
    }
    const rp_sched_costs costs = {
        .forward = cost[0], .backward_input = cost[1], .backward_weight = cost[2]};
    const rp_sched_shape shape = {.stages = nodes * chunks,
                                  .chunks = chunks,
                                  .step_end = 1,
                                  .epoch_samples = 2 * micros,
                                  .batch = 2 * micros,
                                  .micro = 2};
    rp_sched_facts facts;
    expect_ok(rp_sched_replay(arena, kind, &shape, &costs, NULL, NULL, &facts));
    return facts;
}

/* The bubble is 1F1B's divided by the number of chunks, where D divides the microbatches. With a
 * short last group nothing locks, and a step takes no longer than if the group were full. */
static void bubble_is_divided_by_the_chunks(void **state) {
    (void)state;
    static const double costs[][2] = {{1, 1}, {1, 2}, {1.3, 2.1}, {2, 1}};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        const double f = costs[i][0], b = costs[i][1];
        for (uint32_t nodes = 2; nodes <= 8; nodes++) {
            for (uint32_t chunks = 2; chunks <= 4; chunks++) {
                for (uint32_t micros = 1; micros <= 4 * nodes; micros++) {
                    const uint32_t full = (micros + nodes - 1) / nodes * nodes;
                    const double plain = (full + nodes - 1) * (f + b); /* METHODS 1 */
                    const double work = full * (f + b);
                    const double want = work + (plain - work) / chunks;
                    rp_arena arena;
                    rp_arena_init(&arena, "test", 0);
                    const rp_sched_facts facts = play_schedule(&arena, &rp_sched_interleaved_1f1b,
                                                               nodes, chunks, micros, f, b);
                    if (micros == full) {
                        expect_close(facts.makespan, want, 1e-12, 0);
                    }
                    assert_true(facts.makespan <= want * (1 + 1e-12));
                    for (uint32_t k = 0; k < nodes * chunks; k++) {
                        assert_int_equal(facts.stage[k].staleness_max, 0);
                        assert_int_equal(facts.stage[k].versions_max, 1);
                    }
                    rp_arena_finish(&arena);
                }
            }
        }
    }
}

static void only_interleaved_schedules_have_chunks(void **state) {
    (void)state;
    expect_err(draw_chunks(stdout, &rp_sched_1f1b, 4, 2, 8), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "one stage on each board"));
    expect_err(draw_chunks(stdout, &rp_sched_interleaved_1f1b, 40, 2, 8), RP_ERR_USAGE);
    expect_err(draw_chunks(stdout, &rp_sched_interleaved_1f1b, 4, 17, 8), RP_ERR_USAGE);
}

static uint32_t count_wires(const rp_method *method, uint32_t boards, uint32_t last[2]) {
    const uint32_t stages = rp_method_stages(method, boards);
    uint32_t end[2];
    uint32_t count = 0;
    for (; rp_method_wire(method, boards, stages, count, end); count++) {
        memcpy(last, end, sizeof end);
    }
    return count;
}

/* The last board sends to the first one; of two boards that is the wire that they have anyway. */
static void chunks_go_round(void **state) {
    (void)state;
    const rp_method row = {.kind = &rp_sched_1f1b, .chunks = 1};
    const rp_method round = {.kind = &rp_sched_interleaved_1f1b, .chunks = 2};
    uint32_t last[2] = {0, 0};
    assert_true(rp_method_is_row(&row) && !rp_method_is_row(&round));
    assert_true(rp_method_is_plain(&row) && !rp_method_is_plain(&round));
    assert_int_equal(count_wires(&row, 1, last), 0);
    assert_int_equal(count_wires(&row, 4, last), 3);
    assert_true(last[0] == 2 && last[1] == 3);
    assert_int_equal(count_wires(&round, 2, last), 1);
    assert_int_equal(count_wires(&round, 4, last), 4);
    assert_true(last[0] == 3 && last[1] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawing_of_the_paper),
        cmocka_unit_test(one_chunk_is_1f1b),
        cmocka_unit_test(order_is_megatrons),
        cmocka_unit_test(stages_see_each_sample_once),
        cmocka_unit_test(bubble_is_divided_by_the_chunks),
        cmocka_unit_test(only_interleaved_schedules_have_chunks),
        cmocka_unit_test(chunks_go_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
