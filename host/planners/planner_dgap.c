/* The genetic search with the recurrence, one genome at a time. */
#include "planners/genetic.h"

static void evaluate_one_by_one(void *context, const rp_genome *genome, uint32_t count,
                                double *out) {
    rp_search *search = context;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = rp_recurrence_makespan(&search->tables, &genome[i], &search->room);
    }
}

static rp_err search_dgap(rp_search *search) {
    const rp_genetic by = {.makespans = evaluate_one_by_one, .context = search};
    return rp_genetic_search(search, &by);
}

const rp_planner_kind rp_planner_dgap = {
    "dgap", "DGAP of UMPIPE, Zhou et al., TPDS 2025; METHODS 10.2, 10.4", search_dgap};
