/* A schedule that splits stages: how far forwards run ahead of updates, where `ahead: measured`
 * asks for the fewest with which no board waits; what is said where a stash holds the ring up. */
#include <stdio.h>
#include <string.h>

#include "setup/setup_own.h"

bool rp_ahead_is_wanted(const rp_arrangement *a) {
    return a->run.method.ahead_measured && !a->evaluates;
}

/* "5, 3" */
enum { LIST_BYTES = RP_SPLIT_STAGES_MAX * 6 };
static void put_list(const rp_method *method, char out[LIST_BYTES]) {
    size_t used = 0;
    for (uint32_t k = 0; k < method->ahead_count; k++) {
        used += (size_t)snprintf(out + used, LIST_BYTES - used, "%s%u", k ? ", " : "",
                                 method->ahead[k]);
    }
}

/* The run file as it is resolved has the numbers: boards get them, and a run that is resumed. */
static rp_err keep(rp_arrangement *a, const uint16_t *ahead) {
    rp_setup *now = &a->now;
    RP_ASSERT(now->stages <= RP_SPLIT_STAGES_MAX);
    memcpy(now->ahead, ahead, now->stages * sizeof *ahead);
    now->ahead_count = now->stages;
    now->ahead_auto = false;
    return rp_arrangement_settle(a);
}

static rp_err say(const rp_arrangement *a, double step_s) {
    char list[LIST_BYTES] = "";
    char text[LIST_BYTES + 160];
    put_list(&a->run.method, list);
    (void)snprintf(text, sizeof text,
                   "by what was measured forwards run [%s] steps ahead, the fewest with which a "
                   "step takes no longer than %.4g ms",
                   list, 1e3 * step_s);
    return rp_folder_record(a->folder)
               ? rp_record_event(rp_folder_record(a->folder), "ahead", a->position->step, text)
               : RP_OK;
}

rp_err rp_ahead_take(rp_arrangement *a, const uint16_t *ahead, uint32_t count) {
    return rp_ahead_is_wanted(a) && count == a->run.stages ? keep(a, ahead) : RP_OK;
}

static double longest(const double *times, uint32_t count) {
    double most = 0;
    for (uint32_t k = 0; k < count; k++) {
        most = times[k] > most ? times[k] : most;
    }
    return most;
}

/* Where a board with both directions would not have to send it. */
static rp_err hint_stash(const rp_arrangement *a, const rp_split_times *times) {
    const double forward = longest(times->forward, times->stages);
    const double backward = longest(times->backward, times->stages);
    const double work = forward > backward ? forward : backward;
    uint32_t k = 0;
    char text[320];
    while (k < times->stages && !(times->stash[k] > work)) {
        k++;
    }
    if (k == times->stages || !rp_folder_record(a->folder)) {
        return RP_OK;
    }
    (void)snprintf(text, sizeof text,
                   "what a step of stage %u leaves for its backward is %.4g ms on the wire from "
                   "board %.40s to board %.40s, and no board computes longer than %.4g ms: a "
                   "schedule with both directions on one board does not send it, as pipedream",
                   k, 1e3 * times->stash[k], a->ring->board[k].name,
                   a->ring->board[rp_runfile_backward_place(&a->run, k)].name, 1e3 * work);
    return rp_record_event(rp_folder_record(a->folder), "hint", a->position->step, text);
}

rp_err rp_ahead_choose(rp_arrangement *a) {
    uint16_t ahead[RP_SPLIT_STAGES_MAX];
    rp_split_times times;
    rp_arena arena;
    rp_err err = RP_OK;
    if (!a->run.method.kind->splits || !rp_measure_has_profile(a->measure) || a->has_begun ||
        a->given) {
        return RP_OK;
    }
    rp_arena_init(&arena, "ahead", 0);
    RP_TRY(rp_halves_times(&arena, &a->run, rp_measure_profile(a->measure), &a->now.cut,
                           rp_measure_delay_s(a->measure), &times));
    RP_TRY(hint_stash(a, &times));
    if (rp_ahead_is_wanted(a)) {
        rp_sched_split_ahead(&times, RP_AHEAD_MAX, ahead);
        RP_TRY(keep(a, ahead));
        RP_TRY(say(a, rp_sched_split_period(&times)));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}
