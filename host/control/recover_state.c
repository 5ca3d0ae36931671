/* clang-format off */
/* The state `recover`: carries out what fault_remedy.c decides about a fault.
 *
 *   transient  the run goes back to its newest checkpoint: recover -> restart
 *   board      the same, once the board is back: it has ring.wait seconds to answer and to get its
 *              ports; then a spare takes its place, or the model is cut for the remaining boards
 *   user       the run stops: the input is invalid, or the user interrupted it
 *   security   the run stops; but a board that was in the ring and now refuses the handshake counts
 *              as absent
 *   fatal      the run stops; it can be resumed
 *
 * The run also stops at a fault that a retry would meet again: a protocol error, too little memory
 * from the start, a board that did not come back in time, or too many recoveries without a new
 * checkpoint (the pauses between them grow). If a board lacks memory for the advance of `advance:
 * auto`, the advance is reduced: recover -> hello.
 *
 * `boards warm` waits for a lost board until its deadline; a fault of a spare removes that spare.
 *
 * Without a fault: lost boards have come back, and rejoin the ring: recover -> restart. */
/* clang-format on */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"
#include "control/next_state.h"
#include "control/stopping.h"
#include "ring/identity.h"
#include "setup/membership.h"

/* ---- stopping -------------------------------------------------------------------------------- */

static void end_run(rp_machine *machine, const rp_ring *ring, rp_record *record, uint64_t step,
                    rp_err err) {
    rp_stopping_log(machine, ring, record, step);
    machine->result = rp_fault_result(err, machine->begun);
    rp_machine_enter(machine, RP_CONTROL_CLOSE);
}

static void stop_run(rp_controller *c) {
    end_run(&c->machine, &c->ring, rp_folder_record(c->folder), c->position.step,
            c->machine.fault.err);
    rp_stopping_note_why(&c->machine, &c->recovery, c->position.step);
}

/* Carrying out the remedy failed with `err`. */
static void stop_after_failed_remedy(rp_controller *c, rp_err err) {
    char why[RP_ERR_MESSAGE_BYTES]; /* a copy, because logging may overwrite the message */
    (void)snprintf(why, sizeof why, "%s", rp_err_message());
    if (c->machine.fault.err == RP_OK) { /* no fault: boards were rejoining */
        c->machine.fault =
            (rp_controller_fault){.err = err, .fault_class = RP_FAULT_FATAL, .board = RP_NO_BOARD};
        (void)snprintf(c->machine.fault.text, sizeof c->machine.fault.text, "%.500s", why);
        stop_run(c);
        return;
    }
    end_run(&c->machine, &c->ring, rp_folder_record(c->folder), c->position.step, err);
    rp_stopping_note_failed(&c->machine, why);
}

/* ---- fewer in flight ------------------------------------------------------------------------- */

static rp_err lessen_advance(rp_controller *c) {
    const rp_run_event event = {.kind = RP_EVENT_ADVANCE_LESS,
                                .step = c->position.step,
                                .advance = c->run->method.advance,
                                .error = c->machine.fault.text};
    rp_record *record = rp_folder_record(c->folder);
    rp_err err;
    rp_arrangement_reduce_advance(c->setup);
    RP_TRY(record ? rp_record_event(record, &event) : RP_OK);
    rp_machine_forget_fault(&c->machine);
    RP_TRY(rp_assign_again(c));
fail:
    return err;
}

/* ---- going back ------------------------------------------------------------------------------ */

static rp_err begin_way_back(rp_controller *c) {
    rp_run_event event = rp_stopping_fault(RP_EVENT_FAULT, &c->machine, &c->ring);
    rp_err err;
    RP_TRY(rp_resume_begin_way_back(c, c->position.step));
    event.step = c->position.step;
    event.from_step = c->recovery.step;
    event.wait_s = c->run->safety.wait_s;
    RP_TRY(rp_record_event(rp_folder_record(c->folder), &event));
fail:
    return err;
}

static rp_err go_back(rp_controller *c) {
    rp_err err;
    RP_TRY(begin_way_back(c));
    if (rp_remedy_lacks_port(c->machine.fault.err, c->machine.failed,
                             c->machine.fault.board != RP_NO_BOARD)) {
        rp_recovery_wait_for_port(&c->recovery, c->run->safety.wait_s * RP_NS_PER_S,
                                  c->ring.now_ns);
    }
    rp_machine_forget_fault(&c->machine);
    rp_ring_end_greeting(&c->ring); /* the greeting time starts now */
    rp_machine_enter(&c->machine, RP_CONTROL_RESTART);
fail:
    return err;
}

/* ---- boards that have not come, or have come back -------------------------------------------- */

/* For absent boards and missing ports a recovery has already begun; for a board that computes wrong
 * it begins here. */
static rp_err begin_removal(rp_controller *c) {
    if (c->machine.wrong == RP_NO_BOARD) {
        return RP_OK;
    }
    c->machine.fault.board = c->machine.wrong;
    return begin_way_back(c);
}

/* The board that computed wrong has left the ring. */
static void forget_wrong(rp_machine *machine, rp_recovery *recovery, rp_arrangement *setup) {
    if (machine->wrong != RP_NO_BOARD) {
        rp_membership_forget_wrong(setup, &recovery->spares_tried);
        machine->wrong = RP_NO_BOARD;
    }
}

/* The greeting time starts now for all boards, also for those that answered and had to wait. */
static void greet_all(rp_machine *machine, rp_recovery *recovery, rp_ring *ring) {
    rp_ring_end_greeting(ring);
    recovery->on_the_way = 0; /* the ring has changed */
    rp_machine_forget_fault(machine);
    rp_machine_enter(machine, RP_CONTROL_RESTART);
}

static rp_err take_spares(rp_controller *c) {
    rp_err err;
    RP_TRY(begin_removal(c));
    const rp_lost_boards lost = rp_recovery_lost(&c->recovery, &c->machine, c->run, c->ring.now_ns);
    c->recovery.hurried += rp_ring_count_ended(&c->ring);
    RP_TRY(rp_membership_take_spares(c->setup, &lost, &c->recovery.spares_tried));
    forget_wrong(&c->machine, &c->recovery, c->setup);
    rp_ring_reset(&c->ring, RP_NO_BOARD);
    greet_all(&c->machine, &c->recovery, &c->ring);
fail:
    return err;
}

/* Cuts the model for the boards that the ring has now. */
static rp_err cut_again(rp_controller *c) {
    rp_err err;
    RP_TRY(rp_membership_count_stages(c->setup));
    rp_record_take_boards(rp_folder_record(c->folder), c->run->boards, c->run->stages);
    c->machine.fault.board = RP_NO_BOARD; /* its number may now mean another board */
    RP_TRY(rp_resume_go_back(c));
fail:
    return err;
}

static rp_err remove_lost(rp_controller *c) {
    rp_membership_left left;
    rp_err err;
    RP_TRY(begin_removal(c));
    const rp_lost_boards lost = rp_recovery_lost(&c->recovery, &c->machine, c->run, c->ring.now_ns);
    RP_TRY(rp_membership_remove_lost(c->setup, &lost, &c->recovery.spares_tried, &left));
    RP_TRY(cut_again(c));
    RP_TRY(rp_membership_log_left(c->setup, &left));
    forget_wrong(&c->machine, &c->recovery, c->setup);
    greet_all(&c->machine, &c->recovery, &c->ring);
fail:
    return err;
}

/* The newest checkpoint is of this step, so no step is repeated. */
static rp_err rejoin_boards(rp_controller *c) {
    rp_err err;
    RP_TRY(cut_again(c));
    RP_TRY(rp_membership_log_joined(c->setup, c->machine.joined));
    if (c->env.on_joined) {
        c->env.on_joined(c->env.context);
    }
    c->machine.joined[0] = '\0';
    greet_all(&c->machine, &c->recovery, &c->ring);
fail:
    return err;
}

/* ---- the remedy ------------------------------------------------------------------------------ */

static rp_remedy_facts facts_of(const rp_controller *c) {
    const rp_lost_boards lost = rp_recovery_lost(&c->recovery, &c->machine, c->run, c->ring.now_ns);
    const uint32_t absent = rp_lost_count(&lost, &c->ring);
    const uint32_t spares = rp_recovery_spares(&c->recovery, c->run);
    const rp_method *method = &c->run->method;
    return (rp_remedy_facts){
        .err = c->machine.fault.err,
        .fault_class = c->machine.fault.fault_class,
        .failed = c->machine.failed,
        .of_board = c->machine.fault.board != RP_NO_BOARD,
        .trains = c->options.purpose == RP_PURPOSE_TRAIN,
        .begun = c->machine.begun,
        .had_boards = rp_machine_had_boards(&c->machine, c->position.step),
        .interrupted = c->machine.interrupts > 0,
        .waits = c->run->safety.wait_s > 0,
        .has_boards = c->ring.board != NULL,
        .can_lessen = method->advance_auto && method->advance > c->way.advance_least,
        .places_stay = rp_arrangement_is_fixed(c->setup),
        .may_shrink =
            !rp_membership_why_fixed(c->setup, rp_membership_count_left(c->run, absent, spares)),
        .boards = c->ring.count,
        .absent = absent,
        .is_wrong = c->machine.wrong != RP_NO_BOARD,
        .at_least = c->run->safety.at_least,
        .spares = spares,
        .in_a_row = rp_recovery_ways_before(&c->recovery),
        .on_the_way = c->recovery.is_on ? c->recovery.on_the_way : 0,
        .had_time = rp_recovery_had_time_for_port(&c->recovery, c->run->safety.wait_s * RP_NS_PER_S,
                                                  c->ring.now_ns),
    };
}

static rp_err apply_remedy(rp_controller *c) {
    rp_remedy_facts facts = facts_of(c);
    rp_remedy remedy = rp_remedy_choose(&facts);
    rp_err err = RP_OK;
    if (remedy == RP_REMEDY_STOP && facts.absent > 0 && rp_recovery_try_again(&c->recovery)) {
        facts = facts_of(c);
        remedy = rp_remedy_choose(&facts);
    }
    if (c->env.on_remedy) {
        c->env.on_remedy(c->env.context, rp_control_states[c->machine.failed].name,
                         rp_remedy_name(remedy));
    }
    switch (remedy) {
    case RP_REMEDY_LESS:
        err = lessen_advance(c);
        break;
    case RP_REMEDY_SPARES:
        err = take_spares(c);
        break;
    case RP_REMEDY_FEWER:
        err = remove_lost(c);
        break;
    case RP_REMEDY_BACK:
        err = go_back(c);
        break;
    case RP_REMEDY_GIVE_UP:
        stop_run(c);
        rp_stopping_note_not_back(&c->machine, &facts);
        break;
    default:
        stop_run(c);
        if (!c->run->local) {
            const uint32_t left = rp_membership_count_left(c->run, facts.absent, facts.spares);
            const char *stay = rp_membership_why_fixed(c->setup, left);
            rp_stopping_note_not_fewer(&c->machine, &facts, stay);
        }
    }
    return err;
}

/* ---- a ring that was adopted ----------------------------------------------------------------- */

/* Continues from the checkpoint made by the adoption, or from the one before if that failed. */
static rp_err leave_adoption(rp_controller *c) {
    const bool failed = c->machine.fault.err != RP_OK;
    const rp_run_event why = {.kind = RP_EVENT_HELD_ERROR, .error = c->machine.fault.text};
    rp_err err;
    RP_TRY(rp_identity_check(rp_folder_paths_of(c->folder)->folder, &c->ring.identity));
    rp_arrangement_drop_plan(c->setup);
    RP_TRY(rp_keep_end_adoption(c->keep, failed ? &why : NULL, c->position.step));
    rp_ring_reset(&c->ring, failed ? c->machine.fault.board : RP_NO_BOARD);
    rp_keep_note_unsaved(c->keep, false);
    c->position = (rp_position){0};
    RP_TRY(rp_resume_find_start(c));
    RP_TRY(rp_train_rewind_record(c->train));
    RP_TRY(rp_machine_begin_term(&c->machine, &c->ring, c->folder, c->env.run_id));
    rp_machine_forget_fault(&c->machine);
    rp_machine_enter(&c->machine, RP_CONTROL_RESTART);
fail:
    return err;
}

/* A fault of the host or its files would also occur without the adoption. */
static bool leaves_adoption(const rp_machine *machine, const rp_keep *keep) {
    const rp_FaultClass fault_class = machine->fault.fault_class;
    const bool may_be_left = machine->interrupts == 0 && fault_class != RP_FAULT_SECURITY &&
                             fault_class != RP_FAULT_USER;
    return rp_keep_is_adopting(keep) && (machine->fault.err == RP_OK || may_be_left);
}

/* ---- the state ------------------------------------------------------------------------------- */

/* Every recovery writes to the run folder. */
static bool waits_for_disk(const rp_machine *machine, rp_keep *keep) {
    const bool goes_on = machine->fault.err == RP_OK ||
                         machine->fault.fault_class == RP_FAULT_TRANSIENT ||
                         machine->fault.fault_class == RP_FAULT_BOARD;
    return goes_on && machine->begun && machine->interrupts == 0 &&
           (rp_keep_disk_rests(keep) || !rp_keep_disk_is_writable(keep));
}

static rp_err carry_out(rp_controller *c, rp_next_way way) {
    switch (way) {
    case RP_NEXT_WAIT:
        return rp_keep_disk_rests(c->keep)
                   ? RP_OK
                   : rp_machine_disk_failed(&c->machine, c->keep, c->position.step);
    case RP_NEXT_LEAVE_ADOPTION:
        return leave_adoption(c);
    case RP_NEXT_WARM_AGAIN:
        return rp_warming_wait(c);
    case RP_NEXT_WARM_WITHOUT:
        return rp_warming_leave(c);
    case RP_NEXT_RETURN:
        return rejoin_boards(c);
    default:
        RP_ASSERT(way == RP_NEXT_MEND);
        return apply_remedy(c);
    }
}

rp_err rp_recover_enter(rp_controller *c) {
    const rp_warm_fault warming = rp_warming_fault(&c->machine);
    const rp_next_fault facts = {
        .faulty = c->machine.fault.err != RP_OK,
        .disk_fails = c->options.purpose == RP_PURPOSE_TRAIN && c->run->safety.wait_s > 0 &&
                      waits_for_disk(&c->machine, c->keep),
        .leaves_adoption = leaves_adoption(&c->machine, c->keep),
        .warm_waits = rp_warm_may_wait(c->warm, &warming),
        .warm_leaves = rp_warm_may_leave(c->warm, &warming),
    };
    const rp_err err = carry_out(c, rp_next_after_fault(&facts));
    if (err != RP_OK) {
        stop_after_failed_remedy(c, err);
    }
    return RP_OK;
}
