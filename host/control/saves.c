/* The states `load` and `save`: the room keep does the work, and its outcome leads on. */
#include "control/controller_own.h"

/* NULL: this run measures no gains. */
static rp_gain_estimator *find_gains(const rp_runfile *run, rp_train *train) {
    return run->method.horizon == RP_HORIZON_MEASURED ? rp_train_gains(train) : NULL;
}

/* ---- load ------------------------------------------------------------------------------------ */

rp_err rp_load_enter(rp_controller *c) {
    const rp_keep_load_order order = {.plan = rp_arrangement_plan(c->setup),
                                      .cut = rp_arrangement_plan_cut(c->setup),
                                      .position = &c->position,
                                      .estimator = find_gains(c->run, c->train),
                                      .is_first = !c->machine.begun};
    c->machine.timeout_ns = rp_ring_patience_ns(c->run);
    c->position.fill_step = c->position.step;
    return rp_keep_begin_load(c->keep, &order);
}

void rp_load_abandon(rp_controller *c) {
    rp_keep_abandon_load(c->keep);
}

/* The feed opens, and training may begin. */
static rp_err leave_load(rp_controller *c) {
    const uint64_t step = c->position.step;
    char text[RP_RECOVERY_TEXT];
    rp_err err = RP_OK;
    rp_keep_abandon_load(c->keep);
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        RP_TRY(rp_train_open_feed(c->train));
    }
    c->machine.begun = c->options.purpose == RP_PURPOSE_TRAIN;
    if (c->machine.begun) {
        rp_arrangement_note_begun(c->setup);
    }
    rp_arena_seal(&c->arena); /* what comes from here on lives for a state or an assignment */
    if (c->way.follow.phase ==
        RP_FOLLOW_ASSIGN) { /* so that a resumed run is the run as it is now */
        c->way.follow.phase = RP_FOLLOW_SAVE;
        rp_keep_note_unsaved(c->keep, true);
        c->machine.renewed = true;
    }
    if (rp_recovery_note_work(&c->recovery, step, c->ring.now_ns, text)) {
        RP_TRY(rp_record_event(rp_folder_record(c->folder), "recovered", step, text));
    }
    RP_TRY(rp_controller_choose_next(c));
fail:
    return err;
}

rp_err rp_load_step(rp_controller *c) {
    rp_keep_outcome outcome;
    rp_err err;
    RP_TRY(rp_keep_step_load(c->keep, &c->position.fill_step, &outcome));
    if (outcome == RP_KEEP_OFFERED) {
        RP_TRY(rp_train_repeat_gains(c->train));
        RP_TRY(rp_keep_step_load(c->keep, &c->position.fill_step, &outcome));
    }
    return outcome == RP_KEEP_DONE ? leave_load(c) : RP_OK;
fail:
    return err;
}

rp_err rp_load_late(const rp_controller *c) {
    return rp_keep_load_is_late(c->keep);
}

/* ---- save ------------------------------------------------------------------------------------ */

rp_err rp_save_enter(rp_controller *c) {
    const bool rests = rp_keep_disk_rests(c->keep);
    rp_keep_outcome outcome;
    if (!rests) {
        rp_telemetry_read_totals(rp_folder_record(c->folder), &c->position);
    }
    const rp_keep_save_order order = {.plan = rp_arrangement_plan(c->setup),
                                      .position = &c->position,
                                      .estimator = find_gains(c->run, c->train),
                                      .is_result = c->position.step == rp_train_end(c->train)};
    const rp_err err = rp_keep_begin_save(c->keep, &order, &outcome);
    return rp_machine_keep_result(&c->machine, err, outcome);
}

void rp_save_abandon(rp_controller *c) {
    rp_keep_abandon_save(c->keep);
}

static rp_err commit_save(rp_controller *c, const char *not_finite, rp_keep_outcome *outcome) {
    rp_err err;
    RP_TRY(rp_train_note_saved(c->train, not_finite, rp_keep_saved_step(c->keep),
                               c->way.follow.phase != RP_FOLLOW_NONE, &c->machine.reported));
    err = rp_keep_commit_save(c->keep, outcome);
    if (*outcome == RP_KEEP_DONE) {
        rp_recovery_note_checkpoint(&c->recovery, &c->ring);
    }
    err = rp_machine_keep_result(&c->machine, err, *outcome);
fail:
    return err;
}

/* Training goes on from a pause without a checkpoint, but these do not. */
static bool needs_checkpoint(const rp_controller *c) {
    rp_split split;
    const bool scores = c->run->score.keep_best && rp_train_is_evaluation_due(c->train, &split);
    return scores || c->position.step == rp_train_end(c->train) || c->machine.interrupts > 0 ||
           c->way.follow.phase != RP_FOLLOW_NONE || rp_keep_saves_adopted(c->keep) ||
           rp_round_is_due(c);
}

rp_err rp_save_step(rp_controller *c) {
    const char *not_finite;
    rp_keep_outcome outcome;
    rp_err err;
    RP_TRY(rp_keep_step_save(c->keep, &not_finite, &outcome));
    if (outcome == RP_KEEP_WAITS) {
        return RP_OK;
    }
    RP_TRY(outcome == RP_KEEP_WHOLE ? commit_save(c, not_finite, &outcome) : RP_OK);
    const bool tries_again = outcome == RP_KEEP_AGAIN && needs_checkpoint(c);
    if (tries_again && rp_keep_disk_rests(c->keep)) {
        return RP_OK;
    }
    rp_keep_abandon_save(c->keep);
    if (tries_again) {
        rp_ring_note_progress(&c->ring);
        return rp_save_enter(c);
    }
    rp_keep_note_unsaved(c->keep, false);
    RP_TRY(rp_controller_choose_next(c));
fail:
    return err;
}

rp_err rp_save_late(const rp_controller *c) {
    return rp_keep_save_is_late(c->keep, c->machine.timeout_ns);
}

rp_err rp_save_on_tensor(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_keep_outcome outcome;
    const rp_err err = rp_keep_on_tensor(c->keep, board, message, &outcome);
    return rp_machine_keep_result(&c->machine, err, outcome);
}

rp_err rp_save_on_in_flight(rp_controller *c, uint32_t board, const rp_message *message) {
    rp_keep_outcome outcome;
    const rp_err err = rp_keep_on_in_flight(c->keep, board, message, &outcome);
    return rp_machine_keep_result(&c->machine, err, outcome);
}

rp_err rp_save_on_end(rp_controller *c, uint32_t board, const rp_message *message) {
    (void)message;
    return rp_keep_on_end(c->keep, board);
}
