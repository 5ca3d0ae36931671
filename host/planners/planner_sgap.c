/* One chromosome: the backward has the sizes of the forward. What the second one is worth shows
 * here. */
#include "planners/genetic.h"

static rp_err search_sgap(rp_search *search) {
    const rp_genetic by = {.makespans = rp_genetic_one_by_one, .context = search, .is_tied = true};
    return rp_genetic_search(search, &by);
}

const rp_planner_kind rp_planner_sgap = {"sgap", "the ablation of METHODS 10.2", search_sgap};
