/* Planners: searches for the microbatch sizes with the shortest step. */
#ifndef RP_PLANNERS_PLANNER_H
#define RP_PLANNERS_PLANNER_H

#include "planners/problem.h"

/* Progress of one generation of a search. */
typedef struct {
    uint32_t round, generation;
    double best, mean; /* seconds of a step, of the genomes that fit into memory */
} rp_planner_trace;

typedef struct {
    const rp_problem *problem;
    uint64_t seed;
    uint32_t rounds;     /* restarts of the search with new random numbers; >= 1 */
    uint32_t population; /* genomes of a generation, >= 4; 0: 100 */
    void (*trace)(void *context, const rp_planner_trace *trace); /* may be NULL */
    void *context;
} rp_planner_ask;

typedef struct {
    rp_genome genome;
    double step_s;
    rp_genome even; /* the best genome with one size for all stages that are not held */
    double even_step_s;
    uint64_t evaluations; /* of whole genomes, without repeated ones */
} rp_planner_answer;

typedef struct rp_search rp_search; /* planners/search.h */

typedef struct {
    const char *name;
    const char *source;
    rp_err (*search)(rp_search *search);
} rp_planner_kind;

extern const rp_planner_kind *const rp_planner_kinds[];
const rp_planner_kind *rp_planner_find(const char *name);

/* The answer depends only on `ask`.
 * errors  those of rp_problem_check(); USAGE: no rounds, a population below 4; MEMORY */
rp_err rp_planner_search(const rp_planner_kind *kind, const rp_planner_ask *ask,
                         rp_planner_answer *out) RP_MUST_CHECK;

#endif
