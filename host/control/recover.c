/* clang-format off */
/* The state `recover`: the only place that decides what a fault means for the run.
 *
 *   transient  nothing is retried yet: what a link can retry it does below this
 *   board      the run stops so that it can be resumed; here a run will wait for its board, take a
 *              spare, or go on with a smaller ring: recover -> hello, as after a fall-back
 *   user       the run stops: what a person wrote can not work, or he interrupted it
 *   security   the run stops
 *   fatal      the run stops; it can be resumed
 *
 * One fault is dealt with today: a board that has no memory for as many forwards in flight as
 * `advance: auto` asks for. The boards then get stages with fewer. */
/* clang-format on */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "control/controller_own.h"

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
    c->fault = (rp_controller_fault){0};
    c->reported = RP_FAULT_UNKNOWN;
    RP_TRY(rp_controller_assign_again(c));
fail:
    return err;
}

/* In the run's log: who wants to know later why it stopped has it there. Of the last step trained,
 * so that a run that resumes behind it keeps the line. */
static void log_fault(rp_controller *c) {
    const rp_controller_fault *fault = &c->fault;
    const uint64_t step = c->position.step;
    char text[RP_FAULT_TEXT + 80];
    if (!c->record || fault->err == RP_ERR_INTERRUPTED) {
        return; /* nothing is wrong */
    }
    (void)snprintf(text, sizeof text, "%s, in state %s: %s",
                   rp_fault_class_name(fault->fault_class), rp_control_states[c->failed].name,
                   fault->text);
    if (rp_record_note(c->record, "fault", step - (step > 0), text) != RP_OK) {
        rp_log_debug("controller: the fault is not in the run's log");
    }
}

static void stop_run(rp_controller *c) {
    const rp_controller_fault *fault = &c->fault;
    log_fault(c);
    c->result = rp_fault_result(fault->err, c->begun);
    (void)snprintf(c->note, sizeof c->note, "%s", fault->text);
    rp_controller_enter(c, RP_CONTROL_CLOSE);
}

rp_err rp_recover_enter(rp_controller *c) {
    rp_err err = RP_OK;
    if (!has_smaller_advance(c)) {
        stop_run(c);
    } else if ((err = fall_back(c)) != RP_OK) {
        c->result = rp_fault_result(err, c->begun);
        (void)snprintf(c->note, sizeof c->note, "%s", rp_err_message());
        rp_controller_enter(c, RP_CONTROL_CLOSE);
    }
    return RP_OK;
}
