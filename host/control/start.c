/* The states `start`, `restart` and `hello`: boards start and are greeted until all have answered
 * or their time is over. */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"
#include "control/next_state.h"
#include "ring/greeting.h"
#include "ring/missing.h"
#include "setup/assignment.h"

/* The run had these boards before: in a recovery, after a pause, or before it was resumed. */
static bool is_return(const rp_controller *c) {
    return c->recovery.is_on ||
           (c->run->safety.wait_s > 0 && rp_machine_had_boards(&c->machine, c->position.step));
}

/* ---- start, restart -------------------------------------------------------------------------- */

rp_err rp_start_find_keys(const rp_controller_env *env, const rp_runfile *run,
                          const char *keys_folder, rp_keypair *out) {
    if (env->keys) {
        *out = *env->keys;
        return RP_OK;
    }
    return run->local ? rp_keys_make(out) : rp_runfile_read_keys(run, keys_folder, out);
}

/* "desk: runs/first" */
static rp_err write_origin(rp_arena *arena, const char *machine, const char *folder, char **out) {
    *out = NULL;
    return machine ? rp_arena_printf(arena, out, "%s%s%s", machine, folder ? ": " : "",
                                     folder ? folder : "")
                   : RP_OK;
}

rp_err rp_start_enter(rp_controller *c) {
    const char *folder = c->options.temporary ? NULL : rp_folder_paths_of(c->folder)->folder;
    rp_keypair keys;
    char *origin;
    rp_err err;
    rp_record_phase(rp_folder_record(c->folder),
                    c->run->local ? "starting the agents" : "reaching the boards");
    RP_TRY(write_origin(&c->arena, c->env.origin, folder, &origin));
    const rp_ring_needs needs = {c->run, c->env.clock, c->env.media, origin};
    RP_TRY(rp_ring_open(&c->arena, &needs, &c->ring));
    RP_TRY(rp_machine_begin_term(&c->machine, &c->ring, c->folder, c->env.run_id));
    RP_TRY(rp_start_find_keys(&c->env, c->run, c->options.keys_folder, &keys));
    rp_ring_take_keys(&c->ring, &keys);
    RP_TRY(rp_arrangement_write_model(c->setup));
    if (!c->run->local) {
        return RP_OK;
    }
    if (!c->env.spawner.kind) {
        return rp_fail(RP_ERR_USAGE,
                       "ring: this program cannot start boards on this machine; give a roster");
    }
    RP_TRY(rp_ring_spawn(&c->ring, &c->env.spawner, rp_folder_paths_of(c->folder)->folder));
fail:
    return err;
}

rp_err rp_restart_enter(rp_controller *c) {
    return rp_ring_respawn(&c->ring, rp_folder_paths_of(c->folder)->folder);
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
    RP_TRY(rp_ring_connect(&c->ring, c->env.links, is_return(c)));
    const bool adopts = rp_keep_adoption_is_due(c->keep, rp_arrangement_is_fixed(c->setup));
    if (rp_keep_hopes_for_boards(c->keep) && !adopts) {
        RP_TRY(
            rp_fail(RP_ERR_FORMAT, "%s; no checkpoint before it is used", rp_keep_damage(c->keep)));
    }
    rp_machine_enter(&c->machine, adopts ? RP_CONTROL_ADOPT : RP_CONTROL_HELLO);
fail:
    return err;
}

/* ---- hello ----------------------------------------------------------------------------------- */

static int64_t longest_greeting_ns(const rp_controller *c) {
    const int64_t warm_ns = rp_warm_patience_ns(c->warm);
    return warm_ns > 0    ? warm_ns
           : is_return(c) ? c->run->safety.wait_s * RP_NS_PER_S
                          : rp_ring_patience_ns(c->run);
}

static int64_t spare_wait_ns(const rp_runfile *run, int64_t longest_ns) {
    const int64_t wait_ns = (int64_t)(run->safety.spare_wait_s * (double)RP_NS_PER_S);
    return wait_ns < longest_ns ? wait_ns : longest_ns;
}

static rp_missing find_missing(const rp_controller *c) {
    return (rp_missing){.find_cause = c->env.find_cause,
                        .find_self = c->env.find_self,
                        .run = c->run,
                        .ring = &c->ring,
                        .spares = rp_recovery_spares(&c->recovery, c->run),
                        .is_return = is_return(c),
                        .warms = c->options.purpose == RP_PURPOSE_WARM};
}

/* A local agent that ended has lost its state; as a new agent it can serve as a spare. */
static bool spares_may_come_in(const rp_controller *c) {
    const rp_lost_boards lost = rp_recovery_lost(&c->recovery, &c->machine, c->run, c->ring.now_ns);
    const uint32_t absent = rp_lost_count(&lost, &c->ring);
    return is_return(c) && !rp_arrangement_is_fixed(c->setup) && absent > 0 &&
           rp_ring_count_ended(&c->ring) == absent &&
           absent <= rp_recovery_spares(&c->recovery, c->run);
}

rp_err rp_hello_late(const rp_controller *c) {
    const int64_t waited_ns = longest_greeting_ns(c);
    const rp_missing missing = find_missing(c);
    const uint32_t k = rp_missing_first(&missing, rp_ring_find_missing(&c->ring));
    const rp_board_state *board = &c->ring.board[k];
    if (spares_may_come_in(c)) {
        return rp_fail(RP_ERR_TIMEOUT,
                       "board %s at %s: its agent has ended and was not back within %g s "
                       "(ring.spare_wait)",
                       board->name, board->address.endpoint,
                       (double)spare_wait_ns(c->run, waited_ns) * 1e-9);
    }
    return rp_missing_fail(&missing, k, waited_ns);
}

/* A HELLO ends the board's current work; its answer confirms that. */
rp_err rp_hello_enter(rp_controller *c) {
    const rp_Frame greeting = rp_greet_hello(c->ring.now_ns, c->ring.origin);
    rp_err err = RP_OK;
    rp_keep_ask_for_holders(c->keep, rp_arrangement_plan(c->setup));
    rp_ring_begin_greeting(&c->ring, is_return(c));
    const int64_t longest_ns = longest_greeting_ns(c);
    c->machine.timeout_ns = rp_ring_greeting_left_ns(&c->ring, longest_ns, longest_ns,
                                                     c->machine.since_ns, c->ring.now_ns);
    rp_ring_watch_boards(&c->ring,
                         c->run->safety.wait_s > 0); /* a board that is lost now is greeted again */
    for (uint32_t k = 0; k < c->ring.count && err == RP_OK; k++) {
        rp_ring_expect_hello(&c->ring, k, !rp_warm_rests(c->warm, k));
        err = c->ring.board[k].hello ? RP_OK : rp_ring_post(&c->ring, k, &greeting, NULL);
    }
    return err;
}

/* Some boards have not answered yet. */
static rp_err keep_waiting(rp_controller *c) {
    const int64_t longest_ns = longest_greeting_ns(c);
    const rp_missing missing = find_missing(c);
    rp_missing_say(&missing, &c->ring, longest_ns);
    if (rp_missing_ends_wait(&missing)) {
        return rp_hello_late(c);
    }
    const int64_t within_ns =
        spares_may_come_in(c) ? spare_wait_ns(c->run, longest_ns) : longest_ns;
    c->machine.timeout_ns = rp_ring_greeting_left_ns(&c->ring, longest_ns, within_ns,
                                                     c->machine.since_ns, c->ring.progress_ns);
    if (c->run->safety.wait_s > 0 &&
        c->ring.now_ns - c->machine.since_ns > rp_ring_greet_ns(longest_ns)) {
        rp_ring_greet_again(&c->ring);
        rp_machine_enter(&c->machine, RP_CONTROL_RESTART);
    }
    return RP_OK;
}

rp_err rp_hello_step(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_ring_report_refusals(&c->ring, rp_folder_record(c->folder), c->position.step));
    if (!rp_machine_all_done(&c->machine, &c->ring, c->measure)) {
        return keep_waiting(c);
    }
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (!rp_warm_rests(c->warm, k)) { /* resting boards were not greeted */
            rp_link_set_wire(c->ring.board[k].control, c->ring.wire.max);
        }
    }
    rp_ring_end_greeting(&c->ring);
    RP_TRY(rp_keep_wants_copies(c->keep) || c->way.reassigning
               ? RP_OK
               : rp_arrangement_check_least_memory(c->setup));
    rp_hello_leave(c);
fail:
    return err;
}

/* If copies are wanted, boards stay watched, because RESCUE waits for what they send. */
void rp_hello_leave(rp_controller *c) {
    const rp_next_greeted facts = {
        .copies_wanted = rp_keep_wants_copies(c->keep),
        .keeps_cut = c->way.reassigning && rp_arrangement_has_cut(c->setup),
        .lacks_profile =
            rp_arrangement_needs_profile(c->setup) && !rp_measure_has_profile(c->measure),
    };
    if (!facts.copies_wanted) { /* `plan` itself waits for answers to pings */
        rp_ring_watch_boards(&c->ring, false);
    }
    rp_machine_enter(&c->machine, rp_next_after_hello(&facts));
}
