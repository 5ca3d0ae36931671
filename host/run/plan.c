#include <string.h>

#include "run/runfile_own.h"

/* plan.boards: all of them, those that the planner takes, or these. */
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
        return rp_node_fail(boards, "auto needs a roster and no lanes: a board that is left out "
                                    "becomes a spare");
    }
    run->boards_auto = true;
    return RP_OK;
}

/* Gradients of a stage are summed before its update, in one order. */
rp_err rp_runfile_check_share(const rp_runfile *run) {
    const rp_node *plan = rp_node_find(run->root, "plan");
    const char *why = run->plan.share <= 1 ? NULL
                      : !run->cut_auto     ? "and `cut` says what is where; expected cut: auto"
                      : !run->method.kind->flushed
                          ? "before an update, so the schedule has to flush"
                      : run->method.chunks > 1 ? "and each holds one stage; expected no chunks"
                      : run->sizes.by_stage
                          ? "and the number of stages is chosen later; expected one number each as "
                            "schedule.forward and backward, or schedule.planner"
                      : run->lanes.count > 0 ? "and a lane has few boards"
                                             : NULL;
    return why ? rp_node_fail(plan, "share: boards of a stage sum their gradients, %s", why)
               : RP_OK;
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
    (void)rp_node_find(plan, "schedules"); /* read_schedules() */
    RP_TRY(rp_node_default(plan, "schedules", "none"));
    if (run->folder) { /* Older programs wrote `trial` into every run folder; it has no effect. */
        (void)rp_node_find(plan, "trial");
    }
    RP_TRY(plan ? rp_node_done(plan) : RP_OK);
fail:
    return err;
}
