/* Each stage by itself, given the one before it. */
#include "planners/search.h"

static rp_err search_greedy(rp_search *search) {
    (void)rp_simple_greedy(search);
    return RP_OK;
}

const rp_planner_kind rp_planner_greedy = {"greedy", "local greedy, METHODS 10.2", search_greedy};
