/* `plan.boards: auto`: once a new run has measured its boards, the planner chooses the boards and
 * order with the shortest step; all other boards become spares. With `plan.share` boards may share
 * a stage. */
#include <stdio.h>
#include <string.h>

#include "planning/split_choice.h"
#include "run/spares.h"
#include "setup/choice.h"

/* Minimum predicted gain, as a fraction of a step. Smaller gains are measurement noise. */
static const double GAIN = 0.05;

/* Boards may be chosen: the run is new and the cut is open. The neighbours of boards that dial are
 * fixed by the roster. */
static bool may_arrange(const rp_choice *c) {
    const rp_setup_facts *facts = c->facts;
    bool all = (c->run.boards_auto || c->run.plan.share > 1) && c->run.cut_auto &&
               !rp_choice_is_fixed(c) && facts->profile && !facts->evaluates && !facts->has_begun &&
               !(facts->then && facts->then->stage_count > 0);
    for (uint32_t k = 0; all && c->next.roster && k < c->next.boards; k++) {
        all = !c->next.roster[k].dials;
    }
    return all;
}

/* Step time with the run's current schedule, because another schedule would help any ring. */
static double cut_s(const rp_joint_plan *plan) {
    return plan->own_s > 0 ? plan->own_s : plan->step_s;
}

static rp_err say_boards(rp_choice *c, const rp_joint_plan *best, const rp_joint_plan *now) {
    char names[400] = "";
    size_t used = 0;
    for (uint32_t k = 0; k < c->next.boards && used < sizeof names; k++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", k ? " " : "",
                                 rp_choice_name(c, k));
    }
    return rp_choice_say(
        c, &(rp_run_event){.kind = RP_EVENT_BOARDS,
                           .boards = names,
                           .board_count = best->count,
                           .boards_before = now->count,
                           .step_s = cut_s(best),
                           .step_before_s = now->step_s,
                           .stages = rp_joint_is_shared(best) ? best->stages : 0,
                           .spares = best->count < now->count ? now->count - best->count : 0,
                           .limits = best->limits});
}

/* Keeps the planner's text for `ringpipe plan`, which shows the new ring. Either `answer` or
 * `split` is NULL. */
static rp_err keep_words(rp_choice *c, const rp_joint_answer *answer,
                         const rp_split_answer *split) {
    char text[4096] = "";
    char *words;
    FILE *file = fmemopen(text, sizeof text, "w");
    if (!file) {
        return rp_fail(RP_ERR_MEMORY, "no memory for the description of the plan");
    }
    if (split) {
        rp_split_say(file, split, c->facts->name);
    } else {
        rp_joint_say(file, answer, c->facts->name);
    }
    (void)fclose(file);
    const rp_err err = rp_arena_string(c->arena, text, &words);
    c->why->boards = err == RP_OK ? words : NULL;
    return err;
}

/* Keeps these places of the ring, in this order; all other boards become spares. */
static rp_err take_boards(rp_choice *c, const uint32_t *place, uint32_t count) {
    rp_setup *next = &c->next;
    const rp_roster_entry *was = next->roster;
    rp_roster_entry *roster;
    rp_err err;
    RP_ASSERT(was && count > 0 && count <= next->boards && !c->facts->has_begun);
    RP_TRY(RP_ARENA_NEW(c->arena, next->boards + next->spares, &roster));
    memcpy(roster, was, (next->boards + next->spares) * sizeof *roster);
    for (uint32_t at = next->boards; at-- > 0;) {
        bool stays = false;
        for (uint32_t k = 0; k < count; k++) {
            stays = stays || place[k] == at;
        }
        if (!stays) {
            rp_spares_put_aside(roster, &next->boards, &next->spares, at);
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        roster[k] = was[place[k]];
        roster[k].place = k;
    }
    next->roster = roster;
    next->stages = rp_method_stages(&c->run.method, next->boards);
    rp_choice_refresh(c);
    RP_ASSERT(c->run.boards == count);
fail:
    return err;
}

/* Boards are now fixed for the whole run. */
static rp_err fix_boards(rp_choice *c) {
    c->next.boards_auto = false; /* chosen once in a run */
    rp_choice_refresh(c);
    return rp_choice_is_fixed(c) ? RP_OK : rp_runfile_check_cut(&c->run);
}

static void take_split(rp_choice *c, const rp_split_answer *answer) {
    rp_setup *next = &c->next;
    RP_ASSERT(answer->stages > 0 && answer->stages <= RP_SPLIT_STAGES_MAX);
    if (answer->whole != next->whole) {
        next->whole = next->said_whole = answer->whole;
        next->split_count = next->said_count = answer->stages;
        rp_choice_refresh(c);
    }
}

/* Chooses which boards do forwards and which backwards, where stages are split. */
static rp_err arrange_halves(rp_choice *c) {
    const rp_joint_ask own = rp_choice_ask(c);
    const rp_split_ask ask = {.run = own.run,
                              .profile = own.profile,
                              .delay_s = own.delay_s,
                              .clock = own.clock,
                              .limit_ns = own.limit_ns};
    rp_split_answer answer;
    rp_err err;
    RP_TRY(rp_split_choose(&ask, &answer));
    RP_TRY(answer.is_known ? keep_words(c, NULL, &answer) : RP_OK);
    if (answer.is_allowed && answer.step_s < (1 - GAIN) * answer.now_s) {
        rp_joint_plan best = {
            .count = answer.count, .stages = answer.count, .step_s = answer.step_s};
        const rp_joint_plan now = {.count = c->next.boards, .step_s = answer.now_s};
        (void)snprintf(best.limits, sizeof best.limits,
                       "the first %s of them have forwards%s, the remaining ones backwards",
                       answer.whole ? "ones" : "half",
                       answer.whole ? ", and all else of stages that are not split" : "");
        take_split(c, &answer);
        RP_TRY(take_boards(c, answer.place, answer.count));
        RP_TRY(say_boards(c, &best, &now));
    }
    RP_TRY(fix_boards(c));
fail:
    return err;
}

/* Takes the best plan with shared stages; if boards were just chosen, searches cuts and groups for
 * them again. */
static rp_err share_stages(rp_choice *c, bool boards_open, rp_joint_plan *best) {
    rp_joint_answer closer;
    rp_err err = RP_OK;
    if (boards_open) {
        rp_joint_ask ask = rp_choice_ask(c);
        ask.codecs_open = c->run.codec_auto;
        RP_TRY(rp_joint_search(&ask, &closer));
        const bool better = closer.is_known && rp_joint_is_shared(&closer.plan[0]);
        *best = better ? closer.plan[0] : *best;
    }
    RP_TRY(rp_plan_take(c, best));
fail:
    return err;
}

rp_err rp_boards_choose(rp_choice *c) {
    const bool boards_open = c->run.boards_auto;
    rp_joint_answer answer;
    rp_err err = RP_OK;
    if (!may_arrange(c)) {
        return RP_OK;
    }
    if (rp_ahead_is_bounded(c) && boards_open) {
        return arrange_halves(c);
    }
    rp_joint_ask ask = rp_choice_ask(c);
    ask.boards_open = boards_open;
    ask.cuts_open = !boards_open;
    RP_TRY(rp_joint_search(&ask, &answer));
    RP_TRY(answer.is_known ? keep_words(c, &answer, NULL) : RP_OK);
    rp_joint_plan *best = &answer.plan[0];
    if (answer.is_known && !rp_joint_is_ring(best, c->next.boards) &&
        cut_s(best) < (1 - GAIN) * answer.now.step_s) {
        RP_TRY(rp_micro_take(c, &answer));
        RP_TRY(boards_open ? take_boards(c, best->place, best->count) : RP_OK);
        if (rp_joint_is_shared(best)) {
            RP_TRY(rp_schedule_take(c, &answer));
            RP_TRY(share_stages(c, boards_open, best));
        }
        RP_TRY(say_boards(c, best, &answer.now));
    }
    RP_TRY(fix_boards(c));
fail:
    return err;
}

/* By name, so that a resumed run has the same boards. */
static rp_err settle_boards(const rp_settling *s) {
    const rp_setup *now = s->now;
    char text[RP_JOINT_BOARDS_MAX * 64];
    size_t used = (size_t)snprintf(text, sizeof text, "[");
    for (uint32_t k = 0; k < now->boards && used < sizeof text; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", k ? ", " : "",
                                 now->roster[k].name);
    }
    if (used + 2 > sizeof text) {
        return rp_fail(RP_ERR_LIMIT, "plan.boards: names of boards take more than %zu bytes",
                       sizeof text);
    }
    (void)snprintf(text + used, sizeof text - used, "]");
    return rp_settle(s, "plan.boards", text);
}

/* Writes which stages are split, which also replaces a word such as auto. */
static rp_err settle_split(const rp_settling *s) {
    char text[1024];
    rp_err err;
    RP_TRY(rp_method_write(&s->run->method, text, sizeof text));
    RP_TRY(rp_settle(s, "schedule", text));
fail:
    return err;
}

rp_err rp_boards_settle(const rp_settling *s) {
    const bool split =
        s->now->schedule == s->was->schedule && s->now->said_whole != s->was->said_whole;
    rp_err err;
    RP_TRY(s->was->boards_auto && !s->now->boards_auto ? settle_boards(s) : RP_OK);
    RP_TRY(split ? settle_split(s) : RP_OK);
fail:
    return err;
}
