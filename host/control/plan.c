/* The states `profile` and `plan`: boards measure layers, and links are measured if a choice
 * depends on them; then cut and advance are chosen. With `advance: auto` the host measures again at
 * every pause. When links have changed, the pipes drain and the boards get new stages (METHODS 1,
 * 9). */
#include <stdio.h>

#include "base/printable.h"
#include "control/controller_own.h"
#include "setup/assignment.h"
#include "setup/show.h"

/* Idle boards answer at once; just after a profile some answers are late. */
enum { BRINGUP_TRIPS = 8, PAUSE_TRIPS = 2 };
/* Links are first measured after FIRST_LOOK_MICROS microbatches, in runs at least FIRST_LOOK_PART
 * times as long. */
enum { FIRST_LOOK_MICROS = 32, FIRST_LOOK_PART = 8 };

static const char BUILDING_LAYERS[] = "building the layers' kernels";
static const char MEASURING[] = "measuring every layer";

/* ---- profile --------------------------------------------------------------------------------- */

void rp_profile_say(rp_record *record, FILE *progress, const char *text) {
    if (!record && progress) {
        rp_print(progress, "%s\n", text);
        (void)fflush(progress);
    }
    rp_record_phase(record, text);
}

/* Returns AGAIN when the board's link has no room. */
static rp_err ask_for_profile(rp_controller *c, uint32_t board) {
    rp_board_order order;
    char text[160];
    rp_err err;
    RP_TRY(rp_board_order_profile(c->setup, board, rp_warm_order_s(c->warm), &order));
    RP_TRY(rp_ring_offer(&c->ring, board, &order.frame, order.part, order.part_count));
    c->ring.board[board].machine.asked = true;
    if (!rp_measure_is_building(c->measure)) {
        rp_measure_describe_order(c->measure, board, text, sizeof text);
        rp_profile_say(rp_folder_record(c->folder), c->env.progress, text);
    }
fail:
    rp_board_order_finish(&order);
    return err;
}

/* *all: every board that has to measure has answered. */
static rp_err profile_boards(rp_controller *c, bool *all) {
    rp_sink_part part = {.text = rp_measure_is_building(c->measure) ? BUILDING_LAYERS : MEASURING};
    rp_err err = RP_OK;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (rp_measure_wants(c->measure, k) && !c->ring.board[k].machine.asked &&
            rp_measure_may_ask(c->measure, k)) {
            err = ask_for_profile(c, k);
            RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
        }
    }
    *all = rp_measure_are_boards_done(c->measure, &part);
    err = RP_OK;
    rp_warm_say(c->warm);
    if (!*all) {
        rp_record_part(rp_folder_record(c->folder), &part);
    }
fail:
    return err;
}

rp_err rp_profile_enter(rp_controller *c) {
    rp_err err;
    rp_machine_limit(&c->machine, rp_warm_begin_ns(c->warm));
    RP_TRY(rp_measure_begin(c->measure, c->ring.spawner ? c->ring.spawner->cores : 0));
    /* Boards answer pings while they measure, so a restarted board is noticed. */
    rp_ring_watch_boards(&c->ring, true);
    rp_machine_forget_asked(&c->ring);
    if (rp_measure_is_building(c->measure)) {
        rp_record_phase(rp_folder_record(c->folder), BUILDING_LAYERS);
    } else {
        rp_measure_end_building(c->measure);
    }
fail:
    return err;
}

rp_err rp_profile_step(rp_controller *c) {
    bool all;
    rp_err err;
    RP_TRY(profile_boards(c, &all));
    if (all && rp_measure_is_building(c->measure)) { /* kernels are built: now boards measure */
        rp_measure_end_building(c->measure);
        rp_machine_forget_asked(&c->ring);
        RP_TRY(profile_boards(c, &all));
    }
    if (all) {
        RP_TRY(rp_measure_step_wires(c->measure, &all));
    }
    if (!all) {
        return RP_OK;
    }
    rp_measure_end(c->measure);
    rp_ring_watch_boards(&c->ring, false); /* `plan` itself waits for answers to pings */
    if (c->options.purpose == RP_PURPOSE_PROFILE) {
        const rp_show_order order = {true, c->options.out, c->env.result, c->options.format};
        RP_TRY(rp_show_result(c->setup, &order));
        rp_machine_enter(&c->machine, RP_CONTROL_CLOSE);
    } else {
        rp_machine_enter(&c->machine, RP_CONTROL_PLAN);
    }
fail:
    return err;
}

/* ---- plan ------------------------------------------------------------------------------------ */

/* An open feed means a pause. Otherwise boards are to get stages: the first time, or after other
 * boards have left. A resumed run keeps the advance of its checkpoint, which may contain in-flight
 * microbatches. */
static bool chooses_advance(const rp_controller *c) {
    return rp_arrangement_wants_advance(c->setup) &&
           (rp_train_has_feed(c->train) || c->position.step == 0);
}

rp_err rp_plan_enter(rp_controller *c) {
    rp_err err = RP_OK;
    rp_measure_begin_trips(c->measure);
    RP_TRY(rp_train_has_feed(c->train) ? RP_OK : rp_arrangement_choose(c->setup));
    if (chooses_advance(c) && !c->run->emulate) {
        RP_TRY(rp_measure_ping(c->measure));
    }
fail:
    return err;
}

/* The step of the first measurement: early, because real wires show their speed only under load. */
static uint64_t choose_first_look(const rp_runfile *run) {
    const uint64_t micros = (run->batch - 1) / run->micro + 1;
    const uint64_t step = (FIRST_LOOK_MICROS + micros - 1) / micros;
    return !run->emulate && run->steps >= FIRST_LOOK_PART * step ? step : 0;
}

static void finish_bringup(rp_controller *c, const rp_advance_choice *choice) {
    if (choice) {
        rp_arrangement_take_advance(c->setup, choice);
        c->way.look_step = choose_first_look(c->run);
    }
    c->way.advance_least = choice ? 0 : c->run->method.advance;
    rp_machine_enter(&c->machine, RP_CONTROL_ASSIGN);
}

static void finish_pause(rp_controller *c, const rp_advance_choice *choice) {
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
    const bool is_pause = rp_train_has_feed(c->train);
    rp_advance_choice choice;
    bool done = false;
    rp_err err = RP_OK;
    if (!chooses_advance(c)) {
        finish_bringup(c, NULL);
        return RP_OK;
    }
    if (!c->run->emulate) {
        if (!rp_machine_all_done(&c->machine, &c->ring, c->measure)) {
            return RP_OK;
        }
        RP_TRY(rp_measure_note_trips(c->measure, is_pause ? PAUSE_TRIPS : BRINGUP_TRIPS, &done));
        if (!done) {
            return RP_OK;
        }
    }
    RP_TRY(rp_arrangement_choose_advance(c->setup, rp_train_segment_s(c->train), &choice));
    if (is_pause) {
        finish_pause(c, &choice);
    } else {
        finish_bringup(c, &choice);
    }
fail:
    return err;
}
