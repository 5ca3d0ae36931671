/* At a pause: what is due next. A run is a list of segments: an epoch or a checkpoint's steps, an
 * evaluation, a save. */
#include <inttypes.h>
#include <unistd.h>

#include "control/controller_own.h"

static bool is_over(const rp_controller *c) {
    return c->train.position.step == rp_controller_end(c);
}

/* Which part is to be scored here. With a validation part the test part is read once, at the end.
 */
bool rp_controller_evaluation_due(const rp_controller *c, rp_split *split) {
    const uint64_t step = c->train.position.step;
    const uint32_t *count = c->run.data.count;
    const bool by_epochs = step % c->run.epoch_steps == 0 && c->run.eval_epochs &&
                           step / c->run.epoch_steps % c->run.eval_epochs == 0;
    const bool by_steps = c->run.eval_steps && step % c->run.eval_steps == 0;
    if (step == 0 || (!is_over(c) && !by_epochs && !by_steps)) {
        return false;
    }
    *split = RP_SPLIT_VALIDATION;
    if (count[RP_SPLIT_VALIDATION] > 0 && !c->train.position.validation.done) {
        return true;
    }
    *split = RP_SPLIT_TEST;
    return count[RP_SPLIT_TEST] > 0 && !c->train.position.test.done &&
           (is_over(c) || rp_data_scored(&c->run.data) == RP_SPLIT_TEST);
}

/* A centre has never been trained itself, so its batch statistics are renewed before it is saved or
 * evaluated. */
static bool are_statistics_due(const rp_controller *c) {
    rp_split split;
    return c->run.method.kind->average != RP_AVERAGE_NONE && c->run.recalibrate > 0 &&
           c->train.has_statistics && !c->train.renewed &&
           (rp_controller_evaluation_due(c, &split) || is_over(c));
}

/* The boards get the stages that the method now asks for, filled from the checkpoint of here. */
static rp_err assign_anew(rp_controller *c) {
    char *path;
    rp_err err;
    rp_arena_finish(&c->setup.follow_arena);
    rp_arena_init(&c->setup.follow_arena, "follow", 0);
    RP_TRY(rp_checkpoint_find(&c->setup.follow_arena, &c->run, c->setup.given,
                              c->folder.checkpoints, &path, &c->train.position, c->keep.damaged));
    if (c->setup.follow.of_advance) {
        rp_controller_take_advance(c, &c->setup.follow.choice);
    }
    c->run.step_first = c->train.position.step;
    c->keep.load.path = path;
    c->keep.load.states = true;
    c->setup.follow.phase = RP_FOLLOW_ASSIGN;
    RP_TRY(rp_controller_assign_again(c));
fail:
    return err;
}

static rp_err end_following(rp_controller *c) {
    const uint32_t before = c->setup.follow.before;
    c->setup.follow.phase = RP_FOLLOW_NONE;
    return c->run.method.advance != before ? rp_controller_say_advance(c, before) : RP_OK;
}

/* Chooses another cut where that pays and where this pause has a checkpoint. *leaves: the run does
 * not go on from here. What was measured before the boards were loaded is of other boards, or of a
 * fault. */
static rp_err follow_boards(rp_controller *c, bool *leaves) {
    rp_err err;
    if (c->keep.save.kept_step != c->train.position.step || c->machine.state == RP_CONTROL_LOAD) {
        return RP_OK;
    }
    RP_TRY(rp_replan_choose(c, leaves));
    if (!*leaves) {
        return RP_OK;
    }
    c->setup.follow = (rp_follow){.phase = RP_FOLLOW_DRAIN, .before = c->run.method.advance};
    c->setup.advance_least = c->run.method.advance;
    if (rp_controller_drained_at(c) == c->train.position.step) {
        return assign_anew(c);
    }
    rp_controller_enter(c, RP_CONTROL_DRAIN);
fail:
    return err;
}

static rp_err choose_in_training(rp_controller *c) {
    rp_split split;
    rp_err err = RP_OK;
    if (c->train.verify.is_due) { /* before anything of the step is saved */
        rp_controller_enter(c, RP_CONTROL_VERIFY);
        return RP_OK;
    }
    if (c->train.verify.alone && c->machine.interrupts == 0) {
        rp_controller_enter(c, RP_CONTROL_TRAIN);
        return RP_OK;
    }
    if (c->keep.adopt.phase == RP_ADOPT_SAVE) {
        rp_controller_enter(c, RP_CONTROL_RECOVER); /* with the checkpoint that there is now */
        return RP_OK;
    }
    if (c->keep.unsaved && rp_controller_copies_suffice(c)) {
        rp_controller_enter(c, c->machine.state == RP_CONTROL_COPY ? RP_CONTROL_TRAIN
                                                                   : RP_CONTROL_COPY);
        return RP_OK;
    }
    if (c->keep.unsaved) {
        rp_controller_enter(c, are_statistics_due(c) ? RP_CONTROL_STATISTICS : RP_CONTROL_SAVE);
        return RP_OK;
    }
    if (c->setup.follow.phase == RP_FOLLOW_SAVE) {
        RP_TRY(end_following(c));
    }
    if (c->machine.interrupts > 0) {
        return rp_fail(RP_ERR_INTERRUPTED, "interrupted after step %" PRIu64,
                       c->train.position.step);
    }
    if (rp_round_is_due(c)) {
        rp_controller_enter(c, RP_CONTROL_ROUND);
        return RP_OK;
    }
    if (c->setup.follow.phase == RP_FOLLOW_DRAIN) {
        return assign_anew(c);
    }
    bool leaves = false;
    if (c->train.stop_step <= c->train.position.step && !is_over(c)) {
        RP_TRY(follow_boards(c, &leaves));
    }
    if (leaves) {
        return RP_OK;
    }
    if (c->train.stop_step > c->train.position.step) {
        rp_controller_enter(c, RP_CONTROL_DRAIN); /* to an early end */
        return RP_OK;
    }
    if (is_over(c) && access(c->folder.weights, F_OK) != 0) {
        rp_controller_enter(c, RP_CONTROL_SAVE); /* resumed at its end without a weights file */
    } else if (rp_controller_evaluation_due(c, &split)) {
        rp_controller_enter(c, RP_CONTROL_EVALUATE);
    } else if (is_over(c)) {
        RP_TRY(rp_finite_check_end(c));
        rp_controller_enter(c, RP_CONTROL_CLOSE);
    } else if (rp_away_join(c)) {
        rp_controller_enter(c, RP_CONTROL_RECOVER);
    } else if (rp_controller_wants_milder(c)) {
        rp_controller_enter(c, RP_CONTROL_DRAIN);
    } else {
        rp_controller_enter(c, rp_controller_follows_links(c) ? RP_CONTROL_PLAN : RP_CONTROL_TRAIN);
    }
fail:
    return err;
}

rp_err rp_controller_choose_next(rp_controller *c) {
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        return choose_in_training(c);
    }
    const bool passed = c->machine.state == RP_CONTROL_EVALUATE;
    rp_controller_enter(c, passed ? RP_CONTROL_CLOSE : RP_CONTROL_EVALUATE);
    return passed ? rp_finite_check_score(
                        c, rp_position_score_of(&c->train.position, c->options.split))
                  : RP_OK;
}
