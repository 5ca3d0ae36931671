/* Each stage with each size, given the best way there. */
#include "planners/search.h"

static rp_err search_dp_sizes(rp_search *search) {
    rp_genome ignored;
    return rp_simple_dp(search, &ignored);
}

const rp_planner_kind rp_planner_dp_sizes = {
    "dp-sizes", "dynamic programming over stages and sizes (global greedy), METHODS 10.2",
    search_dp_sizes};
