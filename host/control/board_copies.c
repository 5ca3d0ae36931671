/* The states `adopt`, `copy` and `rescue` use run state that exists only in the memory of boards: a
 * resumed run adopts what boards still hold of a dead controller's run (keep/adoption.h), and
 * copies replace the state of lost boards (keep/copies.h). */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"

/* ---- adopt ----------------------------------------------------------------------------------- */

/* Ends the adoption. The new term makes late answers of the boards irrelevant. If the newest
 * checkpoint is damaged, only the boards could have helped, and this is a fault. `why` of kind
 * NONE: the boards hold nothing newer. */
static rp_err skip_adoption(rp_controller *c, const rp_run_event *why) {
    char text[RP_WORDS_BYTES] = "no board holds anything of it";
    rp_err err;
    if (rp_keep_hopes_for_boards(c->keep)) {
        return rp_fail(RP_ERR_FAULT, "%s",
                       why->kind ? rp_words_write(why, text, sizeof text) : text);
    }
    if (why->kind) {
        rp_arrangement_drop_plan(c->setup);
        RP_TRY(rp_keep_end_adoption(c->keep, why, c->position.step));
    } else {
        rp_keep_forget_adoption(c->keep);
    }
    RP_TRY(rp_machine_begin_term(&c->machine, &c->ring, c->folder, c->env.run_id));
    rp_machine_enter(&c->machine, RP_CONTROL_HELLO);
fail:
    return err;
}

/* `ahead: measured`: run.yaml of the earlier life has the chosen numbers, so they do not count as a
 * changed setting. */
static rp_err adopt_ahead(rp_arrangement *setup, rp_keep *keep) {
    if (!rp_ahead_is_wanted(setup) || rp_keep_read_adopted_plan(keep) != RP_OK) {
        return RP_OK;
    }
    const rp_method *method = &rp_keep_adopted_plan(keep)->method;
    return rp_ahead_take(setup, method->ahead, method->ahead_count);
}

rp_err rp_adopt_enter(rp_controller *c) {
    char text[RP_WORDS_BYTES];
    rp_run_event why = {.kind = RP_EVENT_HELD_SETTINGS, .changes = text};
    rp_err err;
    RP_TRY(rp_keep_begin_adoption(c->keep, c->position.step));
    RP_TRY(adopt_ahead(c->setup, c->keep));
    RP_TRY(rp_folder_find_change(c->folder, c->run, text, sizeof text));
    if (text[0]) { /* the new checkpoint would claim to be made with the changed settings */
        return skip_adoption(c, &why);
    }
    if (rp_keep_read_adopted_plan(c->keep) != RP_OK) {
        (void)snprintf(text, sizeof text, "%s", rp_err_message());
        why = (rp_run_event){.kind = RP_EVENT_HELD_ERROR, .error = text};
        return skip_adoption(c, &why);
    }
    RP_TRY(rp_keep_ask_boards(c->keep));
fail:
    return err;
}

static rp_err count_adopted_steps(rp_controller *c, uint64_t step) {
    rp_loss_sum sum;
    rp_err err = RP_OK;
    while (c->position.step < step) {
        if (!rp_keep_adopted_loss(c->keep, c->position.step, &sum.loss, &sum.ignored)) {
            return rp_fail(RP_ERR_FAULT,
                           "the boards no longer have the result of step %" PRIu64 "; "
                           "a smaller train.checkpoint_steps makes them keep fewer results",
                           c->position.step + 1);
        }
        rp_drift_note_step(c->measure);
        RP_TRY(rp_train_count_step(c->train, &sum));
    }
fail:
    return err;
}

/* All boards have stopped. From here on, faults go to `recover`. */
static rp_err adopt_boards(rp_controller *c) {
    rp_plan *plan = rp_keep_adopted_plan(c->keep);
    rp_adopted adopted;
    rp_err err;
    /* `advance: auto` chose it, and no checkpoint has it yet; the in-flight state depends on it */
    rp_arrangement_adopt_advance(c->setup, plan->method.advance);
    RP_TRY(rp_arrangement_take_plan(c->setup, plan));
    RP_TRY(rp_train_open_plan(c->train, plan));
    RP_TRY(rp_keep_take_adopted(c->keep, &c->position.ledger, &adopted));
    RP_TRY(count_adopted_steps(c, adopted.step));
    c->position.ledger.digest = adopted.ledger.digest;
    c->position.ledger.samples += adopted.ledger.samples;
    c->position.fill_step = adopted.fill_step;
    rp_keep_save_adopted(c->keep);
    rp_ring_watch_boards(&c->ring, true);
    rp_machine_enter(&c->machine, RP_CONTROL_SAVE);
fail:
    return err;
}

rp_err rp_adopt_step(rp_controller *c) {
    const rp_adopt_facts facts = {.ledger = &c->position.ledger, .end = rp_train_end(c->train)};
    rp_run_event why;
    rp_adoption outcome;
    rp_err err;
    RP_TRY(rp_keep_step_adoption(c->keep, &facts, &why, &outcome));
    return outcome == RP_ADOPTION_IS_OFF  ? skip_adoption(c, &why)
           : outcome == RP_ADOPTION_TAKES ? adopt_boards(c)
                                          : RP_OK;
fail:
    return err;
}

/* ---- copy ------------------------------------------------------------------------------------ */

rp_err rp_copy_enter(rp_controller *c) {
    if (!rp_keep_is_copying(c->keep)) {
        rp_train_read_totals(c->train);
    }
    return rp_keep_begin_copy(c->keep, rp_arrangement_plan(c->setup), &c->position,
                              rp_train_gains(c->train));
}

rp_err rp_copy_step(rp_controller *c) {
    return rp_machine_all_done(&c->machine, &c->ring, c->measure) ? rp_pause_choose_next(c) : RP_OK;
}

/* ---- rescue ---------------------------------------------------------------------------------- */

/* Goes back to the checkpoint on disk, because a board's part is missing or a tensor is not finite.
 */
static rp_err fall_back(rp_controller *c, rp_event_kind why, const char *board_or_tensor) {
    rp_run_event event = {.kind = why, .copy_step = rp_keep_wanted_position(c->keep)->step};
    char name[120]; /* the copies may own the name */
    rp_err err;
    (void)snprintf(name, sizeof name, "%s", board_or_tensor);
    *(why == RP_EVENT_COPY_MISSING ? &event.board : &event.tensor) = name;
    rp_keep_abandon_rescue(c->keep);
    c->machine.fault.board = RP_NO_BOARD;
    RP_TRY(rp_resume_begin_way_back(c, c->recovery.step));
    rp_machine_forget_fault(&c->machine);
    rp_ring_end_greeting(&c->ring);
    event.step = c->position.step;
    RP_TRY(rp_record_event(rp_folder_record(c->folder), &event));
    rp_machine_enter(&c->machine, RP_CONTROL_RESTART);
fail:
    return err;
}

rp_err rp_rescue_enter(rp_controller *c) {
    const char *lost = rp_keep_find_lost(c->keep, rp_arrangement_plan(c->setup));
    if (lost) {
        return fall_back(c, RP_EVENT_COPY_MISSING, lost);
    }
    rp_keep_outcome outcome;
    const rp_err err = rp_keep_begin_rescue(c->keep, rp_arrangement_plan(c->setup), &outcome);
    return rp_machine_keep_result(&c->machine, err, outcome);
}

static rp_err leave_rescue(rp_controller *c, uint64_t step) {
    rp_err err;
    rp_recovery_note_checkpoint(&c->recovery, &c->ring);
    RP_TRY(rp_resume_find_kept(c));
    RP_TRY(
        rp_record_event(rp_folder_record(c->folder), &(rp_run_event){.kind = RP_EVENT_COPY_RESTORED,
                                                                     .step = c->position.step,
                                                                     .copy_step = step}));
    rp_hello_leave(c);
fail:
    return err;
}

rp_err rp_rescue_step(rp_controller *c) {
    const uint64_t step = rp_keep_wanted_position(c->keep)->step;
    const char *not_finite;
    rp_keep_outcome outcome;
    rp_err err = rp_keep_step_rescue(c->keep, &not_finite, &outcome);
    if (outcome == RP_KEEP_DAMAGED) {
        return fall_back(c, RP_EVENT_COPY_NOT_FINITE, not_finite);
    }
    if (outcome == RP_KEEP_AGAIN) {
        rp_keep_abandon_save(c->keep);
        rp_ring_note_progress(&c->ring);
        return rp_rescue_enter(c);
    }
    RP_TRY(rp_machine_keep_result(&c->machine, err, outcome));
    RP_TRY(outcome == RP_KEEP_DONE ? leave_rescue(c, step) : RP_OK);
fail:
    return err;
}
