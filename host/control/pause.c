/* Collects the facts for next_state.h at a pause and carries out its answer. A run is a list of
 * segments: the steps of an epoch or up to a checkpoint, an evaluation, a save. */
#include <inttypes.h>
#include <unistd.h>

#include "control/controller_own.h"
#include "control/next_state.h"
#include "setup/membership.h"
#include "train/pauses.h"

/* ---- pauses ---------------------------------------------------------------------------------- */

static rp_pauses pauses_of(const rp_controller *c) {
    const rp_runfile *run = c->run;
    const bool scores = run->data.count[rp_data_scored(&run->data)] > 0;
    return (rp_pauses){
        .step = c->position.step,
        .end = run->steps,
        .save_every = {run->epoch_steps, run->checkpoint_steps, run->record.histogram_steps,
                       run->score.eval_steps, c->env.lane.kind ? run->lanes.every : 0},
        .score_every = {scores ? run->score.eval_epochs * run->epoch_steps : 0,
                        scores ? run->score.eval_steps : 0},
        .look = c->way.look_step,
        .returns = c->recovery.in_a_row,
        .must_save = rp_train_stop_step(c->train) > 0 || c->machine.interrupts > 0 ||
                     c->recovery.in_a_row > 0 || c->way.follow.phase != RP_FOLLOW_NONE};
}

uint64_t rp_pause_next_step(const rp_controller *c, uint64_t copies) {
    const rp_pauses pauses = pauses_of(c);
    return rp_pauses_next(&pauses, copies);
}

/* If the pipes drain from here, they are empty before the next evaluation. In-flight
 * microbatches may pass the step of a checkpoint, because a later one is made, but not of
 * an evaluation. */
static bool may_drain(const rp_train *train, const rp_pauses *pauses) {
    return rp_train_drained_at(train) < rp_pauses_next_score(pauses);
}

bool rp_pause_is_round(const rp_controller *c) {
    const uint64_t step = c->position.step;
    if (!c->env.lane.kind || c->way.follow.phase != RP_FOLLOW_NONE) {
        return false;
    }
    const bool here = step % c->run->lanes.every == 0 || step == c->run->steps;
    return step > 0 && here && c->position.round == 0;
}

/* ---- another method -------------------------------------------------------------------------- */

/* The setup has another cut or other codecs, so the pipes are to drain. */
static void begin_drain(rp_plan_way *way, const rp_runfile *run) {
    way->follow = (rp_follow){.phase = RP_FOLLOW_DRAIN, .before = run->method.advance};
    way->advance_least = run->method.advance;
}

void rp_pause_follow_losses(rp_controller *c) {
    const uint64_t step = c->position.step;
    if (!rp_arrangement_waits_for_codecs(c->setup) || rp_train_drained_at(c->train) != step) {
        return;
    }
    if (c->way.follow.phase == RP_FOLLOW_NONE && step < rp_train_end(c->train)) {
        begin_drain(&c->way, c->run);
    }
    rp_arrangement_take_next_codecs(
        c->setup); /* also at the last step, for a run that is extended later */
}

/* Assigns stages by the new method; they are loaded from the checkpoint of this step. */
static rp_err reassign_stages(rp_controller *c) {
    char *path;
    rp_err err;
    rp_arena_finish(&c->way.follow_arena);
    rp_arena_init(&c->way.follow_arena, "follow", 0);
    RP_TRY(rp_keep_find(c->keep, &c->way.follow_arena, &path, &c->position));
    if (c->way.follow.of_advance) {
        rp_arrangement_take_advance(c->setup, &c->way.follow.choice);
    }
    rp_arrangement_begin_at(c->setup, c->position.step);
    rp_keep_load_from(c->keep, path, RP_KEEP_CHECKPOINT);
    c->way.follow.phase = RP_FOLLOW_ASSIGN;
    RP_TRY(rp_assign_again(c));
fail:
    return err;
}

static rp_err say_method(rp_follow *follow, const rp_arrangement *setup) {
    const bool changed = rp_arrangement_run(setup)->method.advance != follow->before;
    follow->phase = RP_FOLLOW_NONE;
    return changed ? rp_arrangement_say_advance(setup, follow->before) : RP_OK;
}

/* *pays: another cut is chosen, and the boards are to get it. */
static rp_err choose_cut(rp_controller *c, bool *pays) {
    const rp_pauses pauses = pauses_of(c);
    const uint64_t steps_left = rp_train_end(c->train) - c->position.step;
    rp_err err;
    RP_TRY(rp_replan_choose(c->setup, may_drain(c->train, &pauses), steps_left, pays));
    if (*pays) {
        begin_drain(&c->way, c->run);
    }
fail:
    return err;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* The centre is never trained itself, so its batch statistics are renewed before it is saved or
 * evaluated. */
static bool wants_statistics(const rp_runfile *run) {
    const rp_model *model = run->model;
    return run->method.kind->average != RP_AVERAGE_NONE && run->score.recalibrate > 0 &&
           rp_model_param_count(model, RP_PARAM_STATE, 0, model->layer_count) > 0;
}

static rp_next_pause facts_of(const rp_controller *c) {
    const uint64_t step = c->position.step;
    const bool over = step == rp_train_end(c->train);
    const rp_pauses pauses = pauses_of(c);
    const bool drains = may_drain(c->train, &pauses);
    rp_split split;
    const bool evaluates = rp_train_is_evaluation_due(c->train, &split);
    return (rp_next_pause){
        .state = c->machine.state,
        .trains = true,
        .interrupted = c->machine.interrupts > 0,
        .verify_due = rp_verify_is_due(c->train),
        .verify_alone = rp_verify_is_alone(c->train),
        .adopted = rp_keep_saves_adopted(c->keep),
        .unsaved = rp_keep_is_unsaved(c->keep),
        .copies_suffice = rp_pauses_need_no_save(&pauses) && rp_keep_copies_are_due(c->keep, step),
        .statistics_due = wants_statistics(c->run) && !c->machine.renewed && (evaluates || over),
        .round_due = rp_pause_is_round(c),
        .kept_here = rp_keep_saved_step(c->keep) == step,
        .is_over = over,
        .weights_missing = over && access(rp_folder_paths_of(c->folder)->weights, F_OK) != 0,
        .evaluation_due = evaluates,
        .ends_early = rp_train_stop_step(c->train) > step,
        .is_drained = rp_train_drained_at(c->train) == step,
        .new_method_saved = c->way.follow.phase == RP_FOLLOW_SAVE,
        .method_drains = c->way.follow.phase == RP_FOLLOW_DRAIN,
        .codecs_wanted = rp_arrangement_waits_for_codecs(c->setup) && drains,
        .links_due = rp_arrangement_wants_advance(c->setup) && step > 0 && !c->way.looked_at &&
                     drains, /* measuring drains the pipes for a few steps */
    };
}

static rp_err choose_in_training(rp_controller *c) {
    bool replanned = false;
    bool pays = false;
    bool none_joins = false;
    rp_err err = RP_OK;
    for (;;) { /* each answer that means "ask again" comes once */
        rp_next_pause facts = facts_of(c);
        facts.replanned = replanned;
        facts.replan_pays = pays;
        facts.none_joins = none_joins;
        const rp_next_answer next = rp_next_at_pause(&facts);
        switch (next.step) {
        case RP_NEXT_ENTER:
            rp_machine_enter(&c->machine, next.state);
            return RP_OK;
        case RP_NEXT_SAY_METHOD:
            RP_TRY(say_method(&c->way.follow, c->setup));
            break;
        case RP_NEXT_INTERRUPT:
            return rp_fail(RP_ERR_INTERRUPTED, "interrupted after step %" PRIu64, c->position.step);
        case RP_NEXT_REASSIGN:
            return reassign_stages(c);
        case RP_NEXT_REPLAN:
            RP_ASSERT(!replanned);
            RP_TRY(choose_cut(c, &pays));
            replanned = true;
            break;
        case RP_NEXT_JOIN:
            RP_ASSERT(!none_joins);
            if (facts.kept_here && rp_machine_may_grow(&c->machine) &&
                rp_membership_join(c->setup, c->machine.joined)) {
                rp_machine_enter(&c->machine, RP_CONTROL_RECOVER);
                return RP_OK;
            }
            none_joins = true;
            break;
        default:
            RP_ASSERT(next.step == RP_NEXT_FINISH);
            RP_TRY(rp_train_check_result(c->train, &c->machine.reported));
            rp_machine_enter(&c->machine, RP_CONTROL_CLOSE);
            return RP_OK;
        }
    }
fail:
    return err;
}

rp_err rp_pause_choose_next(rp_controller *c) {
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        return choose_in_training(c);
    }
    const bool passed = c->machine.state == RP_CONTROL_EVALUATE;
    const rp_next_pause facts = {.state = c->machine.state};
    rp_machine_enter(&c->machine, rp_next_at_pause(&facts).state);
    return passed ? rp_train_check_score(rp_position_score_of(&c->position, c->options.split),
                                         &c->machine.reported)
                  : RP_OK;
}
