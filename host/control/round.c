/* The state `round`: a lane has written the checkpoint of a round and waits until the run has
 * averaged it with those of the other lanes. Then the boards get it back and go on. */
#include <inttypes.h>
#include <stdio.h>

#include "control/controller_own.h"

bool rp_round_is_due(const rp_controller *c) {
    const uint64_t step = c->position.step;
    if (!c->env.lane.kind || c->way.follow.phase != RP_FOLLOW_NONE) {
        return false;
    }
    const bool here = step % c->run->lanes.every == 0 || step == c->run->steps;
    return step > 0 && here && c->position.round == 0;
}

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

/* The result of the last round is this lane's, too: its weights file gets it. */
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
    RP_TRY(rp_keep_find(c->keep, &c->way.follow_arena, rp_arrangement_given(c->setup), &path,
                        &c->position));
    RP_TRY(c->position.step == rp_keep_saved_step(c->keep) && c->position.round > 0
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: is not what this lane's run has averaged", path));
    rp_keep_load_from(c->keep, path, RP_KEEP_CHECKPOINT);
    c->machine.renewed = c->position.step == rp_train_end(c->train);
    rp_keep_note_unsaved(c->keep, c->machine.renewed);
    rp_machine_enter(&c->machine, RP_CONTROL_LOAD);
fail:
    return err;
}

rp_err rp_round_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT,
                   "the other lanes have not ended the round of step %" PRIu64 " within %" PRId64
                   " s",
                   c->position.step, c->machine.timeout_ns / RP_NS_PER_S);
}
