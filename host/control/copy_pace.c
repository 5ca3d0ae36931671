/* How often boards copy what they hold (ring.copy_steps). auto: so often that it costs at most 2 %
 * of the time, by what the last copies have cost: the pause, and all the time until the neighbours
 * had them, as if a wire could not have carried anything else. */
#include <math.h>
#include <stdio.h>

#include "control/controller_own.h"

static double seconds(int64_t ns) {
    return (double)ns * 1e-9;
}

static double usual_step_s(const rp_controller *c) {
    return seconds(rp_train_usual_step_ns(c->train.room));
}

/* ---- what they cost -------------------------------------------------------------------------- */

static void take_cost(rp_copy_pace *pace) {
    if (pace->whole_ns > 0 && !pace->is_pausing) {
        pace->cost_s[1] = pace->cost_s[0];
        pace->cost_s[0] = pace->pause_s + seconds(pace->whole_ns - pace->ordered_ns);
        pace->count++;
        pace->ordered_ns = pace->whole_ns = 0;
    }
}

void rp_copy_pace_ordered(rp_controller *c) {
    take_cost(&c->keep.copies.pace);
    c->keep.copies.pace.ordered_ns = c->ring.now_ns;
    c->keep.copies.pace.from = c->train.position.step;
    c->keep.copies.pace.is_pausing = true;
}

void rp_copy_pace_whole(rp_controller *c) {
    c->keep.copies.pace.whole_ns = c->ring.now_ns;
}

/* The first step behind a pause takes longer by it. */
void rp_copy_pace_note_step(rp_controller *c) {
    rp_copy_pace *pace = &c->keep.copies.pace;
    if (pace->is_pausing) {
        const double longer_s = seconds(c->ring.now_ns - pace->step_ns) - usual_step_s(c);
        pace->pause_s = longer_s > 0 ? longer_s : 0;
        pace->is_pausing = false;
    }
    pace->step_ns = c->ring.now_ns;
}

void rp_copy_pace_forget(rp_controller *c) {
    rp_copy_pace *pace = &c->keep.copies.pace;
    pace->from = 0;
    pace->ordered_ns = pace->whole_ns = 0;
    pace->is_pausing = false;
}

/* ---- how often ------------------------------------------------------------------------------- */

/* Of the last two the smaller: one may have met something else that took time. Those that are still
 * on their way cost at least what they have taken until now. */
static double cost_s(const rp_controller *c) {
    const rp_copy_pace *pace = &c->keep.copies.pace;
    const bool on_way = pace->ordered_ns > 0 && pace->whole_ns == 0;
    return fmax(pace->count > 1 ? fmin(pace->cost_s[0], pace->cost_s[1]) : 0,
                on_way ? seconds(c->ring.now_ns - pace->ordered_ns) : 0);
}

rp_err rp_copy_pace_choose(rp_controller *c) {
    rp_copy_pace *pace = &c->keep.copies.pace;
    char text[160];
    if (!c->run.copy_auto) {
        return RP_OK;
    }
    take_cost(pace);
    const double copy_s = cost_s(c);
    const uint32_t chosen = rp_cost_choose_copy_steps(usual_step_s(c), copy_s);
    const uint32_t said = pace->said > 0 ? pace->said : c->run.copy_steps;
    pace->every = pace->count > 1 || chosen > c->run.copy_steps ? chosen : c->run.copy_steps;
    if (pace->every / 4 < said && pace->every > said / 4) {
        return RP_OK;
    }
    pace->said = pace->every;
    (void)snprintf(text, sizeof text,
                   "boards copy what they hold every %u steps from here on: a step takes %.3g s, "
                   "and copies cost %.3g s at most",
                   pace->every, usual_step_s(c), copy_s);
    return rp_record_event(rp_folder_record(c->folder), "copies", c->train.position.step, text);
}

uint64_t rp_copy_pace_next(rp_controller *c) {
    rp_copy_pace *pace = &c->keep.copies.pace;
    const uint64_t step = c->train.position.step;
    const uint64_t last = pace->from > c->keep.save.kept_step ? pace->from : c->keep.save.kept_step;
    if (!c->run.copy_auto) {
        return c->run.copy_steps ? (step / c->run.copy_steps + 1) * c->run.copy_steps : UINT64_MAX;
    }
    pace->due = last + pace->every > step ? last + pace->every : step + 1;
    return pace->due;
}

bool rp_copy_pace_is_due(const rp_controller *c) {
    const uint64_t step = c->train.position.step;
    return c->run.copy_auto ? step == c->keep.copies.pace.due
                            : c->run.copy_steps && step % c->run.copy_steps == 0;
}
