/* The state `round`: a lane has written the checkpoint of a round and waits until the run has
 * averaged it with those of the other lanes. Then the boards get it back and go on. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "control/controller_own.h"

bool rp_round_is_due(const rp_controller *c) {
    const uint64_t step = c->position.step;
    if (!c->env.lane.kind || c->follow.phase != RP_FOLLOW_NONE) {
        return false;
    }
    const bool here = step % c->run.lanes.every == 0 || step == c->run.steps;
    return step > 0 && here && c->position.round == 0;
}

rp_err rp_round_enter(rp_controller *c) {
    const rp_lane_end *lane = &c->env.lane;
    const rp_lane_report report = {
        .step = c->position.step,
        .samples = c->position.samples,
        .loss = c->round.samples > 0 ? c->round.loss / (double)c->round.samples : NAN};
    c->round = (rp_round_sums){0};
    if (c->save.kept_step != c->position.step) {
        const rp_err err = rp_fail(RP_ERR_FAULT,
                                   "step %" PRIu64 " has no checkpoint, so this lane has nothing "
                                   "that could be averaged",
                                   c->position.step);
        return rp_controller_final(c, err);
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
    rp_arena_finish(&c->follow_arena);
    rp_arena_init(&c->follow_arena, "round", 0);
    RP_TRY(rp_checkpoint_find(&c->follow_arena, &c->run, c->given, c->checkpoints, &path,
                              &c->position, c->damaged));
    RP_TRY(c->position.step == c->save.kept_step && c->position.round > 0
               ? RP_OK
               : rp_fail(RP_ERR_FORMAT, "%s: is not what this lane's run has averaged", path));
    c->load.path = path;
    c->load.states = true;
    c->unsaved = c->renewed = c->position.step == rp_controller_end(c);
    rp_controller_enter(c, RP_CONTROL_LOAD);
fail:
    return err;
}

rp_err rp_round_late(const rp_controller *c) {
    return rp_fail(RP_ERR_TIMEOUT,
                   "the other lanes have not ended the round of step %" PRIu64 " within %" PRId64
                   " s",
                   c->position.step, c->timeout_ns / RP_NS_PER_S);
}
