/* Stages that several boards share, where the planner has chosen that: the plan is as one that is
 * given, until another one of the same ring takes its place. */
#include <string.h>

#include "planning/planfile.h"
#include "setup/setup_own.h"

/* ---- what the planner is asked, and takes ---------------------------------------------------- */

bool rp_arrangement_has_cut(const rp_arrangement *a) {
    return a->now.cut.stage_count == a->run.stages;
}

/* Room for any number of stages: a run that is resumed without some boards gets them back later. */
rp_err rp_arrangement_keep_cut(rp_arrangement *a, const rp_cut *cut) {
    RP_ASSERT(cut->stage_count > 0 && cut->stage_count <= RP_CUT_STAGES_MAX && cut->first[0] == 0);
    RP_ASSERT(cut->first[cut->stage_count] == a->run.model->layer_count);
    rp_err err = RP_OK;
    if (!a->cut_first) {
        RP_TRY(RP_ARENA_NEW(a->arena, RP_CUT_STAGES_MAX + 1, &a->cut_first));
    }
    memcpy(a->cut_first, cut->first, ((size_t)cut->stage_count + 1) * sizeof *a->cut_first);
    a->now.cut = (rp_cut){.stage_count = cut->stage_count, .first = a->cut_first};
    if (a->now.size_stages != cut->stage_count && a->run.sizes.planner) {
        rp_sizes_forget(a); /* they are of another cut */
    }
fail:
    return err;
}

rp_joint_ask rp_shares_ask(rp_arrangement *a) {
    rp_joint_ask ask = rp_measure_joint_ask(a->measure, rp_codecs_may_change(a));
    ask.boards_open = false;
    ask.cuts_open = true;
    ask.codecs_open = a->run.codec_auto && (ask.codecs_open || ask.share_most > 1);
    return ask;
}

/* What goes between stages, one more or less than before. */
static rp_err take_codecs(rp_arrangement *a, rp_arena *arena, const rp_joint_plan *plan) {
    rp_codec(*codec)[2];
    const bool has_codecs = plan->plain_s > 0;
    rp_err err = RP_OK;
    if (!a->run.codec_auto) {
        return RP_OK;
    }
    if (!rp_joint_is_shared(plan)) {
        return rp_codecs_of_row(a, has_codecs ? plan->codec : NULL);
    }
    RP_TRY(RP_ARENA_NEW(arena, plan->stages, &codec));
    for (uint32_t i = 0; i < 2 * plan->stages; i++) {
        codec[i / 2][i % 2] =
            has_codecs ? plan->codec[i / 2][i % 2] : rp_cost_strongest(&a->run, i % 2 > 0);
    }
    a->now.codec = (const rp_codec(*)[2])codec;
    a->now.codec_stages = plan->stages;
    rp_arrangement_refresh(a);
fail:
    return err;
}

static rp_err make_plan(rp_arrangement *a, rp_arena *arena, const rp_joint_plan *plan) {
    RP_ASSERT(rp_joint_is_shared(plan) && plan->group[plan->stages] == a->ring->count);
    RP_ASSERT(a->ring->count <= RP_JOINT_BOARDS_MAX);
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    const char *name[RP_JOINT_BOARDS_MAX];
    const rp_profile *known;
    rp_profile bare;
    rp_err err;
    for (uint32_t k = 0; k < a->ring->count; k++) {
        name[k] = a->ring->board[k].name;
    }
    RP_TRY(rp_arrangement_know_boards(a, arena, &bare, &known));
    const rp_planfile chosen = {.run = &a->run,
                                .cut = &cut,
                                .board = name,
                                .group = plan->group,
                                .share = plan->share,
                                .profile = known};
    RP_TRY(rp_planfile_make(arena, &chosen, &a->given));
fail:
    return err;
}

/* The plan in force lies in the other arena until the boards have this one. */
rp_err rp_shares_take(rp_arrangement *a, const rp_joint_plan *plan) {
    const bool is_shared = rp_joint_is_shared(plan);
    const rp_cut cut = {.stage_count = plan->stages, .first = plan->first};
    rp_arena *arena = &a->shares.arena[a->shares.next];
    rp_err err = RP_OK;
    RP_ASSERT(plan->stages > 0 && plan->stages <= a->ring->count);
    RP_ASSERT(rp_arrangement_may_change(a));
    if (is_shared) {
        rp_arena_finish(arena);
        rp_arena_init(arena, "shares", 0);
        a->shares.next = 1 - a->shares.next;
    }
    a->given = NULL;
    a->shares.is_own = is_shared;
    a->now.stages = plan->stages;
    rp_arrangement_refresh(a);
    RP_TRY(take_codecs(a, arena, plan));
    RP_TRY(rp_sizes_take(a, plan));
    RP_TRY(is_shared ? make_plan(a, arena, plan) : RP_OK);
    RP_TRY(rp_arrangement_keep_cut(a, &cut));
    if (rp_folder_record(a->folder)) {
        rp_record_take_boards(rp_folder_record(a->folder), a->run.boards, a->run.stages);
    }
fail:
    return err;
}

rp_err rp_shares_read(rp_arrangement *a, const char **path) {
    char *own;
    rp_err err = RP_OK;
    *path = a->given_path;
    if (!*path && a->resume && a->run.cut_auto && rp_about_plan_is(a->resume, "shared")) {
        RP_TRY(rp_arena_printf(a->arena, &own, "%s/plan.json", a->resume));
        *path = own;
        a->shares.is_own = true;
    }
fail:
    return err;
}
