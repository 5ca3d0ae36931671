/* The table of automatic choices in their order, and functions that use it. */
#include "setup/next_setup.h"

#include "planning/planfile.h"
#include "setup/choice.h"

/* A row is one automatic choice; each function checks by itself whether the choice is open. */
static const struct {
    rp_err (*choose)(rp_choice *c);
    bool (*needs_profile)(const rp_choice *c); /* the choice is open and needs a profile; NULL: a
                                                  profile is optional */
    rp_err (*settle)(const rp_settling *s);    /* writes the choice to run.yaml; NULL: only the
                                                  checkpoint stores it */
} choosers[] = {{rp_boards_choose, NULL, rp_boards_settle},
                {rp_cut_choose, rp_cut_is_open, rp_cut_settle},
                {rp_codecs_choose, rp_codecs_are_open, NULL},
                {rp_sizes_choose, rp_sizes_are_open, NULL},
                {rp_ahead_choose, rp_ahead_is_open, rp_ahead_settle}};
enum { CHOOSERS = sizeof choosers / sizeof *choosers };

rp_err rp_setup_next(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *now,
                     rp_arena *arena, rp_setup *next, rp_setup_why *why) {
    rp_choice *c;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &c));
    RP_TRY(rp_choice_open(c, wish, facts, now, arena, why));
    for (uint32_t i = 0; i < CHOOSERS; i++) {
        RP_TRY(choosers[i].choose(c));
    }
    *next = c->next;
    RP_ASSERT(rp_setup_check(next, wish) == NULL && next->cut.stage_count == next->stages);
    RP_ASSERT(!next->micro_auto && !next->schedule_auto);
fail:
    return err;
}

rp_err rp_setup_settle(const rp_runfile *run, const rp_setup *was, const rp_setup *now,
                       rp_arena *arena, rp_setup_settled *out) {
    const rp_settling settling = {arena, run, was, now, out};
    rp_err err = RP_OK;
    out->count = 0;
    for (uint32_t i = 0; i < CHOOSERS && err == RP_OK; i++) {
        err = choosers[i].settle ? choosers[i].settle(&settling) : RP_OK;
    }
    return err;
}

bool rp_setup_needs_profile(const rp_runfile *wish, const rp_setup_facts *facts,
                            const rp_setup *now) {
    rp_choice c = {.wish = wish, .facts = facts, .next = *now};
    bool needs = false;
    rp_choice_refresh(&c);
    for (uint32_t i = 0; i < CHOOSERS; i++) {
        needs = needs || (choosers[i].needs_profile && choosers[i].needs_profile(&c));
    }
    return needs;
}

/* Takes the best plan for the same boards in their order, with shared stages if that is faster. */
static rp_err choose_shares(rp_choice *c) {
    rp_joint_answer answer;
    rp_err err;
    rp_setup_reopen_sizes(&c->next, c->wish); /* they belong to the plan in force */
    rp_choice_refresh(c);
    rp_joint_ask ask = rp_choice_ask(c);
    ask.codecs_open = c->run.codec_auto;
    RP_TRY(rp_joint_search(&ask, &answer));
    RP_TRY(answer.is_known ? rp_plan_take(c, &answer.plan[0]) : RP_OK);
fail:
    return err;
}

rp_err rp_setup_follow(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *now,
                       rp_arena *arena, rp_setup *next, rp_setup_why *why) {
    rp_joint_answer answer;
    rp_choice *c;
    rp_cut cut;
    rp_err err;
    RP_ASSERT(facts->profile && !facts->is_given && now->cut.stage_count > 0);
    RP_TRY(RP_ARENA_NEW(arena, 1, &c));
    RP_TRY(rp_choice_open(c, wish, facts, now, arena, why));
    if (c->run.cut_auto && c->run.plan.share > 1) {
        RP_TRY(choose_shares(c));
    } else if (c->run.cut_auto) {
        RP_TRY(rp_cut_find(c, &answer, &cut));
        RP_TRY(rp_cut_take(c, &cut));
    }
    RP_TRY(c->run.sizes.planner && !(c->next.group && c->next.size) ? rp_sizes_find(c) : RP_OK);
    *next = c->next;
    RP_ASSERT(rp_setup_check(next, wish) == NULL && next->boards == now->boards);
fail:
    return err;
}

rp_err rp_setup_price(const rp_runfile *wish, const rp_setup_facts *facts, const rp_setup *setup,
                      rp_arena *arena, double *step_s) {
    rp_prediction found;
    rp_setup_why why;
    const char **name;
    rp_choice *c;
    rp_plan *plan;
    rp_err err;
    RP_ASSERT(facts->profile && setup->cut.stage_count == setup->stages);
    RP_TRY(RP_ARENA_NEW(arena, 1, &c));
    RP_TRY(rp_choice_open(c, wish, facts, setup, arena, &why));
    RP_TRY(RP_ARENA_NEW(arena, setup->boards, &name));
    for (uint32_t k = 0; k < setup->boards; k++) {
        name[k] = rp_choice_name(c, k);
    }
    const rp_planfile chosen = {.run = &c->run,
                                .cut = &setup->cut,
                                .board = name,
                                .group = setup->group,
                                .share = setup->share,
                                .profile = &c->placed};
    RP_TRY(rp_planfile_make(arena, &chosen, &plan));
    RP_TRY(rp_predict(arena, &c->run, &c->placed, plan, facts->delay_s, &found));
    *step_s = found.step_s;
fail:
    return err;
}
