/* The state `adopt`: a run is resumed whose controller has died, and its boards may hold a newer
 * state than the newest checkpoint (keep/adopt.h). */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"

bool rp_adopt_is_due(const rp_controller *c) {
    return rp_keep_adoption_is_due(c->keep, rp_arrangement_given(c->setup) != NULL);
}

/* ---- the end --------------------------------------------------------------------------------- */

rp_err rp_adopt_end(rp_controller *c, const char *why) {
    rp_arrangement_drop_plan(c->setup);
    return rp_keep_end_adoption(c->keep, why, c->position.step);
}

/* What they still say of this term is none of the next one's business. Where only they could have
 * helped, the state `recover` looks for another checkpoint. `why` "": there is nothing to gain. */
static rp_err go_on_without(rp_controller *c, const char *why) {
    rp_err err;
    if (rp_keep_hopes_for_boards(c->keep)) {
        return rp_fail(RP_ERR_FAULT, "%s", why[0] ? why : "no board holds anything of it");
    }
    if (why[0]) {
        RP_TRY(rp_adopt_end(c, why));
    } else {
        rp_keep_forget_adoption(c->keep);
    }
    RP_TRY(rp_machine_begin_term(&c->machine, &c->ring, c->folder, c->env.run_id));
    rp_machine_enter(&c->machine, RP_CONTROL_HELLO);
fail:
    return err;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* `ahead: measured`: the run file of the former life has the numbers, which is no other setting. */
static rp_err take_ahead(rp_arrangement *setup, rp_keep *keep) {
    if (!rp_ahead_is_wanted(setup) || rp_keep_read_adopted_plan(keep) != RP_OK) {
        return RP_OK;
    }
    const rp_method *method = &rp_keep_adopted_plan(keep)->method;
    return rp_ahead_take(setup, method->ahead, method->ahead_count);
}

rp_err rp_adopt_enter(rp_controller *c) {
    char why[RP_KEEP_WHY_BYTES];
    rp_err err;
    RP_TRY(rp_keep_begin_adoption(c->keep, c->position.step));
    RP_TRY(take_ahead(c->setup, c->keep));
    RP_TRY(rp_folder_find_change(c->folder, c->run, why, sizeof why));
    if (why[0]) { /* a checkpoint of here would say that it was made with these */
        return go_on_without(c, why);
    }
    if (rp_keep_read_adopted_plan(c->keep) != RP_OK) {
        (void)snprintf(why, sizeof why, "%.239s", rp_err_message());
        return go_on_without(c, why);
    }
    RP_TRY(rp_keep_ask_boards(c->keep));
fail:
    return err;
}

rp_err rp_adopt_on_held(rp_controller *c, uint32_t board, const rp_message *message) {
    return rp_keep_on_held(c->keep, board, message);
}

/* One has not answered, or is not at rest, and nothing has changed for long. */
rp_err rp_adopt_late(const rp_controller *c) {
    return rp_keep_adoption_is_late(c->keep);
}

/* ---- taking over ----------------------------------------------------------------------------- */

static rp_err take_results(rp_controller *c, uint64_t step) {
    double loss;
    rp_err err = RP_OK;
    while (c->position.step < step) {
        if (!rp_keep_adopted_loss(c->keep, c->position.step, &loss)) {
            return rp_fail(RP_ERR_FAULT,
                           "the boards no longer know what step %" PRIu64 " gave; "
                           "train.checkpoint_steps bounds how many they have to",
                           c->position.step + 1);
        }
        (void)rp_drift_note_step(c->measure);
        RP_TRY(rp_train_count_step(c->train, loss));
    }
fail:
    return err;
}

/* All have stopped. From here on a fault is dealt with in `recover`. */
static rp_err take_over(rp_controller *c) {
    rp_plan *plan = rp_keep_adopted_plan(c->keep);
    rp_adopted adopted;
    rp_err err;
    /* `advance: auto` chose it, and no checkpoint has it yet; what is in flight depends on it */
    rp_arrangement_adopt_advance(c->setup, plan->method.advance);
    RP_TRY(rp_arrangement_take_plan(c->setup, plan));
    RP_TRY(rp_train_open_plan(c->train, plan));
    RP_TRY(rp_keep_take_adopted(c->keep, &c->position.ledger, &adopted));
    RP_TRY(take_results(c, adopted.step));
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
    char why[RP_KEEP_WHY_BYTES];
    rp_adoption outcome;
    rp_err err;
    RP_TRY(rp_keep_step_adoption(c->keep, &facts, why, &outcome));
    return outcome == RP_ADOPTION_IS_OFF  ? go_on_without(c, why)
           : outcome == RP_ADOPTION_TAKES ? take_over(c)
                                          : RP_OK;
fail:
    return err;
}
