#define KIND rp_sched_pipefb
#include "unflushed.h"

#include <math.h>

#include "sched/split.h"

enum { STAGES_MAX = 6 };

/* Times by stage, and by edge of the row: activations, gradients, stashes, weights. Bit k of
 * `whole`: stage k is on one node. */
typedef struct {
    uint32_t stages, whole;
    double forward[STAGES_MAX], backward[STAGES_MAX], activation[STAGES_MAX], gradient[STAGES_MAX];
    double stash[STAGES_MAX], weight[STAGES_MAX];
} times;

static rp_split_times view_of(const times *t) {
    return (rp_split_times){.stages = t->stages,
                            .whole = t->whole,
                            .forward = t->forward,
                            .backward = t->backward,
                            .activation = t->activation,
                            .gradient = t->gradient,
                            .stash = t->stash,
                            .weight = t->weight};
}

static rp_sched_shape shape_of(uint32_t stages, uint64_t steps) {
    rp_sched_shape shape = {
        .stages = stages, .step_end = steps, .epoch_samples = steps, .batch = 1, .micro = 1};
    rp_sched_split_default(&shape);
    return shape;
}

static double makespan_of(const times *t, const rp_sched_shape *shape) {
    const uint32_t d = t->stages;
    double forward[2 * STAGES_MAX] = {0}, backward[2 * STAGES_MAX] = {0};
    double none[2 * STAGES_MAX] = {0}, edge[4 * STAGES_MAX] = {0};
    rp_sched_facts facts;
    rp_arena arena;
    for (uint32_t k = 0; k < d; k++) {
        forward[k] = t->forward[k];
        backward[rp_sched_split_backward(d, t->whole, k)] = t->backward[k];
        if (k + 1 < d) {
            edge[k] = t->activation[k];
            edge[d - 1 + k] = t->gradient[k];
        }
        edge[2 * (d - 1) + k] = t->stash[k];
        edge[2 * (d - 1) + d + k] = t->weight[k];
    }
    const rp_sched_costs costs = {
        .forward = forward, .backward_input = backward, .backward_weight = none, .edge = edge};
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_sched_replay(&arena, &KIND, shape, &costs, NULL, NULL, &facts));
    const double makespan = facts.makespan;
    rp_arena_finish(&arena);
    return makespan;
}

enum { LONG = 400 };

/* What LONG steps more take. */
static double time_of_long(const times *t, const uint16_t ahead[]) {
    double makespan[2];
    for (uint32_t i = 0; i < 2; i++) {
        rp_sched_shape shape = shape_of(t->stages, LONG * (i + 1));
        shape.whole = t->whole;
        memcpy(shape.ahead, ahead, t->stages * sizeof *ahead);
        makespan[i] = makespan_of(t, &shape);
    }
    return makespan[1] - makespan[0];
}

/* `ahead` loses no time; one less on any stage does. */
static void check_smallest(const times *t, const uint16_t ahead[]) {
    const rp_split_times view = view_of(t);
    const double period = rp_sched_split_period(&view);
    expect_close(time_of_long(t, ahead), LONG * period, 0, period);
    for (uint32_t k = 0; k < t->stages; k++) {
        uint16_t less[RP_SPLIT_STAGES_MAX];
        memcpy(less, ahead, sizeof less);
        const bool rises = k + 1 < t->stages && ahead[k] == ahead[k + 1];
        if (--less[k] > 0 && !(t->whole && rises)) { /* which is no order */
            assert_true(time_of_long(t, less) > LONG * period + 2 * period);
        }
    }
}

static void drawings(void **state) {
    (void)state;
    assert_true(draws(&KIND, 2, 6,
                      "pipefb, 2 stages on 4 boards, 6 microbatches: 9 columns, bubble 33.3 %\n"
                      "F0 F1 F2 F3 F4 F5 .  .  .    stage 0 F  in flight 0  versions 1  gap 0\n"
                      ".  F0 F1 F2 F3 F4 F5 .  .    stage 1 F  in flight 0  versions 1  gap 0\n"
                      ".  .  B0 B1 B2 B3 B4 B5 .    stage 1 B  in flight 2  versions 2  gap 1\n"
                      ".  .  .  B0 B1 B2 B3 B4 B5   stage 0 B  in flight 4  versions 4  gap 3\n"));
}

/* METHODS 11.2 of the design: unit times, free transfers: 2 (D - k), and nobody waits. */
static void unit_times(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= STAGES_MAX; stages++) {
        times t = {.stages = stages};
        uint16_t ahead[RP_SPLIT_STAGES_MAX] = {0};
        const rp_sched_shape shape = shape_of(stages, 100);
        for (uint32_t k = 0; k < stages; k++) {
            t.forward[k] = t.backward[k] = 1;
        }
        const rp_split_times view = view_of(&t);
        rp_sched_split_ahead(&view, RP_AHEAD_MAX, ahead);
        for (uint32_t k = 0; k < stages; k++) {
            assert_int_equal(ahead[k], 2 * (stages - k));
            assert_int_equal(shape.ahead[k], ahead[k]);
        }
        expect_close(makespan_of(&t, &shape), 100 + 2 * stages - 1, 1e-12, 0);
        check_smallest(&t, ahead);
    }
}

static uint32_t next_random(uint64_t *seed, uint32_t below) {
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*seed >> 33) % below;
}

/* Any times, whole numbers, so that a wait adds up; weights take equally long, so that no stage is
 * held up to the one above. */
static void the_smallest_ahead_of_any_times(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (uint32_t i = 0; i < trials(60, 10); i++) {
        times t = {.stages = 1 + next_random(&seed, 4)};
        uint16_t ahead[RP_SPLIT_STAGES_MAX] = {0};
        const double weight = next_random(&seed, 6);
        for (uint32_t k = 0; k < t.stages; k++) {
            t.forward[k] = 1 + next_random(&seed, 5);
            t.backward[k] = 1 + next_random(&seed, 5);
            t.activation[k] = next_random(&seed, 6);
            t.gradient[k] = next_random(&seed, 6);
            t.stash[k] = next_random(&seed, 6);
            t.weight[k] = weight;
        }
        const rp_split_times view = view_of(&t);
        rp_sched_split_ahead(&view, RP_AHEAD_MAX, ahead);
        check_smallest(&t, ahead);
    }
}

/* Every board works as long as the others: what is left to us holds up nobody, and no less does. */
static void some_are_split(void **state) {
    (void)state;
    for (uint32_t stages = 1; stages <= trials(5, 3); stages++) {
        for (uint32_t whole = 0; whole < 1u << stages; whole++) {
            times t = {.stages = stages, .whole = whole};
            uint16_t ahead[RP_SPLIT_STAGES_MAX] = {0};
            rp_sched_shape shape = shape_of(stages, 100);
            shape.whole = whole;
            rp_sched_split_default(&shape);
            for (uint32_t k = 0; k < stages; k++) {
                t.forward[k] = t.backward[k] = whole >> k & 1 ? 1 : 2;
            }
            const rp_split_times view = view_of(&t);
            rp_sched_split_ahead(&view, RP_AHEAD_MAX, ahead);
            for (uint32_t k = 0; k < stages; k++) {
                assert_int_equal(shape.ahead[k], ahead[k]);
            }
            check_smallest(&t, ahead);
        }
    }
}

/* Any times, and any of the stages: a board with both directions makes those below wait longer. */
static void the_smallest_ahead_of_any_split(void **state) {
    (void)state;
    uint64_t seed = 3;
    uint32_t more = 0;
    for (uint32_t i = 0; i < trials(200, 20); i++) {
        times t = {.stages = 2 + next_random(&seed, 3)};
        uint16_t ahead[RP_SPLIT_STAGES_MAX] = {0}, split[RP_SPLIT_STAGES_MAX] = {0};
        t.whole = 1 + next_random(&seed, (1u << t.stages) - 1);
        for (uint32_t k = 0; k < t.stages; k++) {
            t.forward[k] = 1 + next_random(&seed, 5);
            t.backward[k] = 1 + next_random(&seed, 5);
            t.activation[k] = next_random(&seed, 6);
            t.gradient[k] = next_random(&seed, 6);
            t.stash[k] = next_random(&seed, 6);
            t.weight[k] = next_random(&seed, 6);
        }
        rp_split_times view = view_of(&t);
        rp_sched_split_ahead(&view, RP_AHEAD_MAX, ahead);
        check_smallest(&t, ahead);
        view.whole = 0;
        rp_sched_split_ahead(&view, RP_AHEAD_MAX, split);
        more += memcmp(ahead, split, sizeof ahead) != 0;
    }
    assert_true(more > 0);
}

static void nodes_of_some_split(void **state) {
    (void)state;
    const uint32_t whole = 2 + 8; /* of 4 stages the second and the last */
    static const uint32_t stage[] = {0, 1, 2, 3, 2, 0};
    static const rp_role role[] = {RP_ROLE_FORWARD, RP_ROLE_BOTH,     RP_ROLE_FORWARD,
                                   RP_ROLE_BOTH,    RP_ROLE_BACKWARD, RP_ROLE_BACKWARD};
    static const uint32_t backward[] = {5, 1, 4, 3};
    static const uint32_t wires[][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4},
                                        {4, 1}, {1, 5}, {0, 5}, {2, 4}};
    const rp_method method = {.kind = &rp_sched_pipefb, .chunks = 1, .whole = whole};
    uint32_t found[RP_SPLIT_WIRES_MAX][2];
    uint32_t end[2];
    assert_int_equal(rp_sched_split_nodes(4, whole), 6);
    for (uint32_t n = 0; n < 6; n++) {
        assert_int_equal(rp_sched_split_stage(4, whole, n), stage[n]);
        assert_int_equal(rp_sched_split_role(4, whole, n), role[n]);
    }
    for (uint32_t k = 0; k < 4; k++) {
        assert_int_equal(rp_sched_split_backward(4, whole, k), backward[k]);
    }
    assert_int_equal(rp_sched_split_wires(4, whole, found), 8);
    assert_memory_equal(found, wires, sizeof wires);
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(rp_method_wire(&method, 6, 4, i, end));
        assert_memory_equal(end, wires[i], sizeof end);
    }
    assert_false(rp_method_wire(&method, 6, 4, 8, end));
    assert_int_equal(rp_sched_split_wires(3, 7, found), 2);
    assert_int_equal(rp_sched_split_wires(3, 0, found), 7);
    assert_int_equal(rp_sched_split_nodes(RP_SPLIT_STAGES_MAX, UINT32_MAX), RP_SPLIT_STAGES_MAX);
}

static void bounds_of_ahead(void **state) {
    (void)state;
    times t = {.stages = 2, .forward = {1, 1}, .backward = {1, 1}, .weight = {0, 9}};
    const rp_split_times view = view_of(&t);
    uint16_t ahead[RP_SPLIT_STAGES_MAX] = {0};
    assert_true(rp_sched_split_period(&view) == 9);
    rp_sched_split_ahead(&view, RP_AHEAD_MAX, ahead);
    assert_int_equal(ahead[1], 2);
    assert_int_equal(ahead[0], 2); /* 1 by its own times */
    t.weight[1] = 0;
    t.forward[0] = 1e-3;
    t.activation[0] = 1;
    rp_sched_split_ahead(&view, 3, ahead);
    assert_int_equal(ahead[1], 2);
    assert_int_equal(ahead[0], 3);
    t = (times){.stages = 2};
    rp_sched_split_ahead(&view, 3, ahead); /* nothing takes any time */
    assert_int_equal(ahead[1], 1);
    assert_int_equal(ahead[0], 1);
}

/* Staleness, what is in flight, and versions follow from the order, whatever takes how long. */
static void facts_whatever_the_costs(void **state) {
    (void)state;
    static const double forward[] = {1, 3, 0.5, 2, 1, 0.1, 4, 1, 1, 2, 0.3, 1};
    for (uint32_t stages = 1; stages <= STAGES_MAX; stages++) {
        for (uint32_t publish = 1; publish <= 3; publish++) {
            const rp_sched_costs costs = {.forward = forward};
            rp_sched_shape shape = shape_of(stages, 60);
            rp_sched_facts facts;
            rp_arena arena;
            shape.publish = publish;
            rp_arena_init(&arena, "test", 0);
            expect_ok(rp_sched_replay(&arena, &KIND, &shape, &costs, NULL, NULL, &facts));
            for (shape.stage = 0; shape.stage < stages; shape.stage++) {
                const uint32_t ahead = 2 * (stages - shape.stage);
                const rp_sched_stage_facts *f = &facts.stage[shape.stage];
                const rp_sched_stage_facts *b = &facts.stage[2 * stages - 1 - shape.stage];
                assert_int_equal(f->versions_max, 1);
                assert_true(b->in_flight_max <= ahead + publish - 1);
                assert_int_equal(b->staleness_max, ahead - 1 + publish - 1);
                assert_int_equal(b->staleness_max, rp_sched_split_staleness(&shape));
                assert_true(b->versions_max <= rp_sched_split_versions(&shape));
                if (publish == 1) {
                    assert_int_equal(rp_sched_split_versions(&shape), ahead);
                    assert_int_equal(rp_sched_steady_staleness(&KIND, &shape, 0, 1), ahead - 1);
                    assert_int_equal(rp_sched_in_flight(&KIND, &shape), ahead);
                }
            }
            rp_arena_finish(&arena);
        }
    }
}

/* Forward n sees the weights after the update of n - ahead; who publishes names who takes. */
static void versions_of_forwards(void **state) {
    (void)state;
    for (uint32_t variant = 0; variant < 5 * 4 * 3; variant++) {
        rp_sched_shape shape = {.stages = 1,
                                .step_first = variant % 3 * 2,
                                .step_end = 40,
                                .publish = 1 + variant / 3 % 4,
                                .ahead = {(uint16_t)(1 + variant / 12)}};
        uint64_t seen = shape.step_first;
        for (uint64_t n = shape.step_first; n < shape.step_end; n++) {
            const uint64_t version = rp_sched_split_version(&shape, n);
            const int64_t updates = (int64_t)n - shape.ahead[0] + 1;
            const int64_t published = updates > 0 ? updates - updates % shape.publish : 0;
            const int64_t first = (int64_t)shape.step_first;
            assert_int_equal(version, published > first ? published : first);
            assert_int_equal(rp_sched_split_takes(&shape, n), version > seen);
            if (version > seen) {
                assert_int_equal(rp_sched_split_taker(&shape, version - 1), n);
            }
            seen = version;
        }
        uint32_t takers = 0, takes = 0;
        for (uint64_t n = shape.step_first; n < shape.step_end; n++) {
            takers += rp_sched_split_taker(&shape, n) != UINT64_MAX;
            takes += rp_sched_split_takes(&shape, n);
        }
        assert_int_equal(takers, takes);
    }
}

/* Steps of several microbatches, short ones, a run that goes on: nothing locks, nothing is left. */
static void every_size_runs_to_its_end(void **state) {
    (void)state;
    for (uint32_t variant = 0; variant < 96; variant++) {
        rp_sched_shape shape = shape_of(1 + variant % 4, 23);
        rp_arena arena;
        rp_sched_facts facts;
        shape.step_first = variant / 4 % 3;
        shape.epoch_samples = variant % 3 ? 20 : 43;
        shape.batch = 4;
        shape.micro = 1 + variant / 12 % 4;
        shape.publish = 1 + variant / 48;
        for (uint32_t k = 0; k < shape.stages; k++) {
            shape.ahead[k] = (uint16_t)(1 + variant % 5 + shape.stages - k);
        }
        for (shape.stage = 0; shape.stage < shape.stages; shape.stage++) {
            assert_true(unflushed_counts(&shape));
        }
        shape.stage = 0;
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_sched_replay(&arena, &KIND, &shape, NULL, NULL, NULL, &facts));
        rp_arena_finish(&arena);
    }
}

static void refuse(const char *text, const char *said) {
    rp_method m;
    expect_err(parse_method(text, 4, &m), RP_ERR_USAGE);
    if (!strstr(rp_err_message(), said)) {
        fail_msg("%s: '%s' does not say '%s'", text, rp_err_message(), said);
    }
}

/* ---- what the paper's speed-up can mean ------------------------------------------------------ */

/* Times of a step in the steady state of one stage of D = 4, by replay: forward f, backward b, and
 * a for a stash to leave a device, or to come back. */
static double split_period(uint32_t stages, double f, double b, double a) {
    times t = {.stages = stages};
    uint16_t ahead[RP_SPLIT_STAGES_MAX] = {0};
    for (uint32_t k = 0; k < stages; k++) {
        t.forward[k] = f;
        t.backward[k] = b;
        t.stash[k] = a;
    }
    const rp_split_times view = view_of(&t);
    rp_sched_split_ahead(&view, RP_AHEAD_MAX, ahead);
    return time_of_long(&t, ahead) / LONG;
}

static double pipedream_period(uint32_t stages, double f, double b) {
    double forward[STAGES_MAX], backward[STAGES_MAX], none[STAGES_MAX] = {0}, makespan[2];
    const rp_sched_costs costs = {
        .forward = forward, .backward_input = backward, .backward_weight = none};
    for (uint32_t k = 0; k < stages; k++) {
        forward[k] = f;
        backward[k] = b;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t steps = LONG * (i + 1);
        const rp_sched_shape shape = {
            .stages = stages, .step_end = steps, .epoch_samples = steps, .batch = 1, .micro = 1};
        rp_sched_facts facts;
        rp_arena arena;
        rp_arena_init(&arena, "test", 0);
        expect_ok(rp_sched_replay(&arena, rp_sched_find("pipedream"), &shape, &costs, NULL, NULL,
                                  &facts));
        makespan[i] = facts.makespan;
        rp_arena_finish(&arena);
    }
    return (makespan[1] - makespan[0]) / LONG;
}

/* METHODS 12.4: pipefb against pipedream whose stashes leave and come back: beside its work, or in
 * its way; with twice the boards, and with as many, whose stages are then twice as large. */
static void what_the_speed_up_can_mean(void **state) {
    (void)state;
    double beside = 0, beside_twice = 0, least = 9, most = 0, least_twice = 9, most_twice = 0;
    for (uint32_t i = 1; i <= 8; i++) { /* b = i / 4 f */
        for (uint32_t j = 0; j <= 8; j++) {
            const double b = i / 4.0;
            const double longest = b > 1 ? b : 1;
            const double a = j / 8.0 * longest; /* no longer than an op */
            const double overlapped = pipedream_period(4, 1, b);
            const double blocking = pipedream_period(4, 1 + a, b + a);
            const double twice = split_period(4, 1, b, a);
            const double same = split_period(2, 2, 2 * b, 2 * a);
            expect_close(twice, longest, 1e-2, 0); /* a period more or less in 400 */
            expect_close(same, 2 * longest, 1e-2, 0);
            beside = fmax(beside, overlapped / same);
            beside_twice = fmax(beside_twice, overlapped / twice);
            least = fmin(least, blocking / same);
            most = fmax(most, blocking / same);
            least_twice = fmin(least_twice, blocking / twice);
            most_twice = fmax(most_twice, blocking / twice);
        }
    }
    expect_close(beside, 1, 1e-2, 0);
    expect_close(beside_twice, 2, 1e-2, 0);
    expect_close(most, 2, 1e-2, 0);
    expect_close(most_twice, 4, 1e-2, 0);
    assert_true(least < 0.67 && least_twice < 1.34);
    /* the abstract's 1.48 to 2.27: twice the boards, against blocking transfers */
    expect_close(pipedream_period(4, 1, 2) / split_period(4, 1, 2, 0), 1.5, 1e-2, 0);
    expect_close(pipedream_period(4, 1.77, 2.77) / split_period(4, 1, 2, 0.77), 2.27, 1e-2, 0);
}

static void words(void **state) {
    (void)state;
    rp_method m;
    rp_sched_shape shape = shape_of(2, 9);
    char text[512], again[600];
    expect_ok(parse_method("pipefb", 4, &m));
    assert_int_equal(m.weights, RP_WEIGHTS_STASH);
    assert_int_equal(rp_method_stages(&m, 4), 2);
    assert_int_equal(rp_method_boards(&m, 2), 4);
    rp_method_order(&m, &shape);
    assert_int_equal(shape.ahead[0], 4);
    assert_int_equal(shape.ahead[1], 2);
    expect_ok(parse_method("{kind: pipefb, ahead: 3, publish: 2}", 4, &m));
    rp_method_order(&m, &shape);
    assert_int_equal(shape.ahead[0], 3);
    assert_int_equal(shape.ahead[1], 3);
    assert_int_equal(shape.publish, 2);
    expect_ok(rp_method_write(&m, text, sizeof text));
    assert_non_null(strstr(text, "\"ahead\": [3], \"publish\": 2"));
    expect_ok(parse_method("{kind: pipefb, ahead: [5, 1]}", 4, &m));
    rp_method_order(&m, &shape);
    assert_int_equal(rp_method_staleness(&m, &shape), 4);
    assert_int_equal(shape.ahead[1], 1);
    rp_method_text(&m, again, sizeof again);
    assert_non_null(strstr(again, " ahead [5, 1] publish 1"));
    expect_ok(parse_method("{kind: pipefb, ahead: measured}", 4, &m));
    assert_true(m.ahead_measured && m.ahead_count == 0);
    expect_ok(parse_method("{kind: pipefb, ahead: [7, 2]}", 4, &m));
    char line[512];
    rp_method_text(&m, line, sizeof line);
    rp_method taken = {0};
    assert_true(rp_method_take_ahead(&taken, line));
    assert_int_equal(taken.ahead_count, 2);
    assert_int_equal(taken.ahead[0], 7);
    assert_int_equal(taken.ahead[1], 2);
    static const char *const bad[] = {
        "",           " ahead []",    " ahead [3",  " ahead [2, 3]", "ahead 3",
        " ahead [0]", " ahead [257]", " ahead [x]", " ahead [3,]",   " ahead [3 2]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(rp_method_take_ahead(&taken, bad[i]));
    }
    refuse("{kind: pipefb, ahead: [1, 2]}", "expected numbers that do not grow");
    refuse("{kind: pipefb, ahead: 0}", "ahead");
    refuse("{kind: pipefb, ahead: []}", "one for each of 1 to");
    refuse("{kind: pipefb, publish: 0}", "publish");
    refuse("{kind: pipefb, advance: 1}", "advance");
    refuse("{kind: pipefb, weights: spectrain}", "expected stash, current or pipeoptim");
    refuse("{kind: pipefb, vertical_sync: true}", "expected stash, current or pipeoptim");
    refuse("{kind: pipefb, weights: pipeoptim, publish: 2}", "expected publish: 1");
    refuse("{kind: pipefb, weights: pipeoptim, horizon: measured}", "expected paper, exact");
    refuse("{kind: 1f1b, ahead: 1}", "ahead");
}

static void words_of_split(void **state) {
    (void)state;
    rp_method m;
    rp_sched_shape shape = shape_of(2, 9);
    char text[512], line[512], other[512];
    expect_ok(parse_method("{kind: pipefb, split: [true, false]}", 3, &m));
    assert_int_equal(rp_method_stages(&m, 3), 2);
    assert_int_equal(rp_method_boards(&m, 2), 3);
    assert_true(rp_method_is_split(&m, 0) && !rp_method_is_split(&m, 1));
    assert_int_equal(rp_method_backward_node(&m, 2, 0), 2);
    assert_int_equal(rp_method_backward_node(&m, 2, 1), 1);
    rp_method_order(&m, &shape);
    assert_int_equal(shape.whole, 2);
    assert_int_equal(shape.ahead[0], 3);
    assert_int_equal(shape.ahead[1], 1);
    expect_ok(rp_method_write(&m, text, sizeof text));
    assert_non_null(strstr(text, "\"split\": [true, false], \"publish\": 1"));
    rp_method_text(&m, line, sizeof line);
    assert_non_null(strstr(line, "publish 1 split [true, false]"));
    expect_ok(parse_method("{kind: pipefb, split: [true, true]}", 4, &m));
    rp_method_text(&m, other, sizeof other);
    assert_null(strstr(other, "split")); /* as if nothing had been said */
    assert_true(rp_method_text_goes_on(line, other) && rp_method_text_goes_on(other, line));
    expect_ok(parse_method("{kind: pipefb, split: [true, false], publish: 2}", 3, &m));
    rp_method_text(&m, line, sizeof line);
    assert_false(rp_method_text_goes_on(line, other) || rp_method_text_goes_on(other, line));
    refuse("{kind: pipefb, split: true}", "a list of true or false");
    refuse("{kind: pipefb, split: []}", "a list of true or false");
    refuse("{kind: pipefb, split: [1, 0]}", "true or false");
    refuse("{kind: 1f1b, split: [true]}", "split");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawings),
        cmocka_unit_test(unit_times),
        cmocka_unit_test(the_smallest_ahead_of_any_times),
        cmocka_unit_test(some_are_split),
        cmocka_unit_test(the_smallest_ahead_of_any_split),
        cmocka_unit_test(nodes_of_some_split),
        cmocka_unit_test(bounds_of_ahead),
        cmocka_unit_test(facts_whatever_the_costs),
        cmocka_unit_test(versions_of_forwards),
        cmocka_unit_test(every_size_runs_to_its_end),
        cmocka_unit_test(what_the_speed_up_can_mean),
        cmocka_unit_test(words),
        cmocka_unit_test(words_of_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
