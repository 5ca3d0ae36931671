/* Asking planners in tests. */
#ifndef RP_TESTS_PLANNERS_ASKED_H
#define RP_TESTS_PLANNERS_ASKED_H

#include <math.h>

#include "planners/planner.h"
#include "planners/search.h"

#include "expect.h"
#include "planners/drawn.h"

static inline rp_planner_answer asked_with(const char *planner, const rp_planner_ask *ask) {
    const rp_planner_kind *kind = rp_planner_find(planner);
    rp_planner_answer out;
    assert_non_null(kind);
    expect_ok(rp_planner_search(kind, ask, &out));
    assert_true(rp_problem_fits(ask->problem, &out.genome));
    for (uint32_t k = 0; k < ask->problem->stages; k++) {
        for (int way = 0; way < RP_WAYS; way++) {
            assert_true(out.genome.gene[way][k] < ask->problem->size_count);
            assert_true(ask->problem->held[k] == RP_PLANNERS_FREE ||
                        out.genome.gene[way][k] == ask->problem->held[k]);
        }
    }
    return out;
}

/* One round, seed 1. */
static inline rp_planner_answer asked(const char *planner, const rp_problem *problem) {
    const rp_planner_ask ask = {.problem = problem, .seed = 1, .rounds = 1};
    return asked_with(planner, &ask);
}

/* A search that has found nothing yet, for what searches begin with. */
typedef struct {
    rp_planner_ask ask;
    rp_planner_answer answer;
    rp_search search;
} begun_search;

static inline void begin_search(begun_search *out, const rp_problem *problem) {
    rp_search *s = &out->search;
    out->ask = (rp_planner_ask){.problem = problem, .seed = 1, .rounds = 1};
    out->answer = (rp_planner_answer){.step_s = (double)INFINITY};
    *s = (rp_search){.ask = &out->ask, .answer = &out->answer};
    rp_arena_init(&s->arena, "test", 0);
    expect_ok(rp_tables_open(&s->arena, problem, &s->tables));
    expect_ok(rp_recurrence_open(&s->arena, &s->tables, &s->room));
}

/* The plan of rp_simple_greedy(), or of rp_simple_dp(); it fits. */
static inline rp_planner_answer asked_simple(bool dp, const rp_problem *problem) {
    begun_search begun;
    rp_genome genome;
    begin_search(&begun, problem);
    if (dp) {
        expect_ok(rp_simple_dp(&begun.search, &genome));
    } else {
        genome = rp_simple_greedy(&begun.search);
    }
    assert_true(rp_problem_fits(problem, &genome));
    assert_int_equal(begun.answer.evaluations, 1);
    rp_arena_finish(&begun.search.arena);
    return begun.answer;
}

static inline double asked_step_s(rp_arena *arena, const rp_problem *p, const rp_genome *genome) {
    rp_tables tables;
    rp_recurrence_room room;
    expect_ok(rp_tables_open(arena, p, &tables));
    expect_ok(rp_recurrence_open(arena, &tables, &room));
    return rp_recurrence_makespan(&tables, genome, &room);
}

/* Seconds of the best of all genomes: for few stages and sizes. */
static inline double brute_step_s(rp_arena *arena, const rp_problem *p) {
    rp_genome genome = rp_problem_even(p, 0);
    rp_tables tables;
    rp_recurrence_room room;
    double best = (double)INFINITY;
    uint32_t place = 0; /* the genes in one row, counted up like digits */
    expect_ok(rp_tables_open(arena, p, &tables));
    expect_ok(rp_recurrence_open(arena, &tables, &room));
    while (place < RP_WAYS * p->stages) {
        best = fmin(best, rp_recurrence_makespan(&tables, &genome, &room));
        for (place = 0; place < RP_WAYS * p->stages; place++) {
            const uint32_t stage = place % p->stages;
            uint8_t *gene = &genome.gene[place / p->stages][stage];
            if (p->held[stage] == RP_PLANNERS_FREE && ++*gene < p->size_count) {
                break;
            }
            *gene = p->held[stage] == RP_PLANNERS_FREE ? 0 : *gene;
        }
    }
    return best;
}

/* A ring as METHODS 10.4 draws them; `tight`: half of what the largest sizes need. */
static inline void draw_ring(rp_arena *arena, rp_rng *rng, uint32_t stages_min, uint32_t stages_max,
                             uint32_t samples, bool tight, rp_problem *out) {
    const instance_draw draw = {.stages_min = stages_min,
                                .stages_max = stages_max,
                                .samples = samples,
                                .backward = 2,
                                .own_backward = rp_rng_below(rng, 2) == 0,
                                .latency = rp_rng_below(rng, 2) ? 2 : 0};
    expect_ok(draw_instance(arena, rng, &draw, out));
    for (uint32_t k = 0; k < out->stages && tight; k++) {
        out->memory[k] = (rp_problem_memory){.fixed_bytes = 100,
                                             .stash_bytes = 3,
                                             .work_bytes = 10,
                                             .arrive_bytes = {4, 2},
                                             .limit_bytes = 100 + 3 * samples + 8 * samples};
    }
}

/* Sizes spread over the allowed ones, at most so many; the last one stays. */
static inline void thin_sizes(rp_problem *p, uint32_t most) {
    const uint32_t had = p->size_count;
    if (had <= most) {
        return;
    }
    for (uint32_t i = 0; i < most; i++) {
        p->size[i] = p->size[(i + 1) * had / most - 1];
    }
    p->size_count = most;
}

#endif
