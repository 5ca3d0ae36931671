/* One size for all stages and both ways. */
#include "planners/search.h"

static rp_err search_even(rp_search *search) {
    (void)rp_simple_even(search);
    return RP_OK;
}

const rp_planner_kind rp_planner_even = {
    "even", "the best size that all stages share: GPipe, Huang et al. 2019, at its best",
    search_even};
