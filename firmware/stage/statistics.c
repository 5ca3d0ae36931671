/* Every forward changes the running statistics, but whether a step is skipped is decided only after
 * its last backward. So they are copied before the first forward of a step, and the copy is
 * restored if the step is skipped. That also undoes forwards of later steps that have run by then,
 * because their statistics contain those of the skipped step. */
#include "stage/stage_own.h"

static rp_err issue_copy(rp_stage *stage, rp_command_kind kind, uint32_t kept) {
    const rp_command command = {.kind = kind, .kept = kept};
    return rp_stage_issue(stage, &command);
}

rp_err rp_stage_open_statistics(rp_arena *arena, rp_stage *stage) {
    return RP_ARENA_NEW(arena, stage->layout->kept + 1, &stage->kept_step);
}

void rp_stage_forget_statistics(rp_stage *stage, uint64_t step) {
    for (uint32_t i = 0; i < stage->layout->kept; i++) {
        stage->kept_step[i] = RP_NO_STEP;
    }
    stage->keep_next = step;
}

rp_err rp_stage_keep_statistics(rp_stage *stage, const rp_op *op) {
    const uint32_t copies = stage->layout->kept;
    if (copies == 0 || op->step < stage->keep_next) {
        return RP_OK;
    }
    const uint32_t to = (uint32_t)(op->step % copies);
    stage->keep_next = op->step + 1;
    stage->kept_step[to] = op->step;
    return issue_copy(stage, RP_COMMAND_KEEP, to);
}

/* Index of the copy of the first step >= `step` that has one; layout->kept: no step has. */
static uint32_t find_copy(const rp_stage *stage, uint64_t step) {
    const uint32_t copies = stage->layout->kept;
    uint32_t found = copies;
    for (uint32_t i = 0; i < copies; i++) {
        const bool counts = stage->kept_step[i] != RP_NO_STEP && stage->kept_step[i] >= step;
        if (counts && (found == copies || stage->kept_step[i] < stage->kept_step[found])) {
            found = i;
        }
    }
    return found;
}

static rp_err restore_copy(rp_stage *stage, uint64_t step) {
    const uint32_t from = find_copy(stage, step);
    rp_err err;
    if (from == stage->layout->kept) {
        return RP_OK;
    }
    RP_TRY(issue_copy(stage, RP_COMMAND_RESTORE, from));
    for (uint32_t i = 0; i < stage->layout->kept; i++) {
        const bool later = stage->kept_step[i] != RP_NO_STEP && stage->kept_step[i] > step;
        RP_TRY(later && i != from ? issue_copy(stage, RP_COMMAND_KEEP, i) : RP_OK);
    }
fail:
    return err;
}

rp_err rp_stage_decide_statistics(rp_stage *stage, uint64_t step, bool skip) {
    const uint32_t copies = stage->layout->kept;
    const rp_command commit = {.kind = RP_COMMAND_COMMIT, .step = step};
    rp_err err;
    RP_TRY(skip && copies > 0 ? restore_copy(stage, step) : rp_stage_issue(stage, &commit));
    if (copies > 0 && stage->kept_step[step % copies] == step) {
        stage->kept_step[step % copies] = RP_NO_STEP;
    }
fail:
    return err;
}
