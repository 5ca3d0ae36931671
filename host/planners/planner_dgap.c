/* Two chromosomes, one genome at a time. */
#include "planners/genetic.h"

static rp_err search_dgap(rp_search *search) {
    const rp_genetic by = {.makespans = rp_genetic_one_by_one, .context = search, .is_tied = false};
    return rp_genetic_search(search, &by);
}

const rp_planner_kind rp_planner_dgap = {
    "dgap", "DGAP of UMPIPE, Zhou et al., TPDS 2025; METHODS 10.2, 10.4", search_dgap};
