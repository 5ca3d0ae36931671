/* Planners: searches for the sizes with which a step is shortest. */
#ifndef RP_PLANNERS_PLANNER_H
#define RP_PLANNERS_PLANNER_H

#include "base/clock.h"
#include "planners/problem.h"

/* What a search that goes by generations says of each. */
typedef struct {
    uint32_t round, generation;
    double best, mean; /* seconds, of those of the generation that fit into memory */
} rp_planner_trace;

typedef struct {
    const rp_problem *problem;
    uint64_t seed;
    const rp_clock *clock; /* may be NULL when there is no limit of time */
    int64_t limit_ns;      /* 0: none. What is best until then is the answer, then another one on
                              another machine; without it the same question has the same answer */
    uint32_t rounds;       /* restarts of a search that draws; 0: until the time is over, or 1 */
    uint32_t population;   /* of a genetic search; 0: 100; 4 at least */
    void (*trace)(void *context, const rp_planner_trace *trace); /* may be NULL */
    void *context;
} rp_planner_ask;

typedef struct {
    rp_genome genome;
    double step_s;
    uint64_t evaluations; /* of whole genomes, what was known from before not counted */
    uint64_t generations;
    uint32_t rounds;
    double took_s;    /* 0 without a clock */
    bool is_complete; /* it ended by itself, not by the limit of time */
} rp_planner_answer;

typedef struct rp_search rp_search; /* planners/search.h */

typedef struct {
    const char *name;
    const char *source;
    rp_err (*search)(rp_search *search);
} rp_planner_kind;

extern const rp_planner_kind *const rp_planner_kinds[];
const rp_planner_kind *rp_planner_find(const char *name);

/* errors  of rp_problem_check(); USAGE: a limit of time without a clock, a population below 4;
 *         MEMORY */
rp_err rp_planner_search(const rp_planner_kind *kind, const rp_planner_ask *ask,
                         rp_planner_answer *out) RP_MUST_CHECK;

#endif
