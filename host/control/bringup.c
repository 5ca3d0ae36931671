/* The ring comes up: boards start, measure the layers, and get their stages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "control/controller_own.h"
#include "planning/staleness.h"
#include "ring/building.h"
#include "ring/identity.h"
#include "ring/lines.h"
#include "run/remarks.h"

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
    RP_TRY(rp_config_text(&c->arena, c->run->model_root, &c->way.model_text));
    RP_TRY(rp_ring_check_text("the model", c->way.model_text));
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

/* ---- texts of a stage ------------------------------------------------------------------------ */

/* AGAIN when the board's link has no room. `stage`: of the cut, for the job's text. */
static rp_err offer_texts(rp_controller *c, uint32_t board, rp_Frame *frame, const rp_cut *cut,
                          uint32_t stage) {
    rp_arena arena;
    char *job;
    rp_err err;
    rp_arena_init(&arena, "assignment", 0);
    const bool assigns = rp_frame_kind(frame) == RP_KIND_ASSIGN;
    uint32_t dials[RP_PLAN_NEIGHBOURS_MAX];
    const char *keys[RP_PLAN_NEIGHBOURS_MAX];
    const uint32_t count =
        assigns ? rp_ring_dialled_by(rp_arrangement_plan(c->setup), board, dials) : 0;
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = c->ring.board[dials[i]].address.public_text;
    }
    const rp_runfile_peers peers = {c->ring.keys.public_text, keys, count, board};
    RP_TRY(rp_runfile_assignment(&arena, c->run, cut, stage, &peers, &job));
    const rp_part parts[3] = {rp_part_of_text(job), rp_part_of_text(c->way.model_text),
                              rp_part_of_text(assigns ? rp_arrangement_plan_text(c->setup) : "")};
    RP_TRY(rp_ring_offer(&c->ring, board, frame, parts, assigns ? 3 : 2));
    c->ring.board[board].machine.asked = true;
fail:
    rp_arena_finish(&arena);
    return err;
}

/* ---- profile --------------------------------------------------------------------------------- */

void rp_profile_say(const rp_controller *c, const char *text) {
    if (!rp_folder_record(c->folder) && c->env.progress) {
        rp_print(c->env.progress, "%s\n", text);
        (void)fflush(c->env.progress);
    }
    rp_record_phase(rp_folder_record(c->folder), text);
}

static rp_err ask_for_profile(rp_controller *c, uint32_t board) {
    const bool is_building = rp_measure_is_building(c->measure);
    const rp_cut whole = {.stage_count = 1,
                          .first = (const uint32_t[]){0, c->run->model->layer_count}};
    rp_Frame frame = {
        .which_body = RP_KIND_PROFILE,
        .body.profile = {.build_only = is_building, .warm_s = rp_warm_order_s(c->warm)}};
    rp_err err = RP_OK;
    if (!is_building) {
        RP_TRY(rp_measure_order(c->measure, board, &frame.body.profile));
    }
    err = offer_texts(c, board, &frame, &whole, 0);
fail:
    return err;
}

static void say_order(const rp_controller *c, uint32_t board) {
    char text[160];
    if (!rp_measure_is_building(c->measure)) {
        rp_measure_describe_order(c->measure, board, text, sizeof text);
        rp_profile_say(c, text);
    }
}

/* *all: every board that is wanted has answered. */
static rp_err profile_boards(rp_controller *c, bool *all) {
    rp_sink_part part = {.text = rp_measure_is_building(c->measure) ? BUILDING_LAYERS : MEASURING,
                         .unit = "layers"};
    rp_err err = RP_OK;
    *all = true;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        const rp_board_state *board = &c->ring.board[k];
        if (!rp_measure_wants(c->measure, k)) {
            continue;
        }
        if (!board->machine.asked && rp_measure_may_ask(c->measure, k)) {
            err = ask_for_profile(c, k);
            RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
            if (err == RP_OK) {
                say_order(c, k);
            }
        }
        part.done +=
            board->measure.profiled ? c->run->model->layer_count : board->build.now.layers_timed;
        part.total += c->run->model->layer_count;
        *all = *all && board->measure.profiled;
    }
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
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].measure.profiled = false;
    }
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
    RP_TRY(rp_controller_show(c, true));
    rp_machine_enter(&c->machine, RP_CONTROL_CLOSE);
fail:
    return err;
}

rp_err rp_profile_late(const rp_controller *c) {
    uint32_t k = 0;
    while (k + 1 < c->ring.count &&
           (!rp_measure_wants(c->measure, k) || c->ring.board[k].measure.profiled)) {
        k++;
    }
    return rp_fail(RP_ERR_TIMEOUT, "board %s at %s: no profile within %" PRId64 " s",
                   c->ring.board[k].name, c->ring.board[k].address.endpoint,
                   c->machine.timeout_ns / RP_NS_PER_S);
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
    err = err == RP_OK ? rp_memory_check_plan(c) : err;
    return err == RP_OK ? rp_keep_check_plan(c->keep, rp_arrangement_plan(c->setup)) : err;
}

/* Who leaves `microbatch` out gets one a step, which most of these schedules can not fill a ring
 * with. */
static rp_err hint_microbatch(rp_controller *c) {
    const rp_sched_kind *kind = c->run->method.kind;
    uint32_t micro;
    double busy;
    double better;
    char text[160];
    rp_err err = RP_OK;
    if (c->run->micro < c->run->batch || c->run->sizes.at ||
        !(kind->flushed || kind->accumulates)) {
        return RP_OK;
    }
    RP_TRY(rp_cost_compare_micro(c->run, &micro, &busy, &better));
    if (better > busy + 0.1) {
        (void)snprintf(text, sizeof text,
                       "one microbatch a step keeps the boards %.0f %% busy at best; "
                       "train.microbatch: %u, %.0f %%",
                       100 * busy, micro, 100 * better);
        RP_TRY(rp_record_event(rp_folder_record(c->folder), "hint", c->position.step, text));
    }
fail:
    return err;
}

static rp_err hint_staleness(rp_controller *c) {
    char text[200];
    return rp_staleness_hint(c->run, text, sizeof text)
               ? rp_record_event(rp_folder_record(c->folder), "hint", c->position.step, text)
               : RP_OK;
}

/* The run goes on from an older checkpoint than there is. */
static rp_err say_damage(rp_controller *c) {
    char text[RP_CHECKPOINT_DAMAGE + 80];
    (void)snprintf(text, sizeof text, "%s; the checkpoint of step %" PRIu64 " is used",
                   rp_keep_damage(c->keep), c->position.step);
    return rp_record_event(rp_folder_record(c->folder), "damaged", c->position.step, text);
}

/* Lanes have the same data: what is to be said of them is said once. */
static rp_err note_data(rp_controller *c) {
    const rp_notes *notes = &c->run->data.notes;
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < notes->count && c->run->lanes.own == RP_LANE_NONE && err == RP_OK;
         i++) {
        err =
            rp_record_event(rp_folder_record(c->folder), "data", c->position.step, notes->text[i]);
    }
    return err;
}

static bool is_said(const rp_notes *notes, uint32_t index) {
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(notes->text[i], notes->text[index]) == 0) {
            return true;
        }
    }
    return false;
}

/* Notes of the run, and of boards that have a part of its samples. */
static rp_err note_run(rp_controller *c) {
    rp_notes notes = {0};
    rp_arena arena;
    rp_err err;
    rp_arena_init(&arena, "notes", 0);
    RP_TRY(rp_runfile_note(&arena, c->run, &notes));
    for (uint32_t h = 0; h < rp_arrangement_plan(c->setup)->hold_count; h++) {
        const rp_plan_hold *hold = &rp_arrangement_plan(c->setup)->hold[h];
        const uint32_t *first = &rp_arrangement_plan_cut(c->setup)->first[hold->stage];
        if (hold->share[0] > 0 || hold->share[1] < 1) {
            RP_TRY(rp_runfile_check_shared_values(c->run, first[0], first[1], hold->share));
            RP_TRY(rp_runfile_note_shared(&arena, c->run, first[0], first[1], hold->share, &notes));
        }
    }
    for (uint32_t i = 0; i < notes.count; i++) {
        RP_TRY(is_said(&notes, i) ? RP_OK
                                  : rp_record_event(rp_folder_record(c->folder), "hint",
                                                    c->position.step, notes.text[i]));
    }
fail:
    rp_arena_finish(&arena);
    return err;
}

static rp_err begin_training(rp_controller *c) {
    char text[256];
    rp_err err;
    RP_TRY(rp_keep_damage(c->keep)[0] ? say_damage(c) : RP_OK);
    RP_TRY(rp_arrangement_say_codecs(c->setup));
    RP_TRY(rp_arrangement_has_advance(c->setup) ? rp_arrangement_say_advance(c->setup, 0) : RP_OK);
    rp_ring_describe_ready(&c->ring, text, sizeof text);
    rp_record_phase(rp_folder_record(c->folder), text);
    RP_TRY(hint_microbatch(c));
    RP_TRY(hint_staleness(c));
    RP_TRY(c->options.resume ? RP_OK : note_data(c));
    RP_TRY(note_run(c));
    RP_TRY(rp_controller_write_folder(c));
    RP_TRY(rp_train_open_gains(c->train, &c->arena));
fail:
    return err;
}

static rp_err offer_assignments(rp_controller *c) {
    rp_err err = RP_OK;
    uint32_t building = 0;
    for (uint32_t k = 0; k < c->ring.count && building < BUILDING_MAX; k++) {
        rp_Frame frame = {
            .which_body = RP_KIND_ASSIGN,
            .body.assign = {.wire = c->ring.wire.max,
                            .features = c->ring.features,
                            .node = k,
                            .warm_s = rp_warm_order_s(c->warm),
                            .orphan_s = c->run->safety.orphan_s,
                            .meet_s = (uint32_t)(rp_ring_patience_ns(c->run) / RP_NS_PER_S)}};
        const rp_board_state *board = &c->ring.board[k];
        if (!board->machine.asked) {
            err = offer_texts(c, k, &frame, rp_arrangement_plan_cut(c->setup),
                              rp_arrangement_first_stage(c->setup, k));
            RP_TRY(err == RP_ERR_AGAIN ? RP_OK : err);
        }
        building += board->machine.asked && !board->ready;
    }
    err = RP_OK;
fail:
    return err;
}

rp_err rp_assign_step(rp_controller *c) {
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
        RP_TRY(rp_controller_show(c, false));
        rp_machine_enter(&c->machine, RP_CONTROL_CLOSE);
        return RP_OK;
    }
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        RP_TRY(c->machine.begun ? rp_machine_disk_fault(&c->machine, rp_controller_write_folder(c))
                                : begin_training(c));
    }
    rp_machine_enter(&c->machine, RP_CONTROL_LOAD);
fail:
    return err;
}
