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

bool rp_search_is_over(rp_search *s) {
    const rp_planner_ask *ask = s->ask;
    if (ask->limit_ns != 0 && rp_clock_now_ns(ask->clock) - s->start_ns >= ask->limit_ns) {
        s->answer->is_complete = false;
        return true;
    }
    return false;
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
    if (ask->limit_ns != 0 && !ask->clock) {
        return rp_fail(RP_ERR_USAGE, "planner: a limit of time needs a clock");
    }
    if (ask->limit_ns < 0 || (ask->population != 0 && ask->population < 4)) {
        return rp_fail(RP_ERR_USAGE,
                       "planner: limit %lld ns, population %u, expected none below 0 and 4",
                       (long long)ask->limit_ns, ask->population);
    }
    return rp_problem_check(ask->problem);
}

static double seconds_since(const rp_search *s) {
    const rp_clock *clock = s->ask->clock;
    return clock ? (double)(rp_clock_now_ns(clock) - s->start_ns) / (double)RP_NS_PER_S : 0;
}

rp_err rp_planner_search(const rp_planner_kind *kind, const rp_planner_ask *ask,
                         rp_planner_answer *out) {
    rp_search s = {.ask = ask, .answer = out};
    rp_err err;
    *out = (rp_planner_answer){.step_s = (double)INFINITY, .is_complete = true};
    rp_arena_init(&s.arena, "planner", 0);
    RP_TRY(check_ask(ask));
    s.start_ns = ask->clock ? rp_clock_now_ns(ask->clock) : 0;
    RP_TRY(rp_tables_open(&s.arena, ask->problem, &s.tables));
    RP_TRY(rp_recurrence_open(&s.arena, &s.tables, &s.room));
    RP_TRY(kind->search(&s));
    out->took_s = seconds_since(&s);
    out->step_s = rp_recurrence_makespan(&s.tables, &out->genome, &s.room);
    RP_ASSERT(isfinite(out->step_s)); /* the smallest sizes fit: rp_problem_check() */
fail:
    rp_arena_finish(&s.arena);
    return err;
}
