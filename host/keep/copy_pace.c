/* How often boards copy their state (ring.copy_steps). auto: as often as costs at most 2 % of the
 * time. The cost of copies is the pause plus the time until the neighbours have them, as if the
 * wires could not carry anything else meanwhile. */
#include <math.h>

#include "keep/copies.h"
#include "keep/keep_own.h"
#include "planning/cost.h"

static double seconds(int64_t ns) {
    return (double)ns * 1e-9;
}

/* ---- what they cost -------------------------------------------------------------------------- */

static void take_cost(rp_copy_pace *pace) {
    if (pace->whole_ns > 0 && !pace->is_pausing) {
        RP_ASSERT(pace->ordered_ns <= pace->whole_ns);
        pace->cost_s[1] = pace->cost_s[0];
        pace->cost_s[0] = pace->pause_s + seconds(pace->whole_ns - pace->ordered_ns);
        pace->count++;
        pace->ordered_ns = pace->whole_ns = 0;
    }
}

void rp_copy_pace_note_order(rp_keep *keep, uint64_t step) {
    rp_copy_pace *pace = &keep->copies.pace;
    RP_ASSERT(step >= pace->from);
    take_cost(pace);
    pace->ordered_ns = keep->needs.ring->now_ns;
    pace->from = step;
    pace->is_pausing = true;
}

void rp_copy_pace_note_whole(rp_keep *keep) {
    RP_ASSERT(keep->copies.pace.ordered_ns <= keep->needs.ring->now_ns);
    keep->copies.pace.whole_ns = keep->needs.ring->now_ns;
}

/* The pause makes the first step after it longer. */
void rp_keep_note_step(rp_keep *keep, int64_t usual_ns) {
    rp_copy_pace *pace = &keep->copies.pace;
    const int64_t now_ns = keep->needs.ring->now_ns;
    RP_ASSERT(usual_ns >= 0 && pace->step_ns <= now_ns);
    if (pace->is_pausing) {
        const double longer_s = seconds(now_ns - pace->step_ns) - seconds(usual_ns);
        pace->pause_s = longer_s > 0 ? longer_s : 0;
        pace->is_pausing = false;
    }
    pace->step_ns = now_ns;
}

void rp_copy_pace_forget(rp_keep *keep) {
    rp_copy_pace *pace = &keep->copies.pace;
    pace->from = 0;
    pace->ordered_ns = pace->whole_ns = 0;
    pace->is_pausing = false;
}

/* ---- how often ------------------------------------------------------------------------------- */

/* The smaller cost of the last two copies, because other delays may have added to one. Copies in
 * progress cost at least the time since they were ordered. */
static double find_cost_s(const rp_keep *keep) {
    const rp_copy_pace *pace = &keep->copies.pace;
    const bool on_way = pace->ordered_ns > 0 && pace->whole_ns == 0;
    return fmax(pace->count > 1 ? fmin(pace->cost_s[0], pace->cost_s[1]) : 0,
                on_way ? seconds(keep->needs.ring->now_ns - pace->ordered_ns) : 0);
}

rp_err rp_keep_choose_copy_pace(rp_keep *keep, uint64_t step, int64_t usual_ns) {
    rp_copy_pace *pace = &keep->copies.pace;
    const rp_runfile *run = keep->needs.run;
    RP_ASSERT(usual_ns >= 0);
    if (!run->safety.copy_auto) {
        return RP_OK;
    }
    take_cost(pace);
    const double copy_s = find_cost_s(keep);
    const uint32_t chosen = rp_cost_choose_copy_steps(seconds(usual_ns), copy_s);
    const uint32_t said = pace->said > 0 ? pace->said : run->safety.copy_steps;
    pace->every =
        pace->count > 1 || chosen > run->safety.copy_steps ? chosen : run->safety.copy_steps;
    RP_ASSERT(pace->every > 0);
    if (pace->every / 4 < said && pace->every > said / 4) {
        return RP_OK;
    }
    pace->said = pace->every;
    return rp_record_event(rp_keep_record(keep), &(rp_run_event){.kind = RP_EVENT_COPY_PACE,
                                                                 .step = step,
                                                                 .every = pace->every,
                                                                 .step_s = seconds(usual_ns),
                                                                 .copy_s = copy_s});
}

uint64_t rp_keep_next_copies(rp_keep *keep, uint64_t step) {
    rp_copy_pace *pace = &keep->copies.pace;
    const rp_runfile *run = keep->needs.run;
    const uint64_t saved = keep->save.kept_step;
    const uint64_t last = pace->from > saved ? pace->from : saved;
    if (!run->safety.copy_auto) {
        return run->safety.copy_steps ? (step / run->safety.copy_steps + 1) * run->safety.copy_steps
                                      : UINT64_MAX;
    }
    pace->due = last + pace->every > step ? last + pace->every : step + 1;
    return pace->due;
}

bool rp_keep_copies_are_due(const rp_keep *keep, uint64_t step) {
    const rp_runfile *run = keep->needs.run;
    return run->safety.copy_auto ? step == keep->copies.pace.due
                                 : run->safety.copy_steps && step % run->safety.copy_steps == 0;
}
