/* What the planner is asked of boards and cut. `plan.boards: auto`: once the boards of a run that
 * begins are measured, the ring has those with which a step is shortest, in the order that the
 * planner says; the others become spares. With `plan.share` boards may share a stage: then the plan
 * is as one that is given. */
#include <stdio.h>
#include <string.h>

#include "planning/planfile.h"
#include "setup/setup_own.h"

/* Of a step, that other boards have to save: what was measured twice is never the same. */
static const double GAIN = 0.05;

/* Not in a run that has begun, nor with a cut that stays. Boards that dial have the neighbours that
 * the roster gives them. */
static bool may_arrange(const rp_arrangement *a) {
    bool all = (a->run.boards_auto || a->run.plan.share > 1) && a->run.cut_auto && !a->given &&
               rp_measure_has_profile(a->measure) && !a->evaluates && !a->has_begun &&
               a->position->setup.cut.stage_count == 0 && a->ring->count == a->run.boards;
    for (uint32_t k = 0; all && a->run.roster && k < a->run.boards; k++) {
        all = !a->run.roster[k].dials;
    }
    return all;
}

/* With the schedule that `now` has: another one is chosen for any ring. */
static double cut_s(const rp_joint_plan *plan) {
    return plan->own_s > 0 ? plan->own_s : plan->step_s;
}

static rp_err say(rp_arrangement *a, const rp_joint_answer *answer) {
    const rp_joint_plan *best = &answer->plan[0];
    char text[480];
    size_t used = (size_t)snprintf(
        text, sizeof text,
        "%u of %u boards, %.4g ms a step by prediction in place of %.4g ms:", best->count,
        answer->now.count, 1e3 * cut_s(best), 1e3 * answer->now.step_s);
    for (uint32_t k = 0; k < a->run.boards && used < 200; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, " %.40s", a->ring->board[k].name);
    }
    if (rp_joint_is_shared(best)) {
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "; %u stages, some of them shared", best->stages);
    }
    if (best->count < answer->now.count) {
        used += (size_t)snprintf(text + used, sizeof text - used, "; the others are spares");
    }
    (void)snprintf(text + used, sizeof text - used, "; then %s", best->limits);
    return rp_folder_record(a->folder)
               ? rp_record_event(rp_folder_record(a->folder), "boards", a->position->step, text)
               : RP_OK;
}

/* For `ringpipe plan`: the ring that it shows is the new one. One of the two is NULL. */
static rp_err keep_words(rp_arrangement *a, const rp_joint_answer *answer,
                         const rp_split_answer *split) {
    const char *name[RP_JOINT_BOARDS_MAX];
    char text[4096] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    if (!file) {
        return rp_fail(RP_ERR_MEMORY, "no memory for what is said of the plan");
    }
    for (uint32_t k = 0; k < a->ring->count; k++) {
        name[k] = a->ring->board[k].name;
    }
    if (split) {
        rp_split_say(file, split, name);
    } else {
        rp_joint_say(file, answer, name);
    }
    (void)fclose(file);
    return rp_arena_printf(a->arena, &a->plan_words, "%s", text);
}

/* Places of the ring as it is, in the new order; the others leave from the last one on. */
static rp_err arrange(rp_arrangement *a, const rp_joint_plan *best) {
    RP_ASSERT(best->count > 0 && best->count <= a->ring->count && !a->has_begun);
    RP_ASSERT(a->ring->count == a->now.boards);
    rp_roster_entry entry[RP_JOINT_BOARDS_MAX];
    uint32_t at[RP_JOINT_BOARDS_MAX]; /* among those that stay */
    for (uint32_t k = 0; k < best->count; k++) {
        entry[k] = a->run.roster[best->place[k]];
        at[k] = 0;
        for (uint32_t i = 0; i < best->count; i++) {
            at[k] += best->place[i] < best->place[k];
        }
    }
    for (uint32_t place = a->ring->count; place-- > 0;) {
        bool stays = false;
        for (uint32_t k = 0; k < best->count; k++) {
            stays = stays || best->place[k] == place;
        }
        if (!stays) {
            rp_arrangement_put_aside(a, place);
            rp_ring_leave(a->ring, place);
        }
    }
    for (uint32_t k = 0; k < best->count; k++) {
        a->now.roster[k] = entry[k];
        a->now.roster[k].place = k;
    }
    a->now.stages = rp_method_stages(&a->run.method, a->run.boards);
    rp_arrangement_refresh(a);
    RP_ASSERT(a->run.boards == best->count);
    return rp_ring_reorder(a->ring, at);
}

/* Stages that boards share: from here on the plan is as one that somebody has given. Of boards that
 * were chosen just now the cuts and groups are looked at more closely. */
static rp_err share_stages(rp_arrangement *a, rp_joint_answer *answer) {
    rp_joint_answer closer;
    rp_err err = RP_OK;
    if (a->run.boards_auto) {
        const rp_joint_ask ask = rp_shares_ask(a);
        RP_TRY(rp_joint_search(&ask, &closer));
        const bool better = closer.is_known && rp_joint_is_shared(&closer.plan[0]);
        *answer = better ? closer : *answer;
    }
    RP_TRY(rp_shares_take(a, &answer->plan[0]));
fail:
    return err;
}

rp_err rp_arrangement_find_cut(rp_arrangement *a, rp_arena *arena, rp_joint_answer *answer,
                               rp_cut *cut) {
    uint32_t *first;
    rp_err err;
    rp_joint_ask ask = rp_measure_joint_ask(a->measure, rp_codecs_may_change(a));
    ask.boards_open = false;
    ask.share_most = 1;
    ask.cuts_open = true;
    RP_TRY(rp_joint_search(&ask, answer));
    if (!answer->is_known) {
        return a->run.method.kind->splits
                   ? rp_halves_cut(arena, &a->run, rp_measure_profile(a->measure), cut, NULL)
                   : rp_cost_choose_cut_by_board(arena, &a->run, rp_measure_profile(a->measure),
                                                 cut);
    }
    RP_TRY(RP_ARENA_NEW(arena, (size_t)a->run.stages + 1, &first));
    memcpy(first, answer->plan[0].first, ((size_t)a->run.stages + 1) * sizeof *first);
    *cut = (rp_cut){.stage_count = a->run.stages, .first = first};
fail:
    return err;
}

rp_err rp_arrangement_take_micro(rp_arrangement *a, const rp_joint_answer *answer) {
    const uint32_t before = a->run.micro;
    char text[240];
    rp_err err = RP_OK;
    if (!a->run.micro_auto) {
        return RP_OK;
    }
    RP_ASSERT(!answer || !answer->is_known ||
              (answer->with_micro > 0 && answer->with_micro <= a->run.batch));
    a->now.micro_auto = false; /* once in a run */
    if (answer && answer->is_known) {
        a->now.micro = answer->with_micro;
        rp_measure_set_micro(a->measure, answer->with_micro);
    }
    RP_TRY(rp_arrangement_settle(a));
    (void)snprintf(text, sizeof text, "microbatches of %u samples: %s", a->run.micro,
                   !answer || !answer->is_known ? "nothing was measured that says more"
                   : a->run.micro == before     ? "no other size saves 1 % of a step by prediction"
                                                : "a step is shortest with them by prediction");
    RP_TRY(rp_folder_record(a->folder)
               ? rp_record_event(rp_folder_record(a->folder), "microbatch", a->position->step, text)
               : RP_OK);
fail:
    return err;
}

/* From here on the ring is another one. */
static void note_ring(rp_arrangement *a) {
    RP_ASSERT(a->ring->count == a->run.boards);
    rp_measure_place(a->measure);
    if (rp_folder_record(a->folder)) {
        rp_record_take_boards(rp_folder_record(a->folder), a->run.boards, a->run.stages);
    }
}

/* The ring has its boards for the whole run. */
static rp_err settle(rp_arrangement *a) {
    rp_err err;
    a->now.boards_auto = false; /* once in a run */
    RP_TRY(rp_arrangement_settle(a));
    RP_TRY(a->given ? RP_OK : rp_runfile_check_cut(&a->run));
fail:
    return err;
}

/* The run file as it is resolved says which stages are split: boards see it there, and a run that
 * is resumed. */
static rp_err take_split(rp_arrangement *a, const rp_split_answer *answer) {
    RP_ASSERT(answer->stages > 0 && answer->stages <= RP_SPLIT_STAGES_MAX);
    rp_setup *now = &a->now;
    if (answer->whole == now->whole) {
        return RP_OK;
    }
    now->whole = now->said_whole = answer->whole;
    now->split_count = now->said_count = answer->stages;
    return rp_arrangement_settle(a);
}

/* Which boards have forwards and which have backwards, where stages are split. */
static rp_err arrange_halves(rp_arrangement *a) {
    rp_split_answer answer;
    rp_err err;
    const rp_split_ask ask = rp_measure_split_ask(a->measure);
    RP_TRY(rp_split_choose(&ask, &answer));
    RP_TRY(answer.is_known ? keep_words(a, NULL, &answer) : RP_OK);
    if (answer.is_allowed && answer.step_s < (1 - GAIN) * answer.now_s) {
        rp_joint_plan best = {.count = answer.count, .stages = answer.count};
        rp_joint_answer as = {.now = {.count = a->ring->count, .step_s = answer.now_s}};
        memcpy(best.place, answer.place, best.count * sizeof *best.place);
        best.step_s = answer.step_s;
        (void)snprintf(best.limits, sizeof best.limits,
                       "the first %s of them have forwards%s, the others backwards",
                       answer.whole ? "ones" : "half",
                       answer.whole ? ", and all else of stages that are not split" : "");
        as.plan[0] = best;
        RP_TRY(take_split(a, &answer));
        RP_TRY(arrange(a, &best));
        note_ring(a);
        RP_TRY(say(a, &as));
    }
    RP_TRY(settle(a));
fail:
    return err;
}

rp_err rp_arrange_ring(rp_arrangement *a) {
    rp_joint_answer answer;
    rp_err err = RP_OK;
    if (!may_arrange(a)) {
        return RP_OK;
    }
    if (a->run.method.kind->splits && a->run.boards_auto) {
        return arrange_halves(a);
    }
    rp_joint_ask ask = rp_measure_joint_ask(a->measure, rp_codecs_may_change(a));
    ask.boards_open = a->run.boards_auto;
    ask.cuts_open = !ask.boards_open;
    RP_TRY(rp_joint_search(&ask, &answer));
    RP_TRY(answer.is_known ? keep_words(a, &answer, NULL) : RP_OK);
    if (answer.is_known && !rp_joint_is_ring(&answer.plan[0], a->ring->count) &&
        cut_s(&answer.plan[0]) < (1 - GAIN) * answer.now.step_s) {
        RP_TRY(rp_arrangement_take_micro(a, &answer));
        RP_TRY(a->run.boards_auto ? arrange(a, &answer.plan[0]) : RP_OK);
        rp_measure_place(a->measure);
        if (rp_joint_is_shared(&answer.plan[0])) {
            RP_TRY(rp_schedule_take(a, &answer));
            const rp_joint_answer all = answer;
            RP_TRY(share_stages(a, &answer));
            answer.now = all.now; /* of all boards */
        }
        note_ring(a);
        RP_TRY(say(a, &answer));
    }
    RP_TRY(settle(a));
fail:
    return err;
}
