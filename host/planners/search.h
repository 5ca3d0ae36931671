/* Common to all planners: the problem in tables, and the best genome so far. */
#ifndef RP_PLANNERS_SEARCH_H
#define RP_PLANNERS_SEARCH_H

#include "planners/planner.h"
#include "planners/recurrence.h"

struct rp_search {
    rp_arena arena;
    const rp_planner_ask *ask;
    rp_tables tables;
    rp_recurrence_room room;
    rp_planner_answer *answer; /* step_s is infinite until a genome fits */
};

/* Steps that differ by a smaller fraction count as equal, so that evaluations with different
 * rounding lead to the same choices. */
#define RP_SEARCH_ALIKE 1e-10

/* Evaluates a genome, counts that, and keeps it if it is the best. Returns seconds of a step. */
double rp_search_try(rp_search *search, const rp_genome *genome);
/* Keeps an evaluated genome if it is the best; of equal ones the first stays. */
void rp_search_keep(rp_search *search, const rp_genome *genome, double step_s);

/* ---- deterministic plans: simple.c ----------------------------------------------------------- */

/* The best even size. */
rp_genome rp_simple_even(rp_search *search);
/* Chooses sizes from stage 0 on, each so that the stage's forwards end soonest given the stages
 * before; then for backwards from the last stage down.
 * source  METHODS 10.2, "local greedy"; with a cost a + c b it takes all samples at once */
rp_genome rp_simple_greedy(rp_search *search);
/* As rp_simple_greedy(), but keeps every size of each stage with its best predecessor.
 * errors  MEMORY
 * source  METHODS 10.2, "global-greedy DP": not exact, because only one predecessor is kept */
rp_err rp_simple_dp(rp_search *search, rp_genome *out) RP_MUST_CHECK;

#endif
