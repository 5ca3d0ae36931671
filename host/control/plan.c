/* The state `plan`: links are measured where that decides something, then the cut and the forwards
 * in flight are chosen. With `advance: auto` the host looks again at every pause; when links have
 * changed, the pipes drain, and the boards get new stages (METHODS 1, 9). */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"

/* Boards that are idle answer at once; behind a profile some answers are late. */
enum { BRINGUP_TRIPS = 8, PAUSE_TRIPS = 2 };
/* Microbatches before links are looked at for the first time, in a run of so many times as many. */
enum { FIRST_LOOK_MICROS = 32, FIRST_LOOK_PART = 8 };

/* ---- the state ------------------------------------------------------------------------------- */

/* Else boards are to get their stages: the first time, or because others have left the ring. */
static bool is_pause(const rp_controller *c) {
    return rp_train_has_feed(c->train);
}

/* A resumed run keeps what its checkpoint says, which may hold microbatches in flight. */
static bool chooses_advance(const rp_controller *c) {
    return rp_arrangement_wants_advance(c->setup) && (is_pause(c) || c->position.step == 0);
}

rp_err rp_plan_enter(rp_controller *c) {
    rp_err err = RP_OK;
    rp_measure_begin_trips(c->measure);
    RP_TRY(is_pause(c) ? RP_OK : rp_arrangement_choose(c->setup));
    if (chooses_advance(c) && !c->run->emulate) {
        RP_TRY(rp_measure_ping(c->measure));
    }
fail:
    return err;
}

/* How fast real wires are shows when they carry something: the first look is early in the run. */
static uint64_t first_look(const rp_runfile *run) {
    const uint64_t micros = (run->batch - 1) / run->micro + 1;
    const uint64_t step = (FIRST_LOOK_MICROS + micros - 1) / micros;
    return !run->emulate && run->steps >= FIRST_LOOK_PART * step ? step : 0;
}

static void leave_bringup(rp_controller *c, const rp_advance_choice *choice) {
    if (choice) {
        rp_arrangement_take_advance(c->setup, choice);
        c->way.look_step = first_look(c->run);
    }
    c->way.advance_least = choice ? 0 : c->run->method.advance;
    rp_machine_enter(&c->machine, RP_CONTROL_ASSIGN);
}

static void leave_pause(rp_controller *c, const rp_advance_choice *choice) {
    const uint32_t before = c->run->method.advance;
    c->way.looked_at = true;
    if (!rp_advance_pays(choice, before)) {
        rp_machine_enter(&c->machine, RP_CONTROL_TRAIN);
        return;
    }
    c->way.follow = (rp_follow){RP_FOLLOW_DRAIN, true, *choice, before};
    c->way.advance_least = before < choice->advance ? before : choice->advance;
    rp_machine_enter(&c->machine, RP_CONTROL_DRAIN);
}

rp_err rp_plan_step(rp_controller *c) {
    const uint32_t trips = is_pause(c) ? PAUSE_TRIPS : BRINGUP_TRIPS;
    rp_advance_choice choice;
    bool done = false;
    rp_err err = RP_OK;
    if (!chooses_advance(c)) {
        leave_bringup(c, NULL);
        return RP_OK;
    }
    if (!c->run->emulate) {
        if (!rp_machine_all_done(&c->machine, &c->ring, c->measure)) {
            return RP_OK;
        }
        RP_TRY(rp_measure_note_trips(c->measure, trips, &done));
        if (!done) {
            return RP_OK;
        }
    }
    RP_TRY(rp_arrangement_choose_advance(c->setup, rp_train_segment_s(c->train), &choice));
    if (is_pause(c)) {
        leave_pause(c, &choice);
    } else {
        leave_bringup(c, &choice);
    }
fail:
    return err;
}

/* ---- links that change ----------------------------------------------------------------------- */

/* A few steps for the drain, and a moment for the boards: no change for less. What is in flight may
 * reach over a checkpoint's step (another is made behind it), not over an evaluation's. */
bool rp_controller_follows_links(const rp_controller *c) {
    return rp_arrangement_wants_advance(c->setup) && c->position.step > 0 && !c->way.looked_at &&
           rp_controller_may_drain(c);
}

/* ---- codecs that change ---------------------------------------------------------------------- */

void rp_controller_follow_losses(rp_controller *c) {
    const uint64_t step = c->position.step;
    if (!rp_arrangement_waits_for_codecs(c->setup) || rp_train_drained_at(c->train) != step) {
        return;
    }
    if (c->way.follow.phase == RP_FOLLOW_NONE && step < rp_train_end(c->train)) {
        c->way.follow = (rp_follow){.phase = RP_FOLLOW_DRAIN, .before = c->run->method.advance};
        c->way.advance_least = c->run->method.advance;
    }
    rp_arrangement_take_next_codecs(c->setup); /* also for a run that is made longer */
}

bool rp_controller_wants_milder(const rp_controller *c) {
    return rp_arrangement_waits_for_codecs(c->setup) && rp_controller_may_drain(c);
}
