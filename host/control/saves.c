/* The states `load`, `save` and `round`; the room `keep` does the work. In `round` a lane has
 * written its checkpoint and waits until its run has averaged it with those of all lanes; then
 * the boards load the result. */
#include <inttypes.h>

#include "control/controller_own.h"

/* ---- load ------------------------------------------------------------------------------------ */

rp_err rp_load_enter(rp_controller *c) {
    const rp_keep_load_order order = {.plan = rp_arrangement_plan(c->setup),
                                      .cut = rp_arrangement_plan_cut(c->setup),
                                      .position = &c->position,
                                      .estimator = rp_train_gains(c->train),
                                      .is_first = !c->machine.begun};
    c->machine.timeout_ns = rp_ring_patience_ns(c->run);
    c->position.fill_step = c->position.step;
    return rp_keep_begin_load(c->keep, &order);
}

/* Opens the feed: training may begin. */
static rp_err leave_load(rp_controller *c) {
    const uint64_t step = c->position.step;
    rp_run_event event;
    rp_err err = RP_OK;
    rp_keep_abandon_load(c->keep);
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        RP_TRY(rp_train_open_feed(c->train));
        c->machine.begun = true;
        rp_arrangement_note_begun(c->setup);
    }
    rp_arena_seal(&c->arena); /* later allocations belong to a state or an assignment */
    if (c->way.follow.phase ==
        RP_FOLLOW_ASSIGN) { /* so that a resumed run continues with the new method */
        c->way.follow.phase = RP_FOLLOW_SAVE;
        rp_keep_note_unsaved(c->keep, true);
        c->machine.renewed = true;
    }
    if (rp_recovery_note_work(&c->recovery, step, c->ring.now_ns, &event)) {
        RP_TRY(rp_record_event(rp_folder_record(c->folder), &event));
    }
    RP_TRY(rp_pause_choose_next(c));
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

/* ---- save ------------------------------------------------------------------------------------ */

rp_err rp_save_enter(rp_controller *c) {
    rp_keep_outcome outcome;
    if (!rp_keep_disk_rests(c->keep)) {
        rp_train_read_totals(c->train);
    }
    const rp_keep_save_order order = {.plan = rp_arrangement_plan(c->setup),
                                      .position = &c->position,
                                      .estimator = rp_train_gains(c->train),
                                      .is_result = c->position.step == rp_train_end(c->train)};
    const rp_err err = rp_keep_begin_save(c->keep, &order, &outcome);
    return rp_machine_keep_result(&c->machine, err, outcome);
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

/* Training can go on without a checkpoint after a failed save, but these cases cannot. */
static bool needs_checkpoint(const rp_controller *c) {
    rp_split split;
    const bool scores = c->run->score.keep_best && rp_train_is_evaluation_due(c->train, &split);
    return scores || c->position.step == rp_train_end(c->train) || c->machine.interrupts > 0 ||
           c->way.follow.phase != RP_FOLLOW_NONE || rp_keep_saves_adopted(c->keep) ||
           rp_pause_is_round(c);
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
    RP_TRY(rp_pause_choose_next(c));
fail:
    return err;
}

/* ---- round ----------------------------------------------------------------------------------- */

rp_err rp_round_enter(rp_controller *c) {
    const rp_lane_end *lane = &c->env.lane;
    const rp_lane_report report = {.step = c->position.step,
                                   .samples = c->position.samples,
                                   .loss = rp_train_take_round_loss(c->train)};
    if (rp_keep_saved_step(c->keep) != c->position.step) {
        const rp_err err = rp_fail(RP_ERR_FAULT,
                                   "step %" PRIu64 " has no checkpoint, so this lane has nothing "
                                   "that could be averaged",
                                   c->position.step);
        return rp_machine_final(&c->machine, err);
    }
    return lane->kind->reach(lane->self, &report);
}

/* After the last round the averaged result also becomes this lane's weights file. */
rp_err rp_round_step(rp_controller *c) {
    const rp_lane_end *lane = &c->env.lane;
    char *path;
    bool answered = false;
    rp_err err;
    RP_TRY(lane->kind->answered(lane->self, c->position.step, &answered));
    if (!answered) {
        return RP_OK;
    }
    rp_arena_finish(&c->way.follow_arena);
    rp_arena_init(&c->way.follow_arena, "round", 0);
    RP_TRY(rp_keep_find(c->keep, &c->way.follow_arena, &path, &c->position));
    RP_TRY(c->position.step == rp_keep_saved_step(c->keep) && c->position.round > 0
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT,
                         "%s: is not the checkpoint that this lane's run has averaged", path));
    rp_keep_load_from(c->keep, path, RP_KEEP_CHECKPOINT);
    c->machine.renewed = c->position.step == rp_train_end(c->train);
    rp_keep_note_unsaved(c->keep, c->machine.renewed);
    rp_machine_enter(&c->machine, RP_CONTROL_LOAD);
fail:
    return err;
}
