/* What every schedule's test asks: the drawing, each sample once, a pure `next`. The checkers
 * return whether all is well instead of failing, so that a canary can feed them a wrong schedule.
 */
#ifndef RP_TESTS_SCHED_SCHEDULE_H
#define RP_TESTS_SCHED_SCHEDULE_H

#include "expect.h"

#include "../../host/cli/draw.h"
#include "sched/sched.h"

/* Is the text drawing, as `ringpipe draw` prints it, this one? Prints both when not. */
static inline bool draws(const rp_sched_kind *kind, uint32_t stages, uint32_t micro,
                         const char *want) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    const rp_draw_options options = {.kind = kind, .stages = stages, .micro = micro};
    const rp_err err = rp_draw_schedule(file, &options);
    (void)fclose(file);
    const bool same = err == RP_OK && strcmp(text, want) == 0;
    if (!same) {
        print_error("drawn:\n%swanted:\n%s", text, want);
    }
    free(text);
    return same;
}

enum { SCHEDULE_SAMPLES_MAX = 256 };

typedef struct {
    uint8_t forward[SCHEDULE_SAMPLES_MAX], input[SCHEDULE_SAMPLES_MAX];
    uint8_t weight[SCHEDULE_SAMPLES_MAX];
} sample_counts;

/* Counts the op's samples; false when one comes twice or before what it needs. */
static inline bool count_op(sample_counts *c, const rp_op *op) {
    for (uint32_t i = op->samples.first; i < op->samples.first + op->samples.count; i++) {
        switch (op->kind) {
        case RP_OP_FORWARD:
            if (c->forward[i]++) {
                return false;
            }
            break;
        case RP_OP_BACKWARD:
            if (!c->forward[i] || c->input[i]++ || c->weight[i]++) {
                return false;
            }
            break;
        case RP_OP_BACKWARD_INPUT:
            if (!c->forward[i] || c->input[i]++) {
                return false;
            }
            break;
        case RP_OP_BACKWARD_WEIGHT:
            if (!c->input[i] || c->weight[i]++) {
                return false;
            }
            break;
        default:
            return false;
        }
    }
    return true;
}

/* A stage of a flushed schedule: in every step each sample goes once through forward, input and
 * weight gradient, in this order and before the one update; ranges are non-empty and inside the
 * step. At every op a copy of the state gives the same op (next is pure). */
static inline bool each_sample_once(const rp_sched_kind *kind, const rp_sched_shape *shape) {
    rp_sched_state state;
    rp_op op;
    sample_counts counts;
    memset(&counts, 0, sizeof counts);
    uint64_t step = shape->step_first;
    rp_sched_start(&state, shape);
    for (;;) {
        rp_sched_state copy = state;
        rp_op again;
        const bool more = kind->next(&state, &op);
        if (kind->next(&copy, &again) != more) {
            return false;
        }
        if (!more) {
            return step == shape->step_end;
        }
        if (again.kind != op.kind || again.step != op.step || again.micro != op.micro ||
            again.samples.first != op.samples.first || again.samples.count != op.samples.count) {
            return false;
        }
        const uint32_t samples = rp_sched_step_samples(shape, step);
        if (op.step != step || op.samples.count == 0 ||
            op.samples.first + op.samples.count > samples || samples > SCHEDULE_SAMPLES_MAX) {
            return false;
        }
        if (op.kind != RP_OP_UPDATE) {
            if (!count_op(&counts, &op)) {
                return false;
            }
            continue;
        }
        for (uint32_t i = 0; i < samples; i++) {
            if (!counts.weight[i]) {
                return false;
            }
        }
        memset(&counts, 0, sizeof counts);
        step++;
    }
}

/* 1 to 16 stages, 1 to 20 microbatches of up to 3 samples, the last one of a step whole or short,
 * and every third step (an epoch's last) one sample or half a step long; the run begins in the
 * middle of the first epoch. Each stage alone, then all of them against each other, where stage k
 * holds at most `stashes(stages, k, micro)` stashes. */
static inline void check_all_sizes(const rp_sched_kind *kind,
                                   uint32_t (*stashes)(uint32_t stages, uint32_t stage,
                                                       uint32_t micro)) {
    for (uint32_t size = 0; size < 16 * 20 * 3; size++) {
        const uint32_t stages = size % 16 + 1;
        const uint32_t micro = size / 16 % 20 + 1;
        const uint32_t batch = 3 * micro - size / (16 * 20);
        rp_sched_shape shape = {.stages = stages,
                                .step_first = 1,
                                .step_end = 5,
                                .epoch_samples =
                                    2 * (uint64_t)batch + (size % 2 ? 1 : batch / 2 + 1),
                                .batch = batch,
                                .micro = 3};
        for (shape.stage = 0; shape.stage < stages; shape.stage++) {
            if (!each_sample_once(kind, &shape)) {
                fail_msg("%s, %u stages, %u microbatches: stage %u", kind->name, stages, micro,
                         shape.stage);
            }
        }
        rp_arena arena;
        rp_sched_facts facts;
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_sched_replay(&arena, kind, &shape, NULL, NULL, NULL, &facts));
        for (uint32_t k = 0; k < stages; k++) {
            assert_int_equal(facts.stage[k].stash_max, stashes(stages, k, micro));
            assert_int_equal(facts.stage[k].staleness_max, 0);
            assert_int_equal(facts.stage[k].versions_max, 1);
        }
        rp_arena_finish(&arena);
    }
}

/* The makespan of one step with the same costs on every stage. */
static inline double makespan(const rp_sched_kind *kind, uint32_t stages, uint32_t micro,
                              double forward, double input, double weight) {
    double cost[3][16];
    assert_true(stages <= 16);
    for (uint32_t k = 0; k < stages; k++) {
        cost[0][k] = forward;
        cost[1][k] = input;
        cost[2][k] = weight;
    }
    const rp_sched_costs costs = {
        .forward = cost[0], .backward_input = cost[1], .backward_weight = cost[2]};
    const rp_sched_shape shape = {
        .stages = stages, .step_end = 1, .epoch_samples = micro, .batch = micro, .micro = 1};
    rp_arena arena;
    rp_sched_facts facts;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_sched_replay(&arena, kind, &shape, &costs, NULL, NULL, &facts));
    const double work = micro * (forward + input + weight);
    expect_close(facts.bubble, 1 - work / facts.makespan, 1e-12, 1e-12);
    rp_arena_finish(&arena);
    return facts.makespan;
}

#endif
