/* The best even size, then one gene after the other. */
#include "planners/search.h"

static rp_err search_descent(rp_search *search) {
    rp_genome genome = rp_simple_even(search);
    rp_simple_descend(search, &genome);
    return RP_OK;
}

const rp_planner_kind rp_planner_descent = {
    "descent", "coordinate descent from the best even size, METHODS 10.4", search_descent};
