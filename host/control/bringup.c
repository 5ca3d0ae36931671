/* The ring comes up: boards start, measure the layers, and get their stages. */
#include <inttypes.h>
#include <stdio.h>

#include "base/printable.h"
#include "control/controller_own.h"
#include "ring/building.h"
#include "ring/lines.h"
#include "setup/assignment.h"

/* Boards that build at a time: the texts of all others are not held in their links meanwhile. */
enum { BUILDING_MAX = RP_RING_BOARDS_MAX };

static const char BUILDING_LAYERS[] = "building the layers' kernels";
static const char MEASURING[] = "measuring every layer";
static const char BUILDING[] = "building kernels and planning memory on every board";

/* ---- start ----------------------------------------------------------------------------------- */

rp_err rp_start_find_keys(const rp_controller *c, rp_keypair *out) {
    if (c->env.keys) {
        *out = *c->env.keys;
        return RP_OK;
    }
    return c->run->local ? rp_keys_make(out)
                         : rp_runfile_read_keys(c->run, c->options.keys_folder, out);
}

static rp_spawn_order spawn_order(const rp_controller *c) {
    return (rp_spawn_order){.count = c->run->boards,
                            .board = c->run->board,
                            .threads = c->run->threads,
                            .board_threads = c->run->board_threads,
                            .log_folder = rp_folder_paths_of(c->folder)->folder,
                            .host_public = c->ring.keys.public_text,
                            .media = c->env.media ? rp_media_fd(c->env.media) : -1};
}

/* "desk: runs/first" */
static rp_err write_origin(rp_controller *c, char **out) {
    const char *folder = c->options.temporary ? NULL : rp_folder_paths_of(c->folder)->folder;
    *out = NULL;
    return c->env.origin ? rp_arena_printf(&c->arena, out, "%s%s%s", c->env.origin,
                                           folder ? ": " : "", folder ? folder : "")
                         : RP_OK;
}

rp_err rp_start_enter(rp_controller *c) {
    const rp_spawn_order order = spawn_order(c);
    rp_keypair keys;
    char *origin;
    rp_err err;
    rp_record_phase(rp_folder_record(c->folder),
                    c->run->local ? "starting the agents" : "reaching the boards");
    RP_TRY(write_origin(c, &origin));
    const rp_ring_needs needs = {c->run, c->env.clock, c->env.media, origin};
    RP_TRY(rp_ring_open(&c->arena, &needs, &c->ring));
    RP_TRY(rp_machine_begin_term(&c->machine, &c->ring, c->folder, c->env.run_id));
    RP_TRY(rp_start_find_keys(c, &keys));
    rp_ring_take_keys(&c->ring, &keys);
    RP_TRY(rp_arrangement_write_model(c->setup));
    if (!c->run->local) {
        return RP_OK;
    }
    if (!c->env.spawner.kind) {
        return rp_fail(RP_ERR_USAGE,
                       "ring: this program can not start boards on this machine; give a roster");
    }
    RP_TRY(rp_ring_spawn(&c->ring, &c->env.spawner, &order));
fail:
    return err;
}

rp_err rp_restart_enter(rp_controller *c) {
    const rp_spawn_order order = spawn_order(c);
    return rp_ring_respawn(&c->ring, &order);
}

rp_err rp_start_step(rp_controller *c) {
    rp_err err;
    if (c->machine.state == RP_CONTROL_RESTART && c->ring.now_ns < c->recovery.not_before_ns) {
        return RP_OK;
    }
    RP_TRY(rp_ring_step_spawned(&c->ring));
    if (!c->ring.boards_up) {
        return RP_OK;
    }
    RP_TRY(rp_ring_connect(&c->ring, c->env.links, rp_controller_is_return(c)));
    if (rp_keep_hopes_for_boards(c->keep) && !rp_adopt_is_due(c)) {
        RP_TRY(
            rp_fail(RP_ERR_FORMAT, "%s; no checkpoint before it is used", rp_keep_damage(c->keep)));
    }
    rp_machine_enter(&c->machine, rp_adopt_is_due(c) ? RP_CONTROL_ADOPT : RP_CONTROL_HELLO);
fail:
    return err;
}

rp_err rp_start_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT, "the agents did not come up within %" PRId64 " s",
                   c->machine.timeout_ns / RP_NS_PER_S);
}

/* ---- profile --------------------------------------------------------------------------------- */

void rp_profile_say(const rp_controller *c, const char *text) {
    if (!rp_folder_record(c->folder) && c->env.progress) {
        rp_print(c->env.progress, "%s\n", text);
        (void)fflush(c->env.progress);
    }
    rp_record_phase(rp_folder_record(c->folder), text);
}

/* AGAIN when the board's link has no room. */
static rp_err ask_for_profile(rp_controller *c, uint32_t board) {
    rp_board_order order;
    char text[160];
    rp_err err;
    RP_TRY(rp_board_order_profile(c->setup, board, rp_warm_order_s(c->warm), &order));
    RP_TRY(rp_ring_offer(&c->ring, board, &order.frame, order.part, order.part_count));
    c->ring.board[board].machine.asked = true;
    if (!rp_measure_is_building(c->measure)) {
        rp_measure_describe_order(c->measure, board, text, sizeof text);
        rp_profile_say(c, text);
    }
fail:
    rp_board_order_finish(&order);
    return err;
}

/* *all: every board that is wanted has answered. */
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

/* `boards warm`: boards build until a deadline. */
static void limit_warming(rp_controller *c) {
    const int64_t limit_ns = rp_warm_begin_ns(c->warm);
    c->machine.timeout_ns = limit_ns > 0 ? limit_ns : c->machine.timeout_ns;
}

static void begin_measuring(rp_controller *c) {
    rp_measure_end_building(c->measure);
    rp_machine_forget_asked(&c->ring);
}

rp_err rp_profile_enter(rp_controller *c) {
    rp_err err;
    limit_warming(c);
    RP_TRY(rp_measure_begin(c->measure, c->ring.spawner ? c->ring.spawner->cores : 0));
    /* Boards answer while they measure; one that restarts never will. */
    rp_ring_watch_boards(&c->ring, true);
    rp_machine_forget_asked(&c->ring);
    if (rp_measure_is_building(c->measure)) {
        rp_record_phase(rp_folder_record(c->folder), BUILDING_LAYERS);
    } else {
        begin_measuring(c);
    }
fail:
    return err;
}

rp_err rp_profile_step(rp_controller *c) {
    bool all;
    rp_err err;
    RP_TRY(profile_boards(c, &all));
    if (all && rp_measure_is_building(c->measure)) { /* the kernels are there */
        begin_measuring(c);
        RP_TRY(profile_boards(c, &all));
    }
    if (all) {
        RP_TRY(rp_measure_step_wires(c->measure, &all));
    }
    if (!all) {
        return RP_OK;
    }
    rp_measure_end(c->measure);
    rp_ring_watch_boards(&c->ring, false); /* `plan` waits for answers to pings itself */
    if (c->options.purpose != RP_PURPOSE_PROFILE) {
        rp_machine_enter(&c->machine, RP_CONTROL_PLAN);
        return RP_OK;
    }
    const rp_run_view view = rp_controller_view(c);
    RP_TRY(rp_show_result(&view, true));
    rp_machine_enter(&c->machine, RP_CONTROL_CLOSE);
fail:
    return err;
}

rp_err rp_profile_late(const rp_controller *c) {
    const rp_board_state *board = &c->ring.board[rp_measure_find_missing(c->measure)];
    return rp_fail(RP_ERR_TIMEOUT, "board %s at %s: no profile within %" PRId64 " s", board->name,
                   board->address.endpoint, c->machine.timeout_ns / RP_NS_PER_S);
}

/* ---- assign ---------------------------------------------------------------------------------- */

rp_err rp_controller_assign_again(rp_controller *c) {
    rp_err err;
    rp_ring_end_assignment(&c->ring);
    RP_TRY(rp_machine_begin_term(&c->machine, &c->ring, c->folder, c->env.run_id));
    c->way.reassigning = true;
    rp_machine_enter(&c->machine, RP_CONTROL_HELLO);
fail:
    return err;
}

rp_err rp_assign_enter(rp_controller *c) {
    rp_drift_note_assign(c->measure);
    if (c->recovery.is_on) {
        c->recovery.assign_ns = c->ring.now_ns;
    }
    if (c->way.reassigning) {
        c->machine.timeout_ns = rp_ring_build_limit_ns(&c->ring);
    } else {
        rp_record_phase(rp_folder_record(c->folder), BUILDING);
    }
    limit_warming(c);
    /* Boards answer while they build; one that restarts never will. */
    rp_ring_watch_boards(&c->ring, true);
    rp_machine_forget_asked(&c->ring);
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].machine.asked = rp_warm_rests(c->warm, k);
        rp_ring_expect_ready(&c->ring, k, !rp_warm_rests(c->warm, k));
    }
    rp_transfers_forget(rp_folder_transfers(c->folder));
    rp_keep_forget_copies(c->keep);
    rp_arrangement_set_lines(c->setup, rp_ring_lines_age_s(&c->ring));
    rp_err err = rp_arrangement_make_plan(c->setup);
    err = err == RP_OK ? rp_train_open_plan(c->train, rp_arrangement_plan(c->setup)) : err;
    err = err == RP_OK && !c->way.reassigning ? rp_arrangement_check_memory(c->setup) : err;
    return err == RP_OK ? rp_keep_check_plan(c->keep, rp_arrangement_plan(c->setup)) : err;
}

static rp_err begin_training(rp_controller *c) {
    const rp_run_view view = rp_controller_view(c);
    char text[256];
    rp_err err;
    RP_TRY(rp_keep_say_damage(c->keep, c->position.step));
    RP_TRY(rp_arrangement_say_codecs(c->setup));
    RP_TRY(rp_arrangement_has_advance(c->setup) ? rp_arrangement_say_advance(c->setup, 0) : RP_OK);
    rp_ring_describe_ready(&c->ring, text, sizeof text);
    rp_record_phase(rp_folder_record(c->folder), text);
    RP_TRY(rp_arrangement_remark(c->setup));
    RP_TRY(rp_show_write_folder(&view));
    RP_TRY(rp_train_open_gains(c->train, &c->arena));
fail:
    return err;
}

/* AGAIN when the board's link has no room. */
static rp_err offer_assignment(rp_controller *c, uint32_t board) {
    rp_board_order order;
    rp_err err;
    RP_TRY(rp_board_order_assign(c->setup, board, rp_warm_order_s(c->warm), &order));
    RP_TRY(rp_ring_offer(&c->ring, board, &order.frame, order.part, order.part_count));
    c->ring.board[board].machine.asked = true;
fail:
    rp_board_order_finish(&order);
    return err;
}

static rp_err offer_assignments(rp_controller *c) {
    rp_err err = RP_OK;
    uint32_t building = 0;
    for (uint32_t k = 0; k < c->ring.count && building < BUILDING_MAX; k++) {
        const rp_board_state *board = &c->ring.board[k];
        if (!board->machine.asked) {
            err = offer_assignment(c, k);
            RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
        }
        building += board->machine.asked && !board->ready;
    }
    err = RP_OK;
fail:
    return err;
}

rp_err rp_assign_step(rp_controller *c) {
    const rp_run_view view = rp_controller_view(c);
    rp_sink_part part;
    rp_err err;
    RP_TRY(offer_assignments(c));
    if (!rp_machine_all_done(&c->machine, &c->ring, c->measure)) {
        rp_ring_tell_building(&c->ring, BUILDING, &part);
        rp_record_part(c->way.reassigning ? NULL : rp_folder_record(c->folder), &part);
        rp_warm_say(c->warm);
        return RP_OK;
    }
    RP_TRY(rp_keep_check_memory(c->keep, rp_arrangement_plan(c->setup)));
    if (c->options.purpose == RP_PURPOSE_WARM) { /* the boards have no links to each other */
        return rp_warming_go_on(c);
    }
    RP_TRY(rp_ring_connect_boards(&c->ring, rp_arrangement_plan(c->setup)));
    if (c->options.purpose == RP_PURPOSE_PLAN) {
        RP_TRY(rp_show_result(&view, false));
        rp_machine_enter(&c->machine, RP_CONTROL_CLOSE);
        return RP_OK;
    }
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        RP_TRY(c->machine.begun ? rp_machine_disk_fault(&c->machine, rp_show_write_folder(&view))
                                : begin_training(c));
    }
    rp_machine_enter(&c->machine, RP_CONTROL_LOAD);
fail:
    return err;
}
