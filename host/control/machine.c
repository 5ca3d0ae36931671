/* What every state does with the machine: leaves, notes progress, asks about the boards. */
#include <stdarg.h>
#include <stdio.h>

#include "base/printable.h"
#include "control/controller_own.h"
#include "ring/identity.h"

void rp_controller_enter(rp_controller *c, rp_control_state_id next) {
    const bool named = (rp_control_states[c->machine.state].next & UINT32_C(1) << next) != 0;
    RP_ASSERT(named || next == RP_CONTROL_RECOVER);
    c->machine.next = next;
}

uint64_t rp_controller_end(const rp_controller *c) {
    return rp_train_end(c->train);
}

double rp_controller_segment_s(const rp_controller *c) {
    return (double)(c->ring.now_ns - rp_train_segment_start_ns(c->train)) * 1e-9;
}

bool rp_controller_all_done(const rp_controller *c) {
    const rp_control_state *state = &rp_control_states[c->machine.state];
    for (uint32_t k = 0; k < c->ring.count; k++) {
        if (!state->has_done(c, k)) {
            return false;
        }
    }
    return true;
}

void rp_controller_forget_asked(rp_controller *c) {
    for (uint32_t k = 0; k < c->ring.count; k++) {
        c->ring.board[k].machine.asked = false;
    }
}

/* They made the checkpoint that it goes on from. */
bool rp_controller_had_boards(const rp_controller *c) {
    return c->machine.begun || c->position.step > 0;
}

void rp_controller_forget_fault(rp_controller *c) {
    c->machine.fault = (rp_controller_fault){0};
    c->machine.reported = RP_FAULT_UNKNOWN;
}

rp_err rp_controller_final(rp_controller *c, rp_err err) {
    c->machine.reported = RP_FAULT_FATAL;
    return err;
}

rp_err rp_controller_disk_fault(rp_controller *c, rp_err err) {
    if (err == RP_ERR_IO && c->machine.begun) {
        c->machine.reported = RP_FAULT_TRANSIENT;
    }
    return err;
}

rp_err rp_controller_keep_result(rp_controller *c, rp_err err, rp_keep_outcome outcome) {
    return outcome == RP_KEEP_OVER ? rp_controller_final(c, err) : err;
}

rp_err rp_controller_disk_failed(rp_controller *c) {
    rp_keep_outcome outcome;
    const rp_err err = rp_keep_disk_failed(c->keep, c->position.step, &outcome);
    return rp_controller_keep_result(c, err, outcome);
}

rp_err rp_controller_begin_term(rp_controller *c) {
    const rp_err err =
        rp_ring_begin_term(&c->ring, rp_folder_paths_of(c->folder)->folder, c->env.run_id);
    return rp_controller_disk_fault(c, err);
}

void rp_controller_print(const rp_controller *c, const char *format, ...) {
    if (c->env.progress) {
        char text[2048];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof text, format, args);
        va_end(args);
        rp_print(c->env.progress, "%s", text);
    }
}
