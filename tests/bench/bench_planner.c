/* TiDGAP against DGAP on one thread: what the arrays of host/planners are worth.
 *
 *     bench_planner evaluators   genomes a second, by the recurrence one by one and as arrays
 *     bench_planner searches     whole searches with the same seeds, one round
 *
 * over populations x microbatches x stages; random rings of METHODS 10.4. CPU seconds, the least of
 * five. Microbatches are those that a stage can have at most: the step has so many samples. Genomes
 * of `evaluators`: `finest` have the smallest size everywhere, so every stage has all microbatches;
 * `drawn` have any size anywhere, as a first population; `evolved` are the search's best one with
 * one gene of each chromosome drawn anew on average, as a late population. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "planners/arrays.h"
#include "planners/instance.h"
#include "planners/planner.h"

enum { REPEATS = 5, POOL = 16, POPULATION_MAX = 500, CASES_MAX = 256 };
static const uint32_t populations[] = {50, 100, 500};
static const uint32_t microbatches[] = {8, 16, 32, 64, 128, 256};
static const uint32_t stage_counts[] = {4, 8, 12, 16};
static const char *const kinds[] = {"finest", "drawn", "evolved"};

typedef struct {
    double one_s, all_s; /* by the recurrence, as arrays */
    double rate[2];      /* genomes a second */
} result;

typedef struct {
    rp_arena arena;
    rp_problem problem;
    rp_tables tables;
    rp_recurrence_room room;
    rp_genome_arrays arrays;
    rp_genome *genome; /* [POOL][population]: others each time, as in a search */
    double *value;
} bench;

static double cpu_s(void) {
    struct timespec at;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void must(rp_err err) {
    if (err != RP_OK) {
        exit(rp_err_exit_code(err));
    }
}

static void open_bench(bench *b, uint32_t stages, uint32_t samples, uint32_t population) {
    const instance_draw draw = {
        .stages_min = stages, .stages_max = stages, .samples = samples, .backward = 2};
    rp_rng rng = rp_rng_named(1, "bench/planner");
    rp_arena_init(&b->arena, "bench", 0);
    must(draw_instance(&b->arena, &rng, &draw, &b->problem));
    must(rp_tables_open(&b->arena, &b->problem, &b->tables));
    must(rp_recurrence_open(&b->arena, &b->tables, &b->room));
    must(rp_genome_arrays_open(&b->arena, &b->tables, &b->arrays));
    must(RP_ARENA_NEW(&b->arena, (size_t)POOL * population, &b->genome));
    must(RP_ARENA_NEW(&b->arena, population, &b->value));
}

static void fill_genomes(bench *b, uint32_t kind, uint32_t population) {
    const rp_planner_ask ask = {.problem = &b->problem, .seed = 1, .rounds = 1};
    rp_rng rng = rp_rng_named(2, "bench/planner");
    rp_planner_answer best = {.step_s = 0};
    if (kind == 2) {
        must(rp_planner_search(rp_planner_find("tidgap"), &ask, &best));
    }
    for (uint32_t i = 0; i < POOL * population; i++) {
        b->genome[i] = best.genome;
        for (uint32_t at = 0; kind != 0 && at < RP_WAYS * b->tables.stages; at++) {
            if (kind == 1 || rp_rng_below(&rng, b->tables.stages) == 0) {
                b->genome[i].gene[at % 2][at / 2] =
                    (uint8_t)rp_rng_below(&rng, b->tables.size_count);
            }
        }
    }
}

static void walk_one_by_one(bench *b, uint32_t population, uint32_t pass) {
    const rp_genome *genome = b->genome + (size_t)(pass % POOL) * population;
    for (uint32_t i = 0; i < population; i++) {
        b->value[i] = rp_recurrence_makespan(&b->tables, &genome[i], &b->room);
    }
}

static void walk_arrays(bench *b, uint32_t population, uint32_t pass) {
    const rp_genome *genome = b->genome + (size_t)(pass % POOL) * population;
    rp_genome_arrays_makespans(&b->arrays, genome, population, b->value);
}

static result measure_evaluators(uint32_t kind, uint32_t stages, uint32_t samples,
                                 uint32_t population) {
    bench b;
    result out = {(double)INFINITY, (double)INFINITY, {0, 0}};
    const uint32_t passes = 1 + 2000000 / (population * stages * (samples + 16));
    open_bench(&b, stages, samples, population);
    fill_genomes(&b, kind, population);
    for (uint32_t repeat = 0; repeat < REPEATS; repeat++) {
        const double start = cpu_s();
        for (uint32_t pass = 0; pass < passes; pass++) {
            walk_one_by_one(&b, population, pass);
        }
        const double middle = cpu_s();
        for (uint32_t pass = 0; pass < passes; pass++) {
            walk_arrays(&b, population, pass);
        }
        out.one_s = fmin(out.one_s, middle - start);
        out.all_s = fmin(out.all_s, cpu_s() - middle);
    }
    out.rate[0] = (double)passes * population / out.one_s;
    out.rate[1] = (double)passes * population / out.all_s;
    rp_arena_finish(&b.arena);
    return out;
}

static result measure_searches(uint32_t kind, uint32_t stages, uint32_t samples,
                               uint32_t population) {
    static const char *const name[] = {"dgap", "tidgap"};
    bench b;
    result out = {(double)INFINITY, (double)INFINITY, {0, 0}};
    double *const least[] = {&out.one_s, &out.all_s};
    rp_planner_answer answer[2];
    (void)kind;
    open_bench(&b, stages, samples, population);
    const rp_planner_ask ask = {
        .problem = &b.problem, .seed = 1, .rounds = 1, .population = population};
    for (uint32_t repeat = 0; repeat < REPEATS; repeat++) {
        for (uint32_t way = 0; way < 2; way++) {
            const double start = cpu_s();
            must(rp_planner_search(rp_planner_find(name[way]), &ask, &answer[way]));
            *least[way] = fmin(*least[way], cpu_s() - start);
            out.rate[way] = (double)answer[way].evaluations / *least[way];
        }
    }
    if (memcmp(&answer[0].genome, &answer[1].genome, sizeof answer[0].genome) != 0) {
        printf("the searches part: %u stages, %u samples\n", stages, samples);
    }
    rp_arena_finish(&b.arena);
    return out;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure_grid(const char *what, uint32_t kind,
                         result (*measure)(uint32_t, uint32_t, uint32_t, uint32_t)) {
    double ratio[CASES_MAX];
    uint32_t count = 0;
    uint32_t slower = 0;
    printf("\n%s: arrays against one by one; in brackets thousands a second as arrays\n\n", what);
    printf("| microbatches | stages | population 50 | 100 | 500 |\n|---|---|---|---|---|\n");
    for (size_t m = 0; m < sizeof microbatches / sizeof *microbatches; m++) {
        for (size_t l = 0; l < sizeof stage_counts / sizeof *stage_counts; l++) {
            printf("| %u | %u |", microbatches[m], stage_counts[l]);
            for (size_t p = 0; p < sizeof populations / sizeof *populations; p++) {
                const result r = measure(kind, stage_counts[l], microbatches[m], populations[p]);
                ratio[count] = r.one_s / r.all_s;
                slower += ratio[count] < 1;
                printf(" %.2f (%.0f) |", ratio[count], r.rate[1] / 1e3);
                count++;
                (void)fflush(stdout);
            }
            printf("\n");
        }
    }
    qsort(ratio, count, sizeof *ratio, by_value);
    printf("\n%s: min %.2f, median %.2f, max %.2f; slower in %u of %u\n", what, ratio[0],
           ratio[count / 2], ratio[count - 1], slower, count);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "evaluators") == 0) {
        for (uint32_t kind = 0; kind < 3; kind++) {
            measure_grid(kinds[kind], kind, measure_evaluators);
        }
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "searches") == 0) {
        measure_grid("searches", 0, measure_searches);
        return 0;
    }
    (void)fprintf(stderr, "bench_planner: evaluators or searches\n");
    return 2;
}
