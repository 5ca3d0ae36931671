/* Stages that several boards share, where the planner has chosen that: the plan is as one that is
 * given, until another one of the same ring takes its place. */
#include <string.h>

#include "control/controller_own.h"
#include "planning/planfile.h"

/* ---- what the planner is asked, and takes ---------------------------------------------------- */

bool rp_controller_has_cut(const rp_controller *c) {
    return c->setup.now.cut.stage_count == c->run.stages;
}

/* Room for any number of stages: a run that is resumed without some boards gets them back later. */
rp_err rp_controller_keep_cut(rp_controller *c, const rp_cut *cut) {
    rp_err err = RP_OK;
    if (!c->setup.cut_first) {
        RP_TRY(RP_ARENA_NEW(&c->arena, RP_CUT_STAGES_MAX + 1, &c->setup.cut_first));
    }
    memcpy(c->setup.cut_first, cut->first,
           ((size_t)cut->stage_count + 1) * sizeof *c->setup.cut_first);
    c->setup.now.cut = (rp_cut){.stage_count = cut->stage_count, .first = c->setup.cut_first};
    if (c->setup.now.size_stages != cut->stage_count && c->run.sizes.planner) {
        rp_sizes_forget(c); /* they are of another cut */
    }
fail:
    return err;
}

rp_joint_ask rp_shares_ask(rp_controller *c) {
    rp_joint_ask ask =
        rp_measure_joint_ask(c->measure, rp_setup_may_choose_codecs(&c->setup, &c->run));
    ask.boards_open = false;
    ask.cuts_open = true;
    ask.codecs_open = c->run.codec_auto && (ask.codecs_open || ask.share_most > 1);
    return ask;
}

/* What goes between stages, one more or less than before. */
static rp_err take_codecs(rp_controller *c, rp_arena *arena, const rp_trial_plan *plan) {
    rp_codec(*codec)[2];
    rp_err err = RP_OK;
    if (!c->run.codec_auto) {
        return RP_OK;
    }
    if (!plan->is_shared) {
        return rp_codecs_of_row(c, plan->has_codecs ? plan->codec : NULL);
    }
    RP_TRY(RP_ARENA_NEW(arena, plan->stages, &codec));
    for (uint32_t i = 0; i < 2 * plan->stages; i++) {
        codec[i / 2][i % 2] =
            plan->has_codecs ? plan->codec[i / 2][i % 2] : rp_cost_strongest(&c->run, i % 2 > 0);
    }
    c->setup.now.codec = (const rp_codec(*)[2])codec;
    c->setup.now.codec_stages = plan->stages;
    rp_setup_refresh(c);
fail:
    return err;
}

static rp_err make_plan(rp_controller *c, rp_arena *arena, const rp_trial_plan *plan) {
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    const char *name[RP_JOINT_BOARDS_MAX];
    const rp_profile *known;
    rp_profile bare;
    rp_err err;
    for (uint32_t k = 0; k < c->ring.count; k++) {
        name[k] = c->ring.board[k].name;
    }
    RP_TRY(rp_controller_know_boards(c, arena, &bare, &known));
    const rp_planfile chosen = {.run = &c->run,
                                .cut = &cut,
                                .board = name,
                                .group = plan->group,
                                .share = plan->share,
                                .profile = known};
    RP_TRY(rp_planfile_make(arena, &chosen, &c->setup.given));
fail:
    return err;
}

/* The plan in force lies in the other arena until the boards have this one. */
rp_err rp_shares_take(rp_controller *c, const rp_trial_plan *plan) {
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    rp_arena *arena = &c->setup.shares.arena[c->setup.shares.next];
    rp_err err = RP_OK;
    RP_ASSERT(rp_setup_may_change(&c->setup));
    if (plan->is_shared) {
        rp_arena_finish(arena);
        rp_arena_init(arena, "shares", 0);
        c->setup.shares.next = 1 - c->setup.shares.next;
    }
    c->setup.given = NULL;
    c->setup.shares.is_own = plan->is_shared;
    c->setup.now.stages = plan->stages;
    rp_setup_refresh(c);
    RP_TRY(take_codecs(c, arena, plan));
    RP_TRY(rp_sizes_take(c, plan));
    RP_TRY(plan->is_shared ? make_plan(c, arena, plan) : RP_OK);
    RP_TRY(rp_controller_keep_cut(c, &cut));
    if (rp_folder_record(c->folder)) {
        rp_record_take_boards(rp_folder_record(c->folder), c->run.boards, c->run.stages);
    }
fail:
    return err;
}

rp_err rp_shares_read(rp_controller *c, const char **path) {
    char *own;
    rp_err err = RP_OK;
    *path = c->options.plan;
    if (!*path && c->options.resume && c->run.cut_auto &&
        rp_about_plan_is(c->options.resume, "shared")) {
        RP_TRY(rp_arena_printf(&c->arena, &own, "%s/plan.json", c->options.resume));
        *path = own;
        c->setup.shares.is_own = true;
    }
fail:
    return err;
}

void rp_shares_close(rp_controller *c) {
    rp_arena_finish(&c->setup.shares.arena[0]);
    rp_arena_finish(&c->setup.shares.arena[1]);
}
