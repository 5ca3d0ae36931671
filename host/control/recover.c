/* clang-format off */
/* The state `recover`: what a fault means for the run is decided in remedy.c, and done here.
 *
 *   transient  the run goes back to its newest checkpoint and on from there: recover -> restart
 *   board      the same, once the board is back: it has ring.wait seconds to answer, and to get
 *              its ports; then a board of ring.spare takes its place, or the model is cut anew over
 *              those that are left
 *   user       the run stops: what a person wrote can not work, or he interrupted it
 *   security   the run stops; but a board that it has had and that refuses the handshake now is as
 *              good as one that has not come back
 *   fatal      the run stops; it can be resumed
 *
 * A fault that a new try would only meet again stops the run, too: a mistake in the protocol, too
 * little memory from the beginning, a board that did not come back in time, or many ways back in a
 * row without a new checkpoint, with longer and longer pauses. And a board that has no memory
 * for as many forwards in flight as `advance: auto` asks for gets a stage with fewer: recover ->
 * hello.
 *
 * Where boards are warmed, one that is lost is waited for until the deadline; where spares are, any
 * other fault ends the part of one of them.
 *
 * And without a fault: boards that were lost have joined the ring again: recover -> restart. */
/* clang-format on */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/controller_own.h"
#include "control/next.h"
#include "control/remedy.h"
#include "ring/identity.h"

/* ---- fewer in flight ------------------------------------------------------------------------- */

static rp_err fall_back(rp_controller *c) {
    char text[200];
    rp_err err;
    (void)snprintf(text, sizeof text, "not advance %u: %.150s", c->run->method.advance,
                   c->machine.fault.text);
    rp_arrangement_lessen_advance(c->setup);
    RP_TRY(rp_arrangement_log_advance(c->setup, text));
    rp_controller_forget_fault(c);
    RP_TRY(rp_controller_assign_again(c));
fail:
    return err;
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void describe_fault(const rp_controller *c, char *text, size_t bytes) {
    const rp_controller_fault *fault = &c->machine.fault;
    (void)snprintf(text, bytes, "%s, in state %s: %s", rp_fault_class_name(fault->fault_class),
                   rp_control_states[c->machine.failed].name, fault->text);
}

/* In the run's log: who wants to know later why it stopped has it there. */
static void log_fault(rp_controller *c) {
    char text[RP_FAULT_TEXT + 80];
    if (!rp_folder_record(c->folder) || c->machine.fault.err == RP_ERR_INTERRUPTED) {
        return; /* nothing is wrong */
    }
    describe_fault(c, text, sizeof text);
    if (rp_record_note(rp_folder_record(c->folder), "fault", c->position.step, text) != RP_OK) {
        rp_log_debug("controller: the fault is not in the run's log");
    }
}

/* A board that has not come back: it is said, too, how it was lost. */
static void note_why(rp_controller *c) {
    const rp_recovery *recovery = &c->recovery;
    if (!recovery->is_on || c->machine.fault.err == RP_ERR_INTERRUPTED) {
        (void)snprintf(c->machine.note, sizeof c->machine.note, "%s", c->machine.fault.text);
    } else {
        (void)snprintf(c->machine.note, sizeof c->machine.note,
                       "%.220s; the run had gone back to step %" PRIu64 " after this: %.200s",
                       c->machine.fault.text, c->position.step, recovery->fault.text);
    }
}

/* Boards have not come, and others would go on if the run file let them. */
static void note_why_not_fewer(rp_controller *c, const rp_remedy_facts *facts) {
    rp_remedy_facts other = *facts;
    char at_least[48];
    other.may_shrink = true;
    other.places_stay = false;
    other.at_least = 1;
    if (c->run->local || rp_remedy_choose(&other) != RP_REMEDY_FEWER) {
        return;
    }
    (void)snprintf(at_least, sizeof at_least, "ring.at_least is %" PRIu32, facts->at_least);
    const char *stay = facts->places_stay ? "the plan is given" : rp_absent_why_stay(c);
    const size_t used = strlen(c->machine.note);
    (void)snprintf(c->machine.note + used, sizeof c->machine.note - used,
                   "; the run does not go on with fewer boards, because %s",
                   stay ? stay : at_least);
}

static void note_why_not_back(rp_controller *c, const rp_remedy_facts *facts) {
    const size_t used = strlen(c->machine.note);
    (void)snprintf(c->machine.note + used, sizeof c->machine.note - used,
                   "; the run does not go back once more: there were at least %" PRIu32
                   " faults since its newest checkpoint",
                   facts->in_a_row + facts->on_the_way);
}

static void stop_run(rp_controller *c) {
    log_fault(c);
    c->machine.result = rp_fault_result(c->machine.fault.err, c->machine.begun);
    note_why(c);
    rp_controller_enter(c, RP_CONTROL_CLOSE);
}

/* ---- going back ------------------------------------------------------------------------------ */

static rp_err say_going_back(rp_controller *c, const char *fault) {
    char text[RP_FAULT_TEXT + 200];
    (void)snprintf(text, sizeof text,
                   "%s; the run goes back from step %" PRIu64 " to step %" PRIu64
                   " and waits up to %" PRIu32 " s for its boards (ring.wait)",
                   fault, c->recovery.step, c->position.step, c->run->safety.wait_s);
    return rp_record_event(rp_folder_record(c->folder), "fault", c->position.step, text);
}

static rp_err begin_way_back(rp_controller *c) {
    const uint64_t from = c->position.step;
    char fault[RP_FAULT_TEXT + 80];
    rp_err err;
    describe_fault(c, fault, sizeof fault);
    RP_TRY(rp_controller_go_back(c));
    rp_recovery_begin(c, from);
    RP_TRY(say_going_back(c, fault));
fail:
    return err;
}

/* A process that has a board's port is given time to let go of it. */
static void pause_for_port(rp_controller *c) {
    rp_recovery *recovery = &c->recovery;
    if (!rp_remedy_lacks_port(c->machine.fault.err, c->machine.failed)) {
        return;
    }
    recovery->port_since_ns = recovery->ports_lacked ? recovery->port_since_ns : c->ring.now_ns;
    const int64_t until_ns =
        c->ring.now_ns +
        rp_remedy_port_pause_ns(c->run->safety.wait_s * RP_NS_PER_S, recovery->ports_lacked++);
    recovery->not_before_ns =
        until_ns > recovery->not_before_ns ? until_ns : recovery->not_before_ns;
}

static rp_err go_back(rp_controller *c) {
    rp_err err;
    RP_TRY(begin_way_back(c));
    pause_for_port(c);
    rp_controller_forget_fault(c);
    rp_ring_end_greeting(&c->ring); /* this board has its time from now */
    rp_controller_enter(c, RP_CONTROL_RESTART);
fail:
    return err;
}

/* Boards that have not come, or get no port, are on a way back already; one that computes wrong was
 * at work. */
static rp_err begin_leaving(rp_controller *c) {
    if (c->machine.wrong == RP_FAULT_NO_BOARD) {
        return RP_OK;
    }
    c->machine.fault.board = c->machine.wrong;
    return begin_way_back(c);
}

/* ---- the state ------------------------------------------------------------------------------- */

/* The fault was to be mended, and that failed. */
static void stop_for(rp_controller *c, rp_err err) {
    char why[RP_ERR_MESSAGE_BYTES]; /* the log has messages, too */
    (void)snprintf(why, sizeof why, "%s", rp_err_message());
    if (c->machine.fault.err == RP_OK) { /* there was none: boards have joined */
        c->machine.fault = (rp_controller_fault){
            .err = err, .fault_class = RP_FAULT_FATAL, .board = RP_FAULT_NO_BOARD};
        (void)snprintf(c->machine.fault.text, sizeof c->machine.fault.text, "%.500s", why);
        stop_run(c);
        return;
    }
    log_fault(c);
    c->machine.result = rp_fault_result(err, c->machine.begun);
    (void)snprintf(c->machine.note, sizeof c->machine.note, "%.220s; this came of it: %.200s", why,
                   c->machine.fault.text);
    rp_controller_enter(c, RP_CONTROL_CLOSE);
}

/* Copies become a checkpoint on a way back: behind that there is none. */
static uint32_t ways_before(const rp_controller *c) {
    const rp_recovery *recovery = &c->recovery;
    return recovery->is_on && recovery->in_a_row > 0 ? recovery->in_a_row - 1 : recovery->in_a_row;
}

static rp_remedy_facts facts_of(const rp_controller *c) {
    const rp_method *method = &c->run->method;
    return (rp_remedy_facts){
        .err = c->machine.fault.err,
        .fault_class = c->machine.fault.fault_class,
        .failed = c->machine.failed,
        .trains = c->options.purpose == RP_PURPOSE_TRAIN,
        .begun = c->machine.begun,
        .had_boards = rp_controller_had_boards(c),
        .interrupted = c->machine.interrupts > 0,
        .waits = c->run->safety.wait_s > 0,
        .has_boards = c->ring.board != NULL,
        .can_lessen = method->advance_auto && method->advance > c->way.advance_least,
        .places_stay = rp_arrangement_given(c->setup) != NULL,
        .may_shrink = !rp_absent_why_stay(c),
        .boards = c->ring.count,
        .absent = rp_recovery_absent(c),
        .is_wrong = c->machine.wrong != RP_FAULT_NO_BOARD,
        .at_least = c->run->safety.at_least,
        .spares = rp_recovery_spares(c),
        .in_a_row = ways_before(c),
        .on_the_way = c->recovery.is_on ? c->recovery.on_the_way : 0,
        .had_time = rp_recovery_had_time_for_port(c),
    };
}

static rp_err mend(rp_controller *c) {
    const rp_remedy_facts facts = facts_of(c);
    const rp_remedy remedy = rp_remedy_choose(&facts);
    rp_err err = RP_OK;
    if (c->env.on_remedy) {
        c->env.on_remedy(c->env.context, rp_control_states[c->machine.failed].name,
                         rp_remedy_name(remedy));
    }
    switch (remedy) {
    case RP_REMEDY_LESS:
        err = fall_back(c);
        break;
    case RP_REMEDY_SPARES:
        RP_TRY(begin_leaving(c));
        RP_TRY(rp_absent_take_spares(c));
        break;
    case RP_REMEDY_FEWER:
        RP_TRY(begin_leaving(c));
        RP_TRY(rp_absent_leave(c));
        break;
    case RP_REMEDY_BACK:
        err = go_back(c);
        break;
    case RP_REMEDY_GIVE_UP:
        stop_run(c);
        note_why_not_back(c, &facts);
        break;
    default:
        stop_run(c);
        note_why_not_fewer(c, &facts);
    }
fail:
    return err;
}

/* ---- a ring that was adopted ----------------------------------------------------------------- */

/* On from the checkpoint that was made of what the boards hold, or, when that failed, from the one
 * before. */
static rp_err leave_adoption(rp_controller *c) {
    const char *why = c->machine.fault.err == RP_OK ? NULL : c->machine.fault.text;
    rp_err err;
    RP_TRY(rp_identity_check(rp_folder_paths_of(c->folder)->folder, &c->ring.identity));
    RP_TRY(rp_adopt_end(c, why));
    rp_ring_reset(&c->ring, why ? c->machine.fault.board : RP_FAULT_NO_BOARD);
    rp_keep_note_unsaved(c->keep, false);
    c->position = (rp_position){0};
    RP_TRY(rp_controller_find_start(c));
    RP_TRY(rp_controller_rewind_record(c));
    RP_TRY(rp_controller_begin_term(c));
    rp_controller_forget_fault(c);
    rp_controller_enter(c, RP_CONTROL_RESTART);
fail:
    return err;
}

/* What is wrong with the host or its files is so without an adoption, too. */
static bool leaves_adoption(const rp_controller *c) {
    const rp_FaultClass fault_class = c->machine.fault.fault_class;
    const bool may_be_left = c->machine.interrupts == 0 && fault_class != RP_FAULT_SECURITY &&
                             fault_class != RP_FAULT_USER;
    return rp_keep_is_adopting(c->keep) && (c->machine.fault.err == RP_OK || may_be_left);
}

/* ---- the state ------------------------------------------------------------------------------- */

/* Every way back writes into the run folder. */
static bool waits_for_disk(const rp_controller *c) {
    const bool goes_on = c->machine.fault.err == RP_OK ||
                         c->machine.fault.fault_class == RP_FAULT_TRANSIENT ||
                         c->machine.fault.fault_class == RP_FAULT_BOARD;
    return goes_on && c->options.purpose == RP_PURPOSE_TRAIN && c->machine.begun &&
           c->run->safety.wait_s > 0 && c->machine.interrupts == 0 &&
           (rp_keep_disk_rests(c->keep) || !rp_keep_disk_is_writable(c->keep));
}

static rp_err wait_for_disk(rp_controller *c) {
    return rp_keep_disk_rests(c->keep) ? RP_OK : rp_controller_disk_failed(c);
}

/* Without a fault: boards that were lost have joined the ring. */
rp_err rp_recover_enter(rp_controller *c) {
    static rp_err (*const ways[])(rp_controller *) = {
        [RP_NEXT_WAIT] = wait_for_disk,         [RP_NEXT_LEAVE_ADOPTION] = leave_adoption,
        [RP_NEXT_WARM_AGAIN] = rp_warming_wait, [RP_NEXT_WARM_WITHOUT] = rp_warming_leave,
        [RP_NEXT_RETURN] = rp_absent_return,    [RP_NEXT_MEND] = mend,
    };
    const rp_warm_fault warming = rp_warming_fault(c);
    const rp_next_facts facts = {
        .place = RP_NEXT_AFTER_FAULT,
        .faulty = c->machine.fault.err != RP_OK,
        .disk_fails = waits_for_disk(c),
        .leaves_adoption = leaves_adoption(c),
        .warm_waits = rp_warm_may_wait(c->warm, &warming),
        .warm_leaves = rp_warm_may_leave(c->warm, &warming),
    };
    const rp_err err = ways[rp_next(&facts).step](c);
    if (err != RP_OK) {
        stop_for(c, err);
    }
    return RP_OK;
}

/* It is left at once, unless it waits for the disk. */
rp_err rp_recover_step(rp_controller *c) {
    return rp_recover_enter(c);
}
