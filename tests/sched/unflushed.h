/* What every schedule without a flush promises: each sample once, one update a step, D - k forwards
 * in flight, D - 1 - k updates between a forward and its backward (METHODS 1 and 13). A test says
 * which KIND it is about, then includes this, and has UNFLUSHED_TESTS among its own. */
#ifndef RP_TESTS_SCHED_UNFLUSHED_H
#define RP_TESTS_SCHED_UNFLUSHED_H

#include "schedule.h"

#include "sched/method.h"

extern const rp_sched_kind KIND;

static inline bool unflushed_counts(const rp_sched_shape *shape) {
    enum { STEPS_MAX = 64, MICROS_MAX = 8 };
    uint8_t forward[STEPS_MAX][MICROS_MAX] = {{0}};
    uint8_t backward[STEPS_MAX][MICROS_MAX] = {{0}};
    rp_sched_state state;
    rp_op op;
    uint64_t updates = shape->step_first;
    rp_sched_start(&state, shape);
    while (KIND.next(&state, &op)) {
        if (op.step >= STEPS_MAX || op.micro >= MICROS_MAX) {
            return false;
        }
        switch (op.kind) {
        case RP_OP_FORWARD:
            if (forward[op.step][op.micro]++ || state.in_flight > rp_sched_in_flight_max(shape) ||
                (shape->steps_open && op.step >= updates + shape->steps_open)) {
                return false;
            }
            break;
        case RP_OP_BACKWARD:
            if (!forward[op.step][op.micro] || backward[op.step][op.micro]++) {
                return false;
            }
            break;
        case RP_OP_UPDATE:
            for (uint32_t m = 0; m < rp_sched_micro_count(shape, op.step); m++) {
                if (!backward[op.step][m]) {
                    return false;
                }
            }
            if (op.step != updates++) {
                return false;
            }
            break;
        default:
            return false;
        }
    }
    return updates == shape->step_end && state.in_flight == 0;
}

/* Every ring, with and without microbatches, short last steps, a bound on open steps, drains. */
static inline void unflushed_sizes(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 9; stages++) {
        for (uint32_t variant = 0; variant < 48; variant++) {
            rp_sched_shape shape = {.stages = stages,
                                    .step_first = variant % 2,
                                    .step_end = 23,
                                    .epoch_samples = variant % 3 ? 20 : 43,
                                    .batch = 4,
                                    .micro = 1 + variant % 4,
                                    .advance = variant % 5 == 1,
                                    .steps_open = variant / 4 % 4,
                                    .drain = variant / 16 == 1};
            rp_arena arena;
            rp_sched_facts facts;
            rp_arena_init(&arena, "test", 0);
            for (shape.stage = 0; shape.stage < stages; shape.stage++) {
                assert_true(unflushed_counts(&shape));
            }
            expect_ok(rp_sched_replay(&arena, &KIND, &shape, NULL, NULL, NULL, &facts));
            rp_arena_finish(&arena);
        }
    }
}

/* One microbatch a step: staleness, in flight and versions of METHODS 13, whatever the costs. */
static inline void unflushed_facts(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= 8; stages++) {
        const double forward[] = {1, 3, 0.5, 2, 1, 1, 4, 0.1};
        const rp_sched_costs costs = {.forward = forward};
        rp_sched_shape shape = {
            .stages = stages, .step_end = 40, .epoch_samples = 40, .batch = 1, .micro = 1};
        rp_arena arena;
        rp_sched_facts facts;
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_sched_replay(&arena, &KIND, &shape, &costs, NULL, NULL, &facts));
        for (shape.stage = 0; shape.stage < stages; shape.stage++) {
            const rp_sched_stage_facts *stage = &facts.stage[shape.stage];
            const uint32_t behind = stages - 1 - shape.stage;
            assert_int_equal(stage->in_flight_max, behind + 1);
            assert_int_equal(stage->stash_max, behind + 1);
            assert_int_equal(stage->staleness_max, behind);
            assert_int_equal(stage->versions_max, behind + 1);
            assert_int_equal(rp_sched_steady_staleness(&KIND, &shape, 0, 1), behind);
        }
        rp_arena_finish(&arena);
    }
}

/* METHODS 13: after the pipes have filled every stage is busy all the time. */
static inline void unflushed_busy(void **state) {
    (void)state;
    for (uint32_t stages = 2; stages <= 8; stages++) {
        const rp_sched_shape shape = {
            .stages = stages, .step_end = 1000, .epoch_samples = 1000, .batch = 1, .micro = 1};
        rp_arena arena;
        rp_sched_facts facts;
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_sched_replay(&arena, &KIND, &shape, NULL, NULL, NULL, &facts));
        /* one fill and one drain: (D - 1)(tF + tB) */
        expect_close(facts.makespan, (1000 + stages - 1) * 2.0, 1e-12, 0);
        for (uint32_t k = 0; k < stages; k++) {
            expect_close(facts.stage[k].busy, 2000, 1e-12, 0);
        }
        rp_arena_finish(&arena);
    }
}

#define UNFLUSHED_TESTS                                                                            \
    cmocka_unit_test(unflushed_sizes), cmocka_unit_test(unflushed_facts),                          \
        cmocka_unit_test(unflushed_busy)

/* `schedule: TEXT` on so many stages. */
static inline rp_err parse_method(const char *text, uint32_t stages, rp_method *out) {
    rp_arena arena;
    rp_node *root;
    char line[128];
    rp_arena_init(&arena, "test", 0);
    (void)snprintf(line, sizeof line, "schedule: %s", text);
    rp_err err = rp_config_read_text(&arena, line, strlen(line), "test", &root);
    err = err == RP_OK ? rp_method_parse(root, stages, out) : err;
    rp_arena_finish(&arena);
    return err;
}

#endif
