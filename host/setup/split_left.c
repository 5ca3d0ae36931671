/* A ring with a list of split stages (schedule.split) that becomes smaller or larger. The number of
 * stages stays while there is a board for each; then fewer of them are split. With fewer boards
 * than stages, no stage is split and their number shrinks. */
#include <math.h>
#include <stdio.h>

#include "planning/halves.h"
#include "sched/split.h"
#include "setup/setup_own.h"

bool rp_split_is_listed(const rp_arrangement *a) {
    return a->run.method.split_count > 0;
}

uint32_t rp_split_boards_of(const rp_arrangement *a, uint32_t boards) {
    const rp_method *method = &a->run.method;
    return rp_split_is_listed(a) ? boards
                                 : rp_method_boards(method, rp_method_stages(method, boards));
}

static uint32_t stages_on(const rp_arrangement *a, uint32_t boards) {
    const uint32_t said = a->now.said_count;
    return boards < said ? boards : said;
}

/* A list of steps ahead belongs to one number of stages. */
bool rp_split_may_be_on(const rp_arrangement *a, uint32_t boards) {
    return boards > 0 &&
           (a->run.method.ahead_count <= 1 || a->run.method.ahead_count == stages_on(a, boards));
}

/* Predicted time of the slowest part of a step, if the stages in `whole` are not split; infinite if
 * unknown or impossible. */
static double predict_longest_s(const rp_arrangement *a, uint32_t stages, uint32_t whole) {
    rp_setup other = a->now;
    rp_runfile run;
    double longest_s = (double)INFINITY;
    rp_arena arena;
    rp_cut cut;
    if (!rp_measure_has_profile(a->measure)) {
        return longest_s;
    }
    rp_arena_init(&arena, "split", 0);
    other.stages = other.split_count = stages;
    other.whole = whole;
    rp_setup_run(&a->opened, &other, &run);
    if (rp_halves_cut(&arena, &run, rp_measure_profile(a->measure), &cut, &longest_s) != RP_OK) {
        longest_s = (double)INFINITY;
    }
    rp_arena_finish(&arena);
    return longest_s;
}

/* Makes one more stage whole: the one with the fastest result; among equals the last one. */
static uint32_t join_halves(const rp_arrangement *a, uint32_t stages, uint32_t whole,
                            bool by_price) {
    double least_s = (double)INFINITY;
    uint32_t best = 0;
    for (uint32_t k = 0; k < stages; k++) {
        const uint32_t other = whole | UINT32_C(1) << k;
        const double own_s = rp_sched_is_split(whole, k) && by_price
                                 ? predict_longest_s(a, stages, other)
                                 : (double)INFINITY;
        if (rp_sched_is_split(whole, k) && own_s <= least_s) {
            least_s = own_s;
            best = other;
        }
    }
    return best;
}

static void take_boards(rp_arrangement *a, bool by_price) {
    rp_setup next = a->now;
    const uint32_t boards = a->run.boards;
    const uint32_t stages = stages_on(a, boards);
    RP_ASSERT(stages > 0);
    uint32_t whole = next.said_whole;
    if (stages < next.said_count) {
        whole = UINT32_MAX >> (RP_SPLIT_STAGES_MAX - stages);
    }
    while (rp_sched_split_nodes(stages, whole) > boards) {
        whole = join_halves(a, stages, whole, by_price);
    }
    RP_ASSERT(rp_sched_split_nodes(stages, whole) <= boards);
    next.split_count = next.stages = stages;
    next.whole = whole;
    rp_arrangement_put(a, &next);
}

void rp_split_count_stages(rp_arrangement *a, bool by_price) {
    if (rp_split_is_listed(a)) {
        take_boards(a, by_price);
    } else {
        rp_setup next = a->now;
        next.stages = rp_method_stages(&a->run.method, a->run.boards);
        rp_arrangement_put(a, &next);
    }
}

const char *rp_split_list_stages(const rp_arrangement *a, char *out, size_t bytes) {
    size_t used = 0;
    if (!rp_split_is_listed(a)) {
        return NULL;
    }
    (void)snprintf(out, bytes, "none");
    for (uint32_t k = 0; k < a->run.stages && used < bytes; k++) {
        if (rp_method_is_split(&a->run.method, k)) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%u", used > 0 ? ", " : "", k);
        }
    }
    return out;
}
