/* At a pause: the facts by which next.h says what comes next, and that is carried out. A run is a
 * list of segments: an epoch or a checkpoint's steps, an evaluation, a save. */
#include <inttypes.h>
#include <unistd.h>

#include "control/controller_own.h"
#include "control/next.h"

static bool is_over(const rp_train *train, const rp_position *position) {
    return position->step == rp_train_end(train);
}

static bool has_statistics(const rp_model *model) {
    return rp_model_param_count(model, RP_PARAM_STATE, 0, model->layer_count) > 0;
}

/* A centre has never been trained itself, so its batch statistics are renewed before it is saved or
 * evaluated. */
static bool are_statistics_due(const rp_controller *c) {
    rp_split split;
    return c->run->method.kind->average != RP_AVERAGE_NONE && c->run->score.recalibrate > 0 &&
           has_statistics(c->run->model) && !c->machine.renewed &&
           (rp_train_is_evaluation_due(c->train, &split) || is_over(c->train, &c->position));
}

/* The boards get the stages that the method now asks for, filled from the checkpoint of here. */
static rp_err assign_anew(rp_controller *c) {
    char *path;
    rp_err err;
    rp_arena_finish(&c->way.follow_arena);
    rp_arena_init(&c->way.follow_arena, "follow", 0);
    RP_TRY(rp_keep_find(c->keep, &c->way.follow_arena, rp_arrangement_given(c->setup), &path,
                        &c->position));
    if (c->way.follow.of_advance) {
        rp_arrangement_take_advance(c->setup, &c->way.follow.choice);
    }
    rp_arrangement_begin_at(c->setup, c->position.step);
    rp_keep_load_from(c->keep, path, RP_KEEP_CHECKPOINT);
    c->way.follow.phase = RP_FOLLOW_ASSIGN;
    RP_TRY(rp_controller_assign_again(c));
fail:
    return err;
}

static rp_err say_method(rp_controller *c) {
    const uint32_t before = c->way.follow.before;
    c->way.follow.phase = RP_FOLLOW_NONE;
    return c->run->method.advance != before ? rp_arrangement_say_advance(c->setup, before) : RP_OK;
}

/* *pays: another cut is chosen, and the boards are to get it. */
static rp_err replan(rp_controller *c, bool *pays) {
    rp_err err;
    const bool may_drain = rp_controller_may_drain(c);
    RP_TRY(rp_replan_choose(c->setup, may_drain, rp_train_end(c->train) - c->position.step, pays));
    if (*pays) {
        c->way.follow = (rp_follow){.phase = RP_FOLLOW_DRAIN, .before = c->run->method.advance};
        c->way.advance_least = c->run->method.advance;
    }
fail:
    return err;
}

static rp_next_facts facts_of(const rp_controller *c) {
    const uint64_t step = c->position.step;
    const bool over = is_over(c->train, &c->position);
    const rp_pauses pauses = rp_controller_pauses(c);
    rp_split split;
    return (rp_next_facts){
        .place = RP_NEXT_AT_PAUSE,
        .state = c->machine.state,
        .trains = true,
        .interrupted = c->machine.interrupts > 0,
        .verify_due = rp_verify_is_due(c->train),
        .verify_alone = rp_verify_is_alone(c->train),
        .adopted = rp_keep_saves_adopted(c->keep),
        .unsaved = rp_keep_is_unsaved(c->keep),
        .copies_suffice = rp_pauses_need_no_save(&pauses) && rp_keep_copies_are_due(c->keep, step),
        .statistics_due = are_statistics_due(c),
        .round_due = rp_round_is_due(c),
        .kept_here = rp_keep_saved_step(c->keep) == step,
        .is_over = over,
        .weights_missing = over && access(rp_folder_paths_of(c->folder)->weights, F_OK) != 0,
        .evaluation_due = rp_train_is_evaluation_due(c->train, &split),
        .ends_early = rp_train_stop_step(c->train) > step,
        .is_drained = rp_train_drained_at(c->train) == step,
        .new_method_saved = c->way.follow.phase == RP_FOLLOW_SAVE,
        .method_drains = c->way.follow.phase == RP_FOLLOW_DRAIN,
        .codecs_wanted = rp_controller_wants_milder(c),
        .links_due = rp_controller_follows_links(c),
    };
}

static rp_err choose_in_training(rp_controller *c) {
    bool replanned = false;
    bool pays = false;
    bool none_joins = false;
    rp_err err = RP_OK;
    for (;;) { /* each answer that is asked again comes once */
        rp_next_facts facts = facts_of(c);
        facts.replanned = replanned;
        facts.replan_pays = pays;
        facts.none_joins = none_joins;
        const rp_next_answer next = rp_next(&facts);
        switch (next.step) {
        case RP_NEXT_ENTER:
            rp_machine_enter(&c->machine, next.state);
            return RP_OK;
        case RP_NEXT_SAY_METHOD:
            RP_TRY(say_method(c));
            break;
        case RP_NEXT_INTERRUPT:
            return rp_fail(RP_ERR_INTERRUPTED, "interrupted after step %" PRIu64, c->position.step);
        case RP_NEXT_REASSIGN:
            return assign_anew(c);
        case RP_NEXT_REPLAN:
            RP_ASSERT(!replanned);
            RP_TRY(replan(c, &pays));
            replanned = true;
            break;
        case RP_NEXT_JOIN:
            RP_ASSERT(!none_joins);
            if (rp_join_boards(c)) {
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

rp_err rp_controller_choose_next(rp_controller *c) {
    if (c->options.purpose == RP_PURPOSE_TRAIN) {
        return choose_in_training(c);
    }
    const bool passed = c->machine.state == RP_CONTROL_EVALUATE;
    const rp_next_facts facts = {.place = RP_NEXT_AT_PAUSE, .state = c->machine.state};
    rp_machine_enter(&c->machine, rp_next(&facts).state);
    return passed ? rp_train_check_score(rp_position_score_of(&c->position, c->options.split),
                                         &c->machine.reported)
                  : RP_OK;
}
