/* Every genome: for tests, with few stages and sizes. */
#include "planners/search.h"

/* The next one, held genes as they are; false behind the last. */
static bool count_up(const rp_problem *p, rp_genome *genome) {
    for (int way = 0; way < RP_WAYS; way++) {
        for (uint32_t k = 0; k < p->stages; k++) {
            uint8_t *gene = &genome->gene[way][k];
            if (p->held[k] != RP_PLANNERS_FREE) {
                continue;
            }
            if (++*gene < p->size_count) {
                return true;
            }
            *gene = 0;
        }
    }
    return false;
}

static rp_err search_brute(rp_search *search) {
    rp_genome genome = rp_problem_even(search->tables.problem, 0);
    uint32_t tried = 0;
    do {
        (void)rp_search_try(search, &genome);
        if (++tried % 1024 == 0 && rp_search_is_over(search)) {
            break;
        }
    } while (count_up(search->tables.problem, &genome));
    return RP_OK;
}

const rp_planner_kind rp_planner_brute = {"brute", "every genome", search_brute};
