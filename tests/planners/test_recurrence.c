/* The recurrence is what a simulation event by event says, and what the replay of the schedule
 * umpipe says where costs are in proportion to samples; known answers. */
#include <math.h>

#include "expect.h"
#include "planners/recurrence.h"
#include "sched/replay.h"

#include "planners/drawn.h"
#include "planners/events.h"

enum { TRIALS = 10000 };

static double by_recurrence(rp_arena *arena, const rp_problem *p, const rp_genome *genome) {
    rp_tables tables;
    rp_recurrence_room room;
    expect_ok(rp_problem_check(p));
    expect_ok(rp_tables_open(arena, p, &tables));
    expect_ok(rp_recurrence_open(arena, &tables, &room));
    return rp_recurrence_makespan(&tables, genome, &room);
}

static void it_is_what_happens_event_by_event(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(1, "test/recurrence");
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        if (trial % 2) {
            const instance_draw draw = {.stages_min = 4,
                                        .stages_max = 16,
                                        .samples = trial % 20 == 1 ? 128 : 32,
                                        .backward = 2,
                                        .own_backward = trial % 4 == 1,
                                        .latency = trial % 8 > 4 ? 3 : 0};
            expect_ok(draw_instance(&arena, &rng, &draw, &p));
        } else {
            expect_ok(
                rp_problem_open(&arena, 1 + rp_rng_below(&rng, 8), 1 + rp_rng_below(&rng, 40), &p));
            draw_sizes(&p, &rng);
            draw_costs(&p, &rng);
        }
        draw_held(&p, &rng);
        const rp_genome genome = drawn_genome(&p, &rng);
        expect_close(by_recurrence(&arena, &p, &genome), event_makespan(&p, &genome), 1e-12, 0);
        rp_arena_finish(&arena);
    }
}

/* ---- the replay ------------------------------------------------------------------------------ */

typedef struct {
    const rp_problem *problem;
    const rp_genome *genome;
} sized;

extern const rp_sched_kind rp_sched_umpipe;

static uint32_t size_of(const sized *of, int way, uint32_t stage) {
    return of->problem->size[of->genome->gene[way][stage]];
}

static void start_sized(const rp_sched_net *net, uint32_t node, rp_sched_state *state) {
    const sized *of = net->context;
    const rp_sched_shape shape = {.stages = net->hold_count,
                                  .stage = node,
                                  .step_end = 1,
                                  .epoch_samples = of->problem->samples,
                                  .batch = of->problem->samples,
                                  .micro = size_of(of, RP_WAY_FORWARD, node),
                                  .micro_backward = size_of(of, RP_WAY_BACKWARD, node)};
    rp_sched_start(state, &shape);
}

static bool next_sized(const rp_sched_net *net, uint32_t node, rp_sched_state *state, rp_op *op) {
    (void)net;
    (void)node;
    return rp_sched_umpipe.next(state, op);
}

static uint32_t sized_transfers(const rp_sched_net *net, uint32_t node, const rp_op *op,
                                rp_transfer *out) {
    const uint32_t last = net->hold_count - 1;
    const bool forward = op->kind == RP_OP_FORWARD;
    const uint32_t base = forward ? 0 : last; /* edges of gradients come behind */
    uint32_t count = 0;
    if (op->kind == RP_OP_UPDATE) {
        return 0;
    }
    for (uint32_t upper = 0; upper < 2; upper++) {
        if (upper ? node < last : node > 0) {
            const bool send = forward == (upper == 1);
            out[count++] = (rp_transfer){.edge = base + node - !upper,
                                         .send = send,
                                         .before = !send,
                                         .samples = op->samples};
        }
    }
    return count;
}

static double by_replay(rp_arena *arena, const sized *of, const rp_sched_costs *costs) {
    const uint32_t stages = of->problem->stages;
    rp_sched_hold hold[16];
    rp_sched_edge edge[30];
    rp_sched_facts facts;
    const rp_sched_visitor visitor = {0};
    for (uint32_t k = 0; k < stages; k++) {
        hold[k] = (rp_sched_hold){.node = k, .stage = k};
    }
    for (uint32_t b = 0; b + 1 < stages; b++) {
        edge[b] = (rp_sched_edge){.from = b, .to = b + 1, .carries = "an activation"};
        edge[stages - 1 + b] = (rp_sched_edge){.from = b + 1, .to = b, .carries = "a gradient"};
    }
    const rp_sched_net net = {.name = "sized",
                              .a_node = "stage",
                              .node_count = stages,
                              .hold_count = stages,
                              .edge_count = 2 * (stages - 1),
                              .hold = hold,
                              .edge = edge,
                              .context = of,
                              .start = start_sized,
                              .next = next_sized,
                              .transfers = sized_transfers};
    expect_ok(rp_sched_replay_net(arena, &net, costs, &visitor, RP_NO_NODE, &facts));
    return facts.makespan;
}

static void it_is_what_the_replay_says(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(2, "test/recurrence");
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        double cost[7][16]; /* a sample: forward, backward in two, sends; update, delay */
        rp_arena arena;
        rp_problem p;
        rp_arena_init(&arena, "test", 0);
        expect_ok(
            rp_problem_open(&arena, 1 + rp_rng_below(&rng, 16), 1 + rp_rng_below(&rng, 32), &p));
        draw_sizes(&p, &rng);
        for (uint32_t k = 0; k < p.stages; k++) {
            for (uint32_t i = 0; i < 7; i++) {
                cost[i][k] = trial % 3 ? (double)rp_rng_uniform(&rng) : rp_rng_below(&rng, 4);
            }
            fill_row(&p, p.pass[0], k, 0, cost[0][k]);
            fill_row(&p, p.pass[1], k, 0, cost[1][k] + cost[2][k]);
            fill_row(&p, p.send[0], k, 0, cost[3][k]);
            fill_row(&p, p.send[1], k, 0, cost[4][k]);
            p.update[k] = cost[5][k];
            p.latency[0][k] = p.latency[1][k] = cost[6][k];
        }
        const rp_genome genome = drawn_genome(&p, &rng);
        const sized of = {&p, &genome};
        for (uint32_t k = 0; k < p.stages; k++) { /* the replay has costs of a full microbatch */
            for (uint32_t i = 0; i < 5; i++) {
                const bool is_forward = i == 0 || i == 3;
                cost[i][k] *= size_of(&of, is_forward ? RP_WAY_FORWARD : RP_WAY_BACKWARD, k);
            }
        }
        const rp_sched_costs costs = {.forward = cost[0],
                                      .backward_input = cost[1],
                                      .backward_weight = cost[2],
                                      .update = cost[5],
                                      .send = cost[3],
                                      .send_back = cost[4],
                                      .delay = cost[6]};
        expect_close(by_recurrence(&arena, &p, &genome), by_replay(&arena, &of, &costs), 1e-12, 0);
        rp_arena_finish(&arena);
    }
}

/* ---- known answers --------------------------------------------------------------------------- */

static void even_sizes_without_wires_are_gpipe(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_problem_open(&arena, 4, 32, &p));
    for (uint32_t k = 0; k < 4; k++) {
        fill_row(&p, p.pass[0], k, 1, 0);
        fill_row(&p, p.pass[1], k, 2, 0);
    }
    const rp_genome g = rp_problem_even(&p, 2); /* 8 microbatches of 4 */
    expect_close(by_recurrence(&arena, &p, &g), (8 + 4 - 1) * (1 + 2), 0, 0);
    rp_arena_finish(&arena);
}

/* The example of METHODS 10.1: 16 samples, 4 stages, a = .2 1 .2 .2. */
static void the_toy_is_as_written(void **state) {
    (void)state;
    static const double base[] = {0.2, 1, 0.2, 0.2};
    rp_arena arena;
    rp_problem p;
    double best = (double)INFINITY;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_problem_open(&arena, 4, 16, &p)); /* 1 2 4 8 16 */
    for (uint32_t k = 0; k < 4; k++) {
        fill_row(&p, p.pass[0], k, base[k], 0.3);
        fill_row(&p, p.pass[1], k, 2 * base[k], 0.6);
        fill_row(&p, p.send[0], k, 0, 0.05);
        fill_row(&p, p.send[1], k, 0, 0.05);
    }
    for (uint8_t size = 0; size < p.size_count; size++) {
        const rp_genome g = rp_problem_even(&p, size);
        best = fmin(best, by_recurrence(&arena, &p, &g));
    }
    expect_close(best, 40.2, 0, 0.05);
    const rp_genome g = {.gene = {{2, 2, 1, 1}, {2, 2, 1, 1}}};
    expect_close(by_recurrence(&arena, &p, &g), 38.7, 0, 0.05);
    rp_arena_finish(&arena);
}

static void what_does_not_fit_takes_for_ever(void **state) {
    (void)state;
    rp_arena arena;
    rp_problem p;
    rp_arena_init(&arena, "test", 0);
    expect_ok(rp_problem_open(&arena, 2, 8, &p));
    p.memory[0] = (rp_problem_memory){.limit_bytes = 40, .work_bytes = 10};
    rp_genome g = rp_problem_even(&p, 2);
    expect_close(by_recurrence(&arena, &p, &g), 0, 0, 0);
    g = rp_problem_even(&p, 3);
    assert_true(isinf(by_recurrence(&arena, &p, &g)));
    rp_arena_finish(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_happens_event_by_event),
        cmocka_unit_test(it_is_what_the_replay_says),
        cmocka_unit_test(even_sizes_without_wires_are_gpipe),
        cmocka_unit_test(the_toy_is_as_written),
        cmocka_unit_test(what_does_not_fit_takes_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
