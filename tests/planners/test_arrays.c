/* A population at once takes as long as each of its genomes by itself. */
#include <math.h>

#include "expect.h"
#include "planners/arrays.h"

#include "planners/drawn.h"

enum { TRIALS = 3000, GENOMES = 70 };

static void draw_problem(rp_arena *arena, rp_rng *rng, uint32_t trial, rp_problem *p) {
    if (trial % 2) {
        const instance_draw draw = {.stages_min = 4,
                                    .stages_max = 16,
                                    .samples = trial % 20 == 1 ? 128 : 32,
                                    .backward = 2,
                                    .own_backward = trial % 4 == 1,
                                    .latency = trial % 8 > 4 ? 3 : 0};
        expect_ok(draw_instance(arena, rng, &draw, p));
    } else {
        expect_ok(rp_problem_open(arena, 1 + rp_rng_below(rng, 8), 1 + rp_rng_below(rng, 40), p));
        draw_sizes(p, rng);
        draw_costs(p, rng);
    }
    draw_held(p, rng);
    for (uint32_t k = 0; k < p->stages && trial % 3 == 0; k++) {
        p->memory[k] = (rp_problem_memory){
            .limit_bytes = 10 * p->samples, .work_bytes = 8, .arrive_bytes = {3, 1}};
    }
}

static void they_are_those_of_the_recurrence(void **state) {
    (void)state;
    rp_rng rng = rp_rng_named(3, "test/arrays");
    uint32_t refused = 0;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        rp_arena arena;
        rp_problem p;
        rp_tables tables;
        rp_recurrence_room room;
        rp_genome_arrays arrays;
        rp_genome genome[GENOMES];
        double many[GENOMES];
        rp_arena_init(&arena, "test", 0);
        draw_problem(&arena, &rng, trial, &p);
        expect_ok(rp_tables_open(&arena, &p, &tables));
        expect_ok(rp_recurrence_open(&arena, &tables, &room));
        expect_ok(rp_genome_arrays_open(&arena, &tables, &arrays));
        for (uint32_t g = 0; g < GENOMES; g++) {
            genome[g] = drawn_genome(&p, &rng);
        }
        for (uint32_t count = GENOMES; count > 0; count -= GENOMES / 2) {
            rp_genome_arrays_makespans(&arrays, genome, count, many);
            for (uint32_t g = 0; g < count; g++) {
                const double one = rp_recurrence_makespan(&tables, &genome[g], &room);
                if (isinf(one)) {
                    assert_true(isinf(many[g]) && many[g] > 0);
                    refused++;
                } else {
                    expect_close(many[g], one, 1e-13, 0);
                }
            }
        }
        rp_arena_finish(&arena);
    }
    assert_true(refused > 100 && refused < TRIALS * GENOMES / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_those_of_the_recurrence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
