/* clang-format off */
/* The state `recover`: the only place that decides what a fault means for the run.
 *
 *   transient  the run goes back to its newest checkpoint and on from there: recover -> restart
 *   board      the same, once the board is back: it has ring.wait seconds to answer; then a board
 *              of ring.spare takes its place, or the model is cut anew over those that are left
 *   user       the run stops: what a person wrote can not work, or he interrupted it
 *   security   the run stops
 *   fatal      the run stops; it can be resumed
 *
 * A fault that a new try would only meet again stops the run, too: a mistake in the protocol, too
 * little memory from the beginning, a board that did not come back in time, or one way back after
 * the other without a new checkpoint. And a board that has no memory for as many forwards in flight
 * as `advance: auto` asks for gets a stage with fewer: recover -> hello. */
/* clang-format on */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/controller_own.h"

/* Ways back without a new checkpoint: so many, and one a board, for several may be lost at a time
 * and be missed one after the other. */
enum { IN_A_ROW_MAX = 4 };

/* ---- fewer in flight ------------------------------------------------------------------------- */

/* Fewer in flight than the links ask for. */
static bool has_smaller_advance(const rp_controller *c) {
    return c->failed == RP_CONTROL_ASSIGN && c->fault.err == RP_ERR_LIMIT &&
           c->run.method.advance_auto && c->run.method.advance > c->advance_least;
}

static rp_err fall_back(rp_controller *c) {
    char text[200];
    rp_err err;
    (void)snprintf(text, sizeof text, "not advance %u: %.150s", c->run.method.advance,
                   c->fault.text);
    c->advance_max = c->advance.advance = c->run.method.advance - 1;
    rp_controller_take_advance(c, &c->advance);
    RP_TRY(rp_controller_log_advance(c, text));
    rp_controller_forget_fault(c);
    RP_TRY(rp_controller_assign_again(c));
fail:
    return err;
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void describe_fault(const rp_controller *c, char *text, size_t bytes) {
    const rp_controller_fault *fault = &c->fault;
    (void)snprintf(text, bytes, "%s, in state %s: %s", rp_fault_class_name(fault->fault_class),
                   rp_control_states[c->failed].name, fault->text);
}

/* In the run's log: who wants to know later why it stopped has it there. */
static void log_fault(rp_controller *c) {
    char text[RP_FAULT_TEXT + 80];
    if (!c->record || c->fault.err == RP_ERR_INTERRUPTED) {
        return; /* nothing is wrong */
    }
    describe_fault(c, text, sizeof text);
    if (rp_record_note(c->record, "fault", c->position.step, text) != RP_OK) {
        rp_log_debug("controller: the fault is not in the run's log");
    }
}

/* A board that has not come back: it is said, too, how it was lost. */
static void note_why(rp_controller *c) {
    const rp_recovery *recovery = &c->recovery;
    if (!recovery->is_on || c->fault.err == RP_ERR_INTERRUPTED) {
        (void)snprintf(c->note, sizeof c->note, "%s", c->fault.text);
    } else {
        (void)snprintf(c->note, sizeof c->note,
                       "%.220s; the run had gone back to step %" PRIu64 " after this: %.200s",
                       c->fault.text, c->position.step, recovery->fault.text);
    }
}

static void stop_run(rp_controller *c) {
    log_fault(c);
    c->result = rp_fault_result(c->fault.err, c->begun);
    note_why(c);
    rp_controller_enter(c, RP_CONTROL_CLOSE);
}

/* ---- going back ------------------------------------------------------------------------------ */

/* What comes of a mistake comes again; and memory, devices and numbers that have not been good
 * enough for a first step are not good enough for a second try. */
static bool comes_again(const rp_controller *c) {
    switch (c->fault.err) {
    case RP_ERR_PEER:
    case RP_ERR_FORMAT:
    case RP_ERR_SHAPE:
        return true;
    case RP_ERR_MEMORY:
    case RP_ERR_DEVICE:
    case RP_ERR_NUMERIC:
        return !c->begun;
    case RP_ERR_LIMIT: /* a board that has not the memory for its stage */
        return !c->begun || c->failed == RP_CONTROL_ASSIGN;
    case RP_ERR_TIMEOUT: /* a board has had its time to come */
        return c->failed == RP_CONTROL_START || c->failed == RP_CONTROL_RESTART ||
               c->failed == RP_CONTROL_HELLO;
    default:
        return false;
    }
}

static uint32_t most_in_a_row(const rp_controller *c) {
    return IN_A_ROW_MAX + c->ring.count;
}

static bool can_go_back(const rp_controller *c) {
    const rp_FaultClass fault_class = c->fault.fault_class;
    return c->options.purpose == RP_PURPOSE_TRAIN && c->run.wait_s > 0 && c->interrupts == 0 &&
           (fault_class == RP_FAULT_TRANSIENT || fault_class == RP_FAULT_BOARD) && c->ring.board &&
           !comes_again(c) && c->recovery.in_a_row < most_in_a_row(c);
}

static rp_err say_going_back(rp_controller *c, const char *fault) {
    char text[RP_FAULT_TEXT + 200];
    (void)snprintf(text, sizeof text,
                   "%s; the run goes back from step %" PRIu64 " to step %" PRIu64
                   " and waits up to %" PRIu32 " s for its boards (ring.wait)",
                   fault, c->recovery.step, c->position.step, c->run.wait_s);
    return rp_record_event(c->record, "fault", c->position.step, text);
}

static rp_err go_back(rp_controller *c) {
    const uint64_t from = c->position.step;
    char fault[RP_FAULT_TEXT + 80];
    rp_err err;
    describe_fault(c, fault, sizeof fault);
    RP_TRY(rp_controller_go_back(c));
    rp_recovery_begin(c, from);
    RP_TRY(say_going_back(c, fault));
    rp_controller_forget_fault(c);
    c->greeted_ns = 0; /* this board has its time from now */
    rp_controller_enter(c, RP_CONTROL_RESTART);
fail:
    return err;
}

/* ---- the state ------------------------------------------------------------------------------- */

/* The fault was to be mended, and that failed. */
static void stop_for(rp_controller *c, rp_err err) {
    char why[RP_ERR_MESSAGE_BYTES]; /* the log has messages, too */
    (void)snprintf(why, sizeof why, "%s", rp_err_message());
    log_fault(c);
    c->result = rp_fault_result(err, c->begun);
    (void)snprintf(c->note, sizeof c->note, "%.220s; this came of it: %.200s", why, c->fault.text);
    rp_controller_enter(c, RP_CONTROL_CLOSE);
}

rp_err rp_recover_enter(rp_controller *c) {
    rp_err err = RP_OK;
    if (has_smaller_advance(c)) {
        err = fall_back(c);
    } else if (rp_absent_have_spares(c)) {
        err = rp_absent_take_spares(c);
    } else if (rp_absent_may_leave(c)) {
        err = rp_absent_leave(c);
    } else if (can_go_back(c)) {
        err = go_back(c);
    } else {
        stop_run(c);
    }
    if (err != RP_OK) {
        stop_for(c, err);
    }
    return RP_OK;
}
