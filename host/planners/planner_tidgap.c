/* The genetic search of dgap, with arrays for a whole generation at once. */
#include "planners/arrays.h"
#include "planners/genetic.h"

static void evaluate_by_arrays(void *context, const rp_genome *genome, uint32_t count,
                               double *out) {
    rp_genome_arrays_makespans(context, genome, count, out);
}

static rp_err search_tidgap(rp_search *search) {
    rp_genome_arrays arrays;
    rp_err err;
    RP_TRY(rp_genome_arrays_open(&search->arena, &search->tables, &arrays));
    const rp_genetic by = {.makespans = evaluate_by_arrays, .context = &arrays};
    RP_TRY(rp_genetic_search(search, &by));
fail:
    return err;
}

const rp_planner_kind rp_planner_tidgap = {
    "tidgap", "TiDGAP of UMPIPE, Zhou et al., TPDS 2025; METHODS 10.3", search_tidgap};
