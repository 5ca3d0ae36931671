#include "control/controller_own.h"
#include "run/remarks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/printable.h"
#include "data/describe.h"
#include "ring/kept_out.h"
#include "setup/show.h"

/* ---- events ---------------------------------------------------------------------------------- */

void rp_controller_ask_to_stop(rp_controller *c) {
    if (c->machine.interrupts == 0) {
        rp_controller_interrupt(c);
    }
}

void rp_controller_interrupt(rp_controller *c) {
    if (++c->machine.interrupts > 1 && c->machine.state < RP_CONTROL_CLOSE) {
        rp_machine_raise(&c->machine, &c->ring,
                         rp_fail(RP_ERR_INTERRUPTED, "interrupted twice: stopped at once"),
                         RP_NO_BOARD);
    }
}

void rp_controller_child_ended(rp_controller *c) {
    if (!c->ring.spawner || c->machine.state >= RP_CONTROL_CLOSE) {
        return;
    }
    uint32_t board = RP_NO_BOARD;
    const rp_err err = rp_ring_reap(&c->ring, &board);
    rp_machine_raise(&c->machine, &c->ring, err, board);
}

/* ---- boards ---------------------------------------------------------------------------------- */

static void step_boards(rp_controller *c) {
    rp_ring *ring = &c->ring;
    const bool ping = ring->board && rp_ring_ping_is_due(ring);
    const bool is_feeding = rp_train_segment_start_ns(c->train) != 0;
    for (uint32_t k = 0; k < ring->count; k++) {
        rp_machine_raise(&c->machine, &c->ring, rp_ring_step(ring, k), k);
        if (c->machine.state < RP_CONTROL_CLOSE) {
            rp_machine_raise(&c->machine, &c->ring, rp_accept_messages(c, k), k);
        }
    }
    rp_rejoin_step(ring, rp_machine_may_grow(&c->machine), ping);
    for (uint32_t k = 0; k < ring->count && c->machine.state < RP_CONTROL_CLOSE; k++) {
        rp_machine_raise(&c->machine, &c->ring, rp_ring_watch(ring, k, ping, is_feeding), k);
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

void rp_controller_waiting_of(const rp_controller *c, rp_controller_waiting *out) {
    const rp_control_state *state = &rp_control_states[c->machine.state];
    *out = (rp_controller_waiting){.state = state->name,
                                   .what = state->waits_for,
                                   .step = c->position.step,
                                   .since_ns = c->machine.since_ns};
    const uint32_t k = rp_machine_first_undone(&c->machine, &c->ring, c->measure);
    out->board = k < c->ring.count && state->done ? c->ring.board[k].name : NULL;
}

static rp_err name_late_board(const rp_board_state *board, const char *what, int64_t within_ns) {
    return rp_fail(RP_ERR_TIMEOUT, "board %s at %s: no %s within %" PRId64 " s", board->name,
                   board->address.endpoint, what, within_ns / RP_NS_PER_S);
}

static rp_err fail_late(const rp_controller *c) {
    const rp_control_state *state = &rp_control_states[c->machine.state];
    const int64_t within_ns = c->machine.timeout_ns;
    const int64_t within_s = within_ns / RP_NS_PER_S;
    switch (state->late) {
    case RP_LATE_AGENTS:
        return rp_fail(RP_ERR_TIMEOUT, "the agents did not come up within %" PRId64 " s", within_s);
    case RP_LATE_HELD:
        return rp_keep_adoption_is_late(c->keep);
    case RP_LATE_HELLO:
        return rp_hello_late(c);
    case RP_LATE_PROFILE:
        return name_late_board(&c->ring.board[rp_measure_find_missing(c->measure)], "profile",
                               within_ns);
    case RP_LATE_LOAD:
        return rp_keep_load_is_late(c->keep);
    case RP_LATE_REPORTS:
        return rp_fail(RP_ERR_TIMEOUT, "no board has reported anything for %" PRId64 " s",
                       within_s);
    case RP_LATE_SAVE:
        return rp_keep_save_is_late(c->keep, within_ns);
    case RP_LATE_RECORDS:
        return rp_verify_late(c->train, within_ns);
    case RP_LATE_LANES:
        return rp_fail(RP_ERR_TIMEOUT,
                       "other lanes have not ended the round of step %" PRIu64 " within %" PRId64
                       " s",
                       c->position.step, within_s);
    default: {
        const uint32_t first = rp_machine_first_undone(&c->machine, &c->ring, c->measure);
        const uint32_t last = c->ring.count - 1;
        return name_late_board(&c->ring.board[first < last ? first : last], state->waits_for,
                               within_ns);
    }
    }
}

static rp_err check_waiting(rp_controller *c) {
    const rp_control_state *state = &rp_control_states[c->machine.state];
    rp_controller_waiting why;
    if (c->machine.interrupts > 0 && state->interrupted) {
        return rp_fail(RP_ERR_INTERRUPTED, "%s", state->interrupted);
    }
    if (!rp_machine_is_late(&c->machine, &c->ring)) {
        return RP_OK;
    }
    rp_controller_waiting_of(c, &why);
    rp_log_warn("controller: in state %s at step %" PRIu64 " for %.1f s, waits for %s%s%s",
                why.state, why.step, (double)(c->ring.now_ns - why.since_ns) * 1e-9, why.what,
                why.board ? " from board " : "", why.board ? why.board : "");
    return fail_late(c);
}

static void release_held(rp_control_holds what, rp_keep *keep, rp_train *train) {
    switch (what) {
    case RP_HOLDS_LOAD:
        rp_keep_abandon_load(keep);
        return;
    case RP_HOLDS_SEGMENT:
        rp_train_abandon(train);
        return;
    case RP_HOLDS_RECORDS:
        rp_verify_abandon(train);
        return;
    case RP_HOLDS_SAVE:
        rp_keep_abandon_save(keep);
        return;
    case RP_HOLDS_RESCUE: /* a second fault during the recovery; the checkpoint on disk is complete
                           */
        rp_keep_abandon_rescue(keep);
        return;
    default:
        return;
    }
}

static rp_err enter_next(rp_controller *c) {
    if (c->machine.fault.err != RP_OK && c->machine.next == RP_CONTROL_RECOVER) {
        c->machine.failed = c->machine.state;
        release_held(rp_control_states[c->machine.state].holds, c->keep, c->train);
    }
    rp_log_debug("controller: %s -> %s", rp_control_states[c->machine.state].name,
                 rp_control_states[c->machine.next].name);
    rp_machine_begin_state(&c->machine, &c->ring);
    if (c->env.on_state) {
        c->env.on_state(c->env.context, rp_control_states[c->machine.state].name);
    }
    return rp_control_states[c->machine.state].enter(c);
}

/* Steps through states until one has to wait. */
static void step_state(rp_controller *c) {
    for (;;) {
        rp_err err = RP_OK;
        if (rp_machine_is_failed(&c->machine)) {
            c->machine.next = RP_CONTROL_RECOVER;
        }
        if (c->machine.next != c->machine.state || !c->machine.entered) {
            err = enter_next(c);
        }
        if (err == RP_OK && c->machine.next == c->machine.state) {
            err = rp_control_states[c->machine.state].step(c);
        }
        if (err == RP_OK && c->machine.next == c->machine.state && c->machine.fault.err == RP_OK) {
            err = check_waiting(c);
        }
        rp_machine_raise(&c->machine, &c->ring, err, RP_NO_BOARD);
        if (c->machine.next == c->machine.state && !rp_machine_is_failed(&c->machine)) {
            return;
        }
    }
}

/* A segment or a pass is in progress. */
static bool is_feeding(const rp_machine *machine, const rp_ring *ring) {
    const rp_control_done done = rp_control_states[machine->state].done;
    return done == RP_DONE_FINISHED && machine->entered && machine->next == machine->state &&
           ring->board;
}

static void check_progress(rp_controller *c) {
    uint32_t board = RP_NO_BOARD;
    if (!is_feeding(&c->machine, &c->ring)) {
        return;
    }
    if (c->machine.state != RP_CONTROL_STATISTICS) {
        rp_machine_raise(&c->machine, &c->ring, rp_train_check_progress(c->train), RP_NO_BOARD);
    }
    const bool is_first = c->machine.fault.err == RP_OK;
    const rp_err hangs = rp_train_find_hang(c->train, &board);
    rp_machine_raise(&c->machine, &c->ring, hangs, board);
    if (hangs != RP_OK && is_first) { /* the board was heard, but made no progress */
        c->machine.fault.silent_ns = c->ring.now_ns - c->ring.progress_ns;
    }
}

int64_t rp_controller_step(rp_controller *c, int64_t now_ns) {
    rp_record *record = rp_folder_record(c->folder);
    rp_ring_begin_round(&c->ring, now_ns);
    if (c->machine.state == RP_CONTROL_ENDED) {
        return INT64_MAX;
    }
    step_boards(c);
    check_progress(c);
    rp_machine_raise(&c->machine, &c->ring, rp_twins_look(&c->ring, record, c->position.step),
                     RP_NO_BOARD);
    rp_machine_raise(&c->machine, &c->ring, rp_strangers_look(&c->ring, record, c->position.step),
                     RP_NO_BOARD);
    step_state(c);
    rp_present_look(c);
    return rp_machine_deadline_ns(&c->machine, &c->ring, c->keep);
}

bool rp_controller_has_ended(const rp_controller *c) {
    return c->machine.state == RP_CONTROL_ENDED;
}

/* ---- waiting --------------------------------------------------------------------------------- */

void rp_controller_add_waits(const rp_controller *c, rp_wait_list *list) {
    rp_waits_add_links(list, &c->ring);
    rp_waits_add_fd(list, rp_train_eventfd(c->train));
    if (c->machine.state == RP_CONTROL_ROUND) {
        rp_waits_add_fd(list, c->env.lane.kind->fd(c->env.lane.self));
    }
    rp_waits_add_fd(list, rp_ring_spawner_fd(&c->ring));
}

int64_t rp_controller_before_wait(const rp_controller *c, int64_t now_ns) {
    return rp_waits_prepare(&c->ring, now_ns);
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* The resumed run is complete: nothing is trained, scored or written. */
static bool is_complete(const rp_controller *c) {
    rp_split split;
    return c->position.step > 0 && c->position.step == rp_train_end(c->train) &&
           !rp_train_is_evaluation_due(c->train, &split) && !rp_pause_is_round(c) &&
           access(rp_folder_paths_of(c->folder)->weights, F_OK) == 0;
}

static rp_err choose_folder(rp_folder *folder, const rp_runfile *run,
                            const rp_controller_options *options) {
    const rp_err err =
        rp_folder_choose(folder, &(rp_folder_choice){.resume = options->resume,
                                                     .out = options->out,
                                                     .model = run->model_name,
                                                     .schedule = run->method.kind->name,
                                                     .temporary = options->temporary});
    return err == RP_OK && options->resume ? rp_folder_check_data(folder, run) : err;
}

static rp_err open_measure(rp_controller *c) {
    const rp_measure_needs needs = {.run = c->run,
                                    .ring = &c->ring,
                                    .clock = c->env.clock,
                                    .profiles = c->options.profiles,
                                    .only_profiles = c->options.purpose == RP_PURPOSE_PROFILE,
                                    .has_real_wires = !c->env.links};
    const rp_err err = rp_measure_open(&c->arena, &needs, &c->measure);
    rp_arrangement_use_measure(c->setup, c->measure);
    return err;
}

static rp_err open_warming(rp_controller *c) {
    return rp_warm_open(&c->arena,
                        &(rp_warm_needs){.run = c->run,
                                         .ring = &c->ring,
                                         .within_s = c->options.within_s,
                                         .progress = c->env.progress,
                                         .result = c->env.result,
                                         .as_json = c->options.format == RP_FORMAT_JSON},
                        &c->warm);
}

static rp_targets targets_of(const rp_runfile *run) {
    return run->loss_options.classes_first    ? RP_TARGETS_PIXELS
           : rp_runfile_target_rows(run) == 1 ? RP_TARGETS_SINGLE
           : rp_data_has_bits(&run->data)     ? RP_TARGETS_TEXT
                                              : RP_TARGETS_TOKENS;
}

/* Reads the bits of the parts that a run trains on or evaluates. */
static rp_err read_bits(const rp_controller *c, bool trains, rp_record_bits *out) {
    const rp_data *data = &c->run->data;
    const rp_split scored = trains ? RP_SPLIT_TEST : c->options.split;
    rp_err err;
    *out = (rp_record_bits){0};
    RP_TRY(trains ? rp_data_bits(data, RP_SPLIT_TRAIN, &out->train) : RP_OK);
    RP_TRY(trains ? rp_data_bits(data, RP_SPLIT_VALIDATION, &out->validation) : RP_OK);
    RP_TRY(rp_data_bits(data, scored, &out->eval));
fail:
    return err;
}

static rp_err open_record(rp_controller *c) {
    const rp_runfile *run = c->run;
    const rp_record_totals start = rp_train_totals(c->train);
    rp_sched_shape shape = rp_runfile_sched_shape(run, 0);
    shape.stages = run->boards; /* the record counts a board's whole part as one stage */
    shape.chunks = 1;
    const bool trains = c->options.purpose == RP_PURPOSE_TRAIN;
    rp_record_bits bits;
    const rp_err err = read_bits(c, trains, &bits);
    if (err != RP_OK) {
        return err;
    }
    const rp_record_run record = {.model = run->model_name,
                                  .schedule = run->method.kind->name,
                                  .shape = shape,
                                  .stages = run->stages,
                                  .classes = run->loss->accuracy,
                                  .targets = targets_of(run),
                                  .bits = bits,
                                  .folder = rp_folder_paths_of(c->folder)->folder,
                                  .trace_bytes = (uint64_t)run->record.trace_mib << 20,
                                  .progress = c->env.progress,
                                  .result = c->env.result,
                                  .format = c->options.format,
                                  .temporary = c->options.temporary,
                                  .eval_split = trains ? "test" : rp_split_name(c->options.split),
                                  .executor = c->options.executor,
                                  .clock = c->env.clock};
    return rp_folder_open_record(c->folder, &record, &start);
}

static rp_err prepare_run(rp_controller *c) {
    const rp_controller_options *options = &c->options;
    const bool trains = options->purpose == RP_PURPOSE_TRAIN;
    rp_err err;
    RP_TRY(rp_arrangement_read(c->setup, options->run_path, options->set, options->set_count));
    RP_TRY(c->env.links ? RP_OK : rp_ring_check_size(c->run, options->run_path));
    RP_TRY(options->plan ? RP_OK : rp_runfile_check_cut(c->run));
    RP_TRY(open_measure(c));
    if (!c->run->local) { /* missing keys are reported before anything is written */
        rp_keypair keys;
        err = rp_start_find_keys(&c->env, c->run, options->keys_folder, &keys);
        explicit_bzero(&keys, sizeof keys);
        RP_TRY(err);
    }
    if (options->purpose == RP_PURPOSE_EVALUATE) {
        RP_TRY(rp_data_check_weights(&c->run->data, options->weights));
        RP_TRY(rp_checkpoint_check(c->run, options->weights, false));
        if (c->run->data.count[options->split] == 0) {
            return rp_fail(RP_ERR_USAGE, "--split: the data set has no samples in this split");
        }
        rp_keep_load_from(c->keep, options->weights, RP_KEEP_WEIGHTS);
    }
    if (options->purpose == RP_PURPOSE_PLAN || options->purpose == RP_PURPOSE_PROFILE) {
        const bool profile = options->purpose == RP_PURPOSE_PROFILE;
        RP_TRY(rp_show_check_out(&(rp_show_order){.profile = profile, .out = options->out}));
        RP_TRY(rp_runfile_check_values(c->run)); /* as for a run that trains */
    }
    RP_TRY(options->purpose == RP_PURPOSE_WARM ? open_warming(c) : RP_OK);
    RP_TRY(rp_arrangement_read_plan(c->setup, options->executor ? options->executor : "opencl"));
    RP_TRY(options->profile ? rp_measure_read_profile(c->measure, options->profile) : RP_OK);
    if (options->purpose != RP_PURPOSE_PLAN && options->purpose != RP_PURPOSE_PROFILE) {
        RP_TRY(rp_federated_refuse(&c->run->federated, options->run_path));
    } /* else of the ring in which sites train */
    if (trains) {
        RP_TRY(rp_lanes_check_own(&c->run->lanes, options->run_path, c->env.lane.kind != NULL));
        RP_TRY(rp_freeze_check(options->run_path, c->run->model));
        RP_TRY(options->executor ? RP_OK : rp_runfile_check_values(c->run));
        if (c->run->init && !options->resume) {
            RP_TRY(rp_checkpoint_check_start(c->run));
        }
        RP_TRY(choose_folder(c->folder, c->run, options));
        RP_TRY(rp_arrangement_resume_choices(c->setup));
        RP_TRY(rp_resume_find_start(c));
        if (is_complete(c)) {
            RP_TRY(rp_train_check_result(c->train, &c->machine.reported));
            rp_print(c->env.progress, "%s: the run is finished; nothing is left to do\n",
                     rp_folder_paths_of(c->folder)->folder);
            c->machine.state = c->machine.next = RP_CONTROL_ENDED;
            return RP_OK;
        }
    }
    if (trains || options->purpose == RP_PURPOSE_EVALUATE) {
        RP_TRY(open_record(c));
    }
fail:
    return err;
}

static rp_err open_rooms(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_folder_open(&c->arena, &c->folder));
    const rp_arrangement_needs setup = {
        .ring = &c->ring,
        .folder = c->folder,
        .position = &c->position,
        .trains = c->options.purpose == RP_PURPOSE_TRAIN,
        .evaluates = c->options.purpose == RP_PURPOSE_EVALUATE,
        .profiles = c->options.purpose == RP_PURPOSE_PROFILE,
        .resume = c->options.resume,
        .plan = c->options.plan,
    };
    RP_TRY(rp_arrangement_open(&c->arena, &setup, &c->setup));
    c->run = rp_arrangement_run(c->setup);
    const rp_train_needs train = {.run = c->run,
                                  .ring = &c->ring,
                                  .folder = c->folder,
                                  .position = &c->position,
                                  .feeder = c->env.feeder};
    RP_TRY(rp_train_open(&c->arena, &train, &c->train));
    const rp_keep_needs keep = {.run = c->run,
                                .ring = &c->ring,
                                .folder = c->folder,
                                .executor = c->options.executor,
                                .resumes =
                                    c->options.purpose == RP_PURPOSE_TRAIN && c->options.resume};
    RP_TRY(rp_keep_open(&c->arena, &keep, &c->keep));
fail:
    return err;
}

rp_err rp_controller_open(const rp_controller_env *env, const rp_controller_options *options,
                          rp_controller **out) {
    rp_arena arena;
    rp_controller *c = NULL;
    rp_err err;
    rp_arena_init(&arena, "run", 0);
    err = RP_ARENA_NEW(&arena, 1, &c);
    if (err != RP_OK) {
        rp_arena_finish(&arena);
        return err;
    }
    c->env = *env;
    c->options = *options;
    c->arena = arena;
    c->machine.state = c->machine.next = RP_CONTROL_START;
    c->machine.wrong = RP_NO_BOARD;
    err = open_rooms(c);
    if (err != RP_OK) { /* nothing outside this arena is open yet */
        arena = c->arena;
        rp_arena_finish(&arena);
        return err;
    }
    err = prepare_run(c);
    if (err != RP_OK) {
        c->machine.result = err;
        c->machine.state = RP_CONTROL_ENDED;
        (void)rp_controller_close(&c);
        return err;
    }
    *out = c;
    return RP_OK;
}

rp_err rp_controller_close(rp_controller **taken) {
    rp_controller *c = *taken;
    *taken = NULL;
    if (!c) {
        return RP_OK;
    }
    const rp_err result =
        c->machine.state == RP_CONTROL_ENDED ? c->machine.result : RP_ERR_INTERRUPTED;
    if (c->machine.entered) {
        release_held(rp_control_states[c->machine.state].holds, c->keep, c->train);
    }
    if (rp_folder_record(c->folder)) {
        (void)!rp_close_record(c, "interrupted");
    }
    rp_close_rooms(c);
    rp_folder_leave(c->folder);
    rp_arrangement_close(c->setup);
    rp_arena arena = c->arena; /* a copy, because the arena contains the controller */
    rp_arena_finish(&arena);
    return result;
}

void rp_controller_crash(rp_controller **taken) {
    if (*taken) {
        rp_record_crash(rp_folder_record((*taken)->folder));
        rp_folder_unlock((*taken)->folder);
    }
    *taken = NULL;
}
