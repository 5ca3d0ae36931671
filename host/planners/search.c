#include "planners/search.h"

#include <math.h>
#include <string.h>

void rp_search_keep(rp_search *s, const rp_genome *genome, double step_s) {
    if (step_s < s->answer->step_s * (1 - RP_SEARCH_ALIKE) ||
        (isfinite(step_s) && isinf(s->answer->step_s))) {
        s->answer->step_s = step_s;
        s->answer->genome = *genome;
    }
}

double rp_search_try(rp_search *s, const rp_genome *genome) {
    const double step_s = rp_recurrence_makespan(&s->tables, genome, &s->room);
    s->answer->evaluations++;
    rp_search_keep(s, genome, step_s);
    return step_s;
}

/* ---- planners/planner.h ---------------------------------------------------------------------- */

const rp_planner_kind *rp_planner_find(const char *name) {
    for (const rp_planner_kind *const *kind = rp_planner_kinds; *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            return *kind;
        }
    }
    return NULL;
}

static rp_err check_ask(const rp_planner_ask *ask) {
    if (ask->rounds == 0 || (ask->population != 0 && ask->population < 4)) {
        return rp_fail(RP_ERR_USAGE, "planner: %u rounds, population %u, expected at least 1 and 4",
                       ask->rounds, ask->population);
    }
    return rp_problem_check(ask->problem);
}

rp_err rp_planner_search(const rp_planner_kind *kind, const rp_planner_ask *ask,
                         rp_planner_answer *out) {
    rp_search s = {.ask = ask, .answer = out};
    rp_err err;
    *out = (rp_planner_answer){.step_s = (double)INFINITY};
    rp_arena_init(&s.arena, "planner", 0);
    RP_TRY(check_ask(ask));
    RP_TRY(rp_tables_open(&s.arena, ask->problem, &s.tables));
    RP_TRY(rp_recurrence_open(&s.arena, &s.tables, &s.room));
    RP_TRY(kind->search(&s));
    out->step_s = rp_recurrence_makespan(&s.tables, &out->genome, &s.room);
    RP_ASSERT(isfinite(out->step_s)); /* the smallest sizes fit: rp_problem_check() */
fail:
    rp_arena_finish(&s.arena);
    return err;
}
