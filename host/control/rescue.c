/* The states `copy` and `rescue`: copies that boards keep of each other, and a checkpoint that is
 * made of them. */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"

/* ---- copy ------------------------------------------------------------------------------------ */

rp_err rp_copy_enter(rp_controller *c) {
    const bool measured = c->run->method.horizon == RP_HORIZON_MEASURED;
    if (!rp_keep_is_copying(c->keep)) {
        rp_telemetry_read_totals(rp_folder_record(c->folder), &c->position);
    }
    return rp_keep_begin_copy(c->keep, rp_arrangement_plan(c->setup), &c->position,
                              measured ? rp_train_gains(c->train) : NULL);
}

rp_err rp_copy_step(rp_controller *c) {
    return rp_machine_all_done(&c->machine, &c->ring, c->measure) ? rp_controller_choose_next(c)
                                                                  : RP_OK;
}

rp_err rp_copy_on_copied(rp_controller *c, uint32_t board, const rp_message *message) {
    return rp_keep_on_copied(c->keep, rp_arrangement_plan(c->setup), board, message);
}

/* ---- rescue ---------------------------------------------------------------------------------- */

static rp_err say(rp_controller *c, const char *format, uint64_t step, const char *what) {
    char text[240];
    (void)snprintf(text, sizeof text, format, step, what);
    return rp_record_event(rp_folder_record(c->folder), "copies", c->position.step, text);
}

/* The disk has what the boards have not. */
static rp_err fall_back(rp_controller *c, const char *why, const char *what) {
    const uint64_t step = rp_keep_wanted_position(c->keep)->step;
    char name[61];
    rp_err err;
    (void)snprintf(name, sizeof name, "%s", what); /* which may be the checkpoint's */
    rp_keep_abandon_rescue(c->keep);
    RP_TRY(rp_controller_go_back_alone(c));
    RP_TRY(say(c, why, step, name));
    rp_machine_enter(&c->machine, RP_CONTROL_RESTART);
fail:
    return err;
}

static rp_err begin_rescue(rp_controller *c) {
    const rp_position position = *rp_keep_wanted_position(c->keep);
    rp_keep_outcome outcome;
    const rp_err err =
        rp_keep_begin_rescue(c->keep, rp_arrangement_plan(c->setup), &position, &outcome);
    return rp_machine_keep_result(&c->machine, err, outcome);
}

rp_err rp_rescue_enter(rp_controller *c) {
    const char *lost = rp_keep_find_lost(c->keep, rp_arrangement_plan(c->setup));
    return lost ? fall_back(c,
                            "nobody has a copy of step %" PRIu64
                            " of what board %s held: the run goes back to its newest checkpoint",
                            lost)
                : begin_rescue(c);
}

static rp_err leave_rescue(rp_controller *c, uint64_t step) {
    rp_err err;
    RP_TRY(rp_controller_find_kept(c));
    RP_TRY(say(c, "what the boards held behind step %" PRIu64 " is whole again, from copies%s",
               step, ""));
    rp_controller_leave_hello(c);
fail:
    return err;
}

rp_err rp_rescue_step(rp_controller *c) {
    const uint64_t step = rp_keep_wanted_position(c->keep)->step;
    const char *not_finite;
    rp_keep_outcome outcome;
    rp_err err = rp_keep_step_rescue(c->keep, &not_finite, &outcome);
    if (outcome == RP_KEEP_DAMAGED) {
        return fall_back(c,
                         "the copies of step %" PRIu64
                         " are of no use, for '%s' is not finite: the run goes back to its "
                         "newest checkpoint",
                         not_finite);
    }
    if (outcome == RP_KEEP_AGAIN) {
        rp_keep_abandon_save(c->keep);
        rp_ring_note_progress(&c->ring);
        return rp_rescue_enter(c);
    }
    RP_TRY(rp_machine_keep_result(&c->machine, err, outcome));
    if (outcome == RP_KEEP_DONE) {
        rp_recovery_note_checkpoint(&c->recovery, &c->ring);
        RP_TRY(leave_rescue(c, step));
    }
fail:
    return err;
}

/* A second fault on the way: the checkpoint is on the disk. */
void rp_rescue_abandon(rp_controller *c) {
    rp_keep_abandon_rescue(c->keep);
}
