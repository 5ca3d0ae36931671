/* Schedules with split stages: `ahead: measured` chooses the fewest steps ahead with which no board
 * waits. Also logs a hint if sending stashes slows the ring down. */
#include <stdio.h>
#include <string.h>

#include "planning/halves.h"
#include "setup/choice.h"

bool rp_ahead_is_open(const rp_choice *c) {
    return c->run.method.ahead_measured && !c->facts->evaluates;
}

bool rp_ahead_is_bounded(const rp_choice *c) {
    const rp_sched_shape first = rp_runfile_sched_shape(&c->run, 0);
    return rp_sched_ahead(&first) > 0;
}

/* "[5, 3]" */
enum { LIST_BYTES = RP_SPLIT_STAGES_MAX * 6 + 3 };
static void put_list(const rp_setup *setup, char out[LIST_BYTES]) {
    size_t used = (size_t)snprintf(out, LIST_BYTES, "[");
    for (uint32_t k = 0; k < setup->ahead_count; k++) {
        used +=
            (size_t)snprintf(out + used, LIST_BYTES - used, "%s%u", k ? ", " : "", setup->ahead[k]);
    }
    (void)snprintf(out + used, LIST_BYTES - used, "]");
}

static rp_err say_ahead(rp_choice *c, double step_s) {
    char list[LIST_BYTES];
    put_list(&c->next, list);
    return rp_choice_say(c,
                         &(rp_run_event){.kind = RP_EVENT_AHEAD, .ahead = list, .step_s = step_s});
}

static double find_longest(const double *times, uint32_t count) {
    double most = 0;
    for (uint32_t k = 0; k < count; k++) {
        most = times[k] > most ? times[k] : most;
    }
    return most;
}

/* Hints at a schedule with both directions on one board, which would not send the stash. */
static rp_err hint_stash(rp_choice *c, const rp_split_times *times) {
    const double forward = find_longest(times->forward, times->stages);
    const double backward = find_longest(times->backward, times->stages);
    const double work = forward > backward ? forward : backward;
    uint32_t k = 0;
    while (k < times->stages && !(times->stash[k] > work)) {
        k++;
    }
    if (k == times->stages) {
        return RP_OK;
    }
    const uint32_t backward_at = rp_runfile_backward_place(&c->run, k);
    return rp_choice_say(c, &(rp_run_event){.kind = RP_EVENT_HINT_STASH,
                                            .stage = k,
                                            .stash_s = times->stash[k],
                                            .board = rp_choice_name(c, k),
                                            .peer = rp_choice_name(c, backward_at),
                                            .work_s = work});
}

rp_err rp_ahead_choose(rp_choice *c) {
    rp_split_times times;
    rp_err err = RP_OK;
    if (!rp_ahead_is_bounded(c) || !c->facts->profile || c->facts->has_begun ||
        c->facts->is_given) {
        return RP_OK;
    }
    RP_TRY(rp_halves_times(c->arena, &c->run, &c->placed, &c->next.cut, c->facts->delay_s, &times));
    RP_TRY(hint_stash(c, &times));
    if (rp_ahead_is_open(c)) {
        RP_ASSERT(c->next.stages <= RP_SPLIT_STAGES_MAX);
        rp_sched_split_ahead(&times, RP_AHEAD_MAX, c->next.ahead);
        c->next.ahead_count = c->next.stages;
        c->next.ahead_auto = false;
        rp_choice_refresh(c);
        RP_TRY(say_ahead(c, rp_sched_split_period(&times)));
    }
fail:
    return err;
}

rp_err rp_ahead_settle(const rp_settling *s) {
    char list[LIST_BYTES];
    put_list(s->now, list);
    return s->was->ahead_auto && !s->now->ahead_auto ? rp_settle(s, "schedule.ahead", list) : RP_OK;
}
