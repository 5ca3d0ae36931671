#include <string.h>

#include "run/runfile_own.h"

/* plan.boards: all, auto (the planner chooses), or a list. */
static rp_err read_boards(rp_node *plan, rp_runfile *run) {
    rp_node *boards = plan ? rp_node_find(plan, "boards") : NULL;
    const bool is_word = boards && rp_node_is_scalar(boards);
    const char *word = is_word ? rp_node_text(boards) : "all";
    if (!boards || strcmp(word, "all") == 0) {
        if (!is_word && boards) {
            return rp_spares_arrange(boards, run->local ? NULL : run->roster, &run->boards,
                                     &run->spares);
        }
        return rp_node_default(plan, "boards", "all");
    }
    if (strcmp(word, "auto") != 0) {
        return rp_node_fail(boards, "expected all, auto, or a list of boards in their order");
    }
    if (run->local || run->lanes.count > 0) {
        return rp_node_fail(boards, "auto needs `ring.roster` and no `lanes`, because a board that "
                                    "is left out becomes a spare");
    }
    run->boards_auto = true;
    return RP_OK;
}

/* Boards that share a stage sum their gradients before its update, always in one order. */
rp_err rp_runfile_check_share(const rp_runfile *run) {
    const rp_node *plan = rp_node_find(run->root, "plan");
    const char *why = run->plan.share <= 1 ? NULL
                      : !run->cut_auto     ? "only with `cut: auto`"
                      : !run->method.kind->flushed
                          ? "only with a schedule that flushes, because they sum their gradients "
                            "before an update"
                      : run->method.chunks > 1 ? "only in a schedule without chunks"
                      : run->sizes.by_stage
                          ? "only with one number each for schedule.forward and backward, or "
                            "schedule.planner, because the number of stages is chosen later"
                      : run->lanes.count > 0 ? "only in a run without `lanes`"
                                             : NULL;
    return why ? rp_node_fail(plan, "share: boards can share a stage %s", why) : RP_OK;
}

rp_err rp_runfile_read_plan(rp_node *root, rp_runfile *run) {
    rp_node *plan;
    rp_err err;
    RP_TRY(rp_section_map(root, "plan", "{drift: 0.3}", &plan));
    RP_TRY(rp_node_f64(plan, "drift", 0, 100, &run->plan.drift));
    RP_TRY(rp_node_default(plan, "drift", "0"));
    RP_TRY(rp_node_f64(plan, "seconds", 0, 3600, &run->plan.seconds));
    RP_TRY(rp_node_default(plan, "seconds", "5"));
    run->plan.share = 1;
    RP_TRY(rp_node_u32(plan, "share", 1, RP_PLAN_SHARE_MAX, &run->plan.share));
    RP_TRY(rp_node_default(plan, "share", "1"));
    RP_TRY(read_boards(plan, run));
    (void)rp_node_find(plan, "schedules"); /* is read by read_schedules() */
    RP_TRY(rp_node_default(plan, "schedules", "none"));
    if (run->folder) { /* Older programs wrote `trial` into every run folder; it has no effect. */
        (void)rp_node_find(plan, "trial");
    }
    RP_TRY(plan ? rp_node_done(plan) : RP_OK);
fail:
    return err;
}
