/* What the planner is asked of boards and cut. `plan.boards: auto`: once the boards of a run that
 * begins are measured, the ring has those with which a step is shortest, in the order that the
 * planner says; the others become spares. With `plan.share` boards may share a stage: then the plan
 * is as one that is given. */
#include <stdio.h>
#include <string.h>

#include "control/controller_own.h"
#include "planning/planfile.h"

/* Of a step, that other boards have to save: what was measured twice is never the same. */
static const double GAIN = 0.05;

/* Not in a run that has begun, nor with a cut that stays. Boards that dial have the neighbours that
 * the roster gives them. */
static bool may_arrange(const rp_controller *c) {
    bool all = (c->run.boards_auto || c->run.plan_share > 1) && c->run.cut_auto &&
               !c->setup.given && rp_measure_has_profile(c->measure) &&
               c->options.purpose != RP_PURPOSE_EVALUATE && !c->machine.begun &&
               c->train.position.setup.cut.stage_count == 0 && c->ring.count == c->run.boards;
    for (uint32_t k = 0; all && c->run.roster && k < c->run.boards; k++) {
        all = !c->run.roster[k].dials;
    }
    return all;
}

/* With the schedule that `now` has: another one is chosen for any ring. */
static double cut_s(const rp_joint_plan *plan) {
    return plan->own_s > 0 ? plan->own_s : plan->step_s;
}

static rp_err say(rp_controller *c, const rp_joint_answer *answer) {
    const rp_joint_plan *best = &answer->plan[0];
    char text[480];
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "%u of %u boards, %.4g ms a step by prediction in place of %.4g ms:", best->count,
        answer->now.count, 1e3 * cut_s(best), 1e3 * answer->now.step_s);
    for (uint32_t k = 0; k < c->run.boards && used < 200; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, " %.40s", c->ring.board[k].name);
    }
    if (rp_joint_is_shared(best)) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "; %u stages, some of them shared", best->stages);
    }
    if (best->count < answer->now.count) {
        used += (size_t)snprintf(text + used, sizeof text - used, "; the others are spares");
    }
    (void)snprintf(text + used, sizeof text - used, "; then %s", best->limits);
    return rp_folder_record(c->folder) ? rp_record_event(rp_folder_record(c->folder), "boards",
                                                         c->train.position.step, text)
                                       : RP_OK;
}

/* For `ringpipe plan`: the ring that it shows is the new one. One of the two is NULL. */
static rp_err keep_words(rp_controller *c, const rp_joint_answer *answer,
                         const rp_split_answer *split) {
    const char *name[RP_JOINT_BOARDS_MAX];
    char text[4096] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    if (!file) {
        return rp_fail(RP_ERR_MEMORY, "no memory for what is said of the plan");
    }
    for (uint32_t k = 0; k < c->ring.count; k++) {
        name[k] = c->ring.board[k].name;
    }
    if (split) {
        rp_split_say(file, split, name);
    } else {
        rp_joint_say(file, answer, name);
    }
    (void)fclose(file);
    return rp_arena_printf(&c->arena, &c->setup.plan_words, "%s", text);
}

/* Places of the ring as it is, in the new order; the others leave from the last one on. */
static rp_err arrange(rp_controller *c, const rp_joint_plan *best) {
    rp_roster_entry entry[RP_JOINT_BOARDS_MAX];
    uint32_t at[RP_JOINT_BOARDS_MAX]; /* among those that stay */
    for (uint32_t k = 0; k < best->count; k++) {
        entry[k] = c->run.roster[best->place[k]];
        at[k] = 0;
        for (uint32_t i = 0; i < best->count; i++) {
            at[k] += best->place[i] < best->place[k];
        }
    }
    for (uint32_t place = c->ring.count; place-- > 0;) {
        bool stays = false;
        for (uint32_t k = 0; k < best->count; k++) {
            stays = stays || best->place[k] == place;
        }
        if (!stays) {
            rp_setup_put_aside(c, place);
            rp_ring_leave(&c->ring, place);
        }
    }
    for (uint32_t k = 0; k < best->count; k++) {
        c->setup.now.roster[k] = entry[k];
        c->setup.now.roster[k].place = k;
    }
    c->setup.now.stages = rp_method_stages(&c->run.method, c->run.boards);
    rp_setup_refresh(c);
    return rp_ring_reorder(&c->ring, at);
}

/* Stages that boards share: from here on the plan is as one that somebody has given. Of boards that
 * were chosen just now the cuts and groups are looked at more closely. */
static rp_err share_stages(rp_controller *c, rp_joint_answer *answer) {
    rp_joint_answer closer;
    rp_err err = RP_OK;
    if (c->run.boards_auto) {
        const rp_joint_ask ask = rp_shares_ask(c);
        RP_TRY(rp_joint_search(&ask, &closer));
        const bool better = closer.is_known && rp_joint_is_shared(&closer.plan[0]);
        *answer = better ? closer : *answer;
    }
    const rp_trial_plan best = rp_trial_plan_of(&answer->plan[0]);
    RP_TRY(rp_shares_take(c, &best));
    rp_trials_open(c, &answer->plan[0], answer);
fail:
    return err;
}

rp_err rp_controller_find_cut(rp_controller *c, rp_arena *arena, rp_joint_answer *answer,
                              rp_cut *cut) {
    uint32_t *first;
    rp_err err;
    rp_joint_ask ask =
        rp_measure_joint_ask(c->measure, rp_setup_may_choose_codecs(&c->setup, &c->run));
    ask.boards_open = false;
    ask.share_most = 1;
    ask.cuts_open = true;
    RP_TRY(rp_joint_search(&ask, answer));
    if (!answer->is_known) {
        return c->run.method.kind->splits
                   ? rp_halves_cut(arena, &c->run, rp_measure_profile(c->measure), cut, NULL)
                   : rp_cost_choose_cut_by_board(arena, &c->run, rp_measure_profile(c->measure),
                                                 cut);
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)c->run.stages + 1, &first));
    memcpy(first, answer->plan[0].first, ((size_t)c->run.stages + 1) * sizeof *first);
    *cut = (rp_cut){.stage_count = c->run.stages, .first = first};
fail:
    return err;
}

rp_err rp_controller_take_micro(rp_controller *c, const rp_joint_answer *answer) {
    const uint32_t before = c->run.micro;
    char text[240];
    rp_err err = RP_OK;
    if (!c->run.micro_auto) {
        return RP_OK;
    }
    c->setup.now.micro_auto = false; /* once in a run */
    if (answer && answer->is_known) {
        c->setup.now.micro = answer->with_micro;
        rp_measure_set_micro(c->measure, answer->with_micro);
    }
    RP_TRY(rp_setup_settle(c));
    (void)snprintf(text, sizeof text, "microbatches of %u samples: %s", c->run.micro,
                   !answer || !answer->is_known ? "nothing was measured that says more"
                   : c->run.micro == before     ? "no other size saves 1 % of a step by prediction"
                                                : "a step is shortest with them by prediction");
    RP_TRY(rp_folder_record(c->folder) ? rp_record_event(rp_folder_record(c->folder), "microbatch",
                                                         c->train.position.step, text)
                                       : RP_OK);
fail:
    return err;
}

/* From here on the ring is another one. */
static void note_ring(rp_controller *c) {
    rp_measure_place(c->measure);
    if (rp_folder_record(c->folder)) {
        rp_record_take_boards(rp_folder_record(c->folder), c->run.boards, c->run.stages);
    }
}

/* The ring has its boards for the whole run. */
static rp_err settle(rp_controller *c) {
    rp_err err;
    c->setup.now.boards_auto = false; /* once in a run */
    RP_TRY(rp_setup_settle(c));
    RP_TRY(c->setup.given ? RP_OK : rp_runfile_check_cut(&c->run));
fail:
    return err;
}

/* The run file as it is resolved says which stages are split: boards see it there, and a run that
 * is resumed. */
static rp_err take_split(rp_controller *c, const rp_split_answer *answer) {
    rp_setup *now = &c->setup.now;
    if (answer->whole == now->whole) {
        return RP_OK;
    }
    now->whole = now->said_whole = answer->whole;
    now->split_count = now->said_count = answer->stages;
    return rp_setup_settle(c);
}

/* Which boards have forwards and which have backwards, where stages are split. */
static rp_err arrange_halves(rp_controller *c) {
    rp_split_answer answer;
    rp_err err;
    const rp_split_ask ask = rp_measure_split_ask(c->measure);
    RP_TRY(rp_split_choose(&ask, &answer));
    RP_TRY(answer.is_known ? keep_words(c, NULL, &answer) : RP_OK);
    if (answer.is_allowed && answer.step_s < (1 - GAIN) * answer.now_s) {
        rp_joint_plan best = {.count = answer.count, .stages = answer.count};
        rp_joint_answer as = {.now = {.count = c->ring.count, .step_s = answer.now_s}};
        memcpy(best.place, answer.place, best.count * sizeof *best.place);
        best.step_s = answer.step_s;
        (void)snprintf(best.limits, sizeof best.limits,
                       "the first %s of them have forwards%s, the others backwards",
                       answer.whole ? "ones" : "half",
                       answer.whole ? ", and all else of stages that are not split" : "");
        as.plan[0] = best;
        RP_TRY(take_split(c, &answer));
        RP_TRY(arrange(c, &best));
        note_ring(c);
        RP_TRY(say(c, &as));
    }
    RP_TRY(settle(c));
fail:
    return err;
}

rp_err rp_arrange_ring(rp_controller *c) {
    rp_joint_answer answer;
    rp_err err = RP_OK;
    if (!may_arrange(c)) {
        return RP_OK;
    }
    if (c->run.method.kind->splits && c->run.boards_auto) {
        return arrange_halves(c);
    }
    rp_joint_ask ask =
        rp_measure_joint_ask(c->measure, rp_setup_may_choose_codecs(&c->setup, &c->run));
    ask.boards_open = c->run.boards_auto;
    ask.cuts_open = !ask.boards_open;
    RP_TRY(rp_joint_search(&ask, &answer));
    RP_TRY(answer.is_known ? keep_words(c, &answer, NULL) : RP_OK);
    if (answer.is_known && !rp_joint_is_ring(&answer.plan[0], c->ring.count) &&
        cut_s(&answer.plan[0]) < (1 - GAIN) * answer.now.step_s) {
        RP_TRY(rp_controller_take_micro(c, &answer));
        RP_TRY(c->run.boards_auto ? arrange(c, &answer.plan[0]) : RP_OK);
        rp_measure_place(c->measure);
        if (rp_joint_is_shared(&answer.plan[0])) {
            RP_TRY(rp_schedule_take(c, &answer));
            const rp_joint_answer all = answer;
            RP_TRY(share_stages(c, &answer));
            answer.now = all.now; /* of all boards */
        }
        note_ring(c);
        RP_TRY(say(c, &answer));
    }
    RP_TRY(settle(c));
fail:
    return err;
}
