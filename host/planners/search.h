/* What all planners share: the question in tables, and the best genome until now. */
#ifndef RP_PLANNERS_SEARCH_H
#define RP_PLANNERS_SEARCH_H

#include "planners/planner.h"
#include "planners/recurrence.h"

struct rp_search {
    rp_arena arena;
    const rp_planner_ask *ask;
    rp_tables tables;
    rp_recurrence_room room;
    rp_planner_answer *answer; /* .step_s: infinite until something fits */
};

/* Steps that differ by less of their time count as alike: then ways to compute a time that round
 * differently lead to the same choices. */
#define RP_SEARCH_ALIKE 1e-10

/* Seconds of a step; counted, and kept where it is the best. */
double rp_search_try(rp_search *search, const rp_genome *genome);
/* The same of one that is known. Of those that are alike the first is kept. */
void rp_search_keep(rp_search *search, const rp_genome *genome, double step_s);

/* ---- plans without chance: simple.c ---------------------------------------------------------- */

/* The best even size. */
rp_genome rp_simple_even(rp_search *search);
/* From stage 0 on, the size with which the stage's forwards are over soonest given the one before;
 * then the backwards from the last stage down.
 * source  METHODS 10.2, "local greedy"; with a cost a + c b it takes all samples at once */
rp_genome rp_simple_greedy(rp_search *search);
/* The same with every size of each stage kept, by its best predecessor.
 * source  METHODS 10.2, "global-greedy DP": not exact, for of a predecessor only one is kept
 * errors  MEMORY */
rp_err rp_simple_dp(rp_search *search, rp_genome *out) RP_MUST_CHECK;

#endif
