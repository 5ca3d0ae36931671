/* Calls that a stage passes to its executor: commands, marks, facts. */
#include "stage/stage_own.h"

const rp_layout *rp_stage_layout(const rp_stage *stage) {
    return stage->layout;
}

rp_executor *rp_stage_executor(rp_stage *stage) {
    return stage->executor;
}

rp_executor_facts rp_stage_facts(const rp_stage *stage) {
    return stage->executor->kind->facts(stage->executor);
}

rp_err rp_stage_mark(rp_stage *stage, rp_mark *out) {
    return stage->executor->kind->mark(stage->executor, out);
}

rp_err rp_stage_poll(rp_stage *stage, const rp_mark *mark, bool *done, int64_t *end_ns) {
    return stage->executor->kind->poll(stage->executor, mark, done, end_ns);
}

void rp_stage_release(rp_stage *stage, rp_mark *mark) {
    stage->executor->kind->release(stage->executor, mark);
}

rp_err rp_stage_drain(rp_stage *stage) {
    return stage->executor->kind->drain(stage->executor);
}

rp_err rp_stage_take_losses(rp_stage *stage, rp_codec_loss out[2]) {
    out[0] = out[1] = (rp_codec_loss){0};
    return stage->executor->kind->take_losses
               ? stage->executor->kind->take_losses(stage->executor, out)
               : RP_OK;
}

rp_err rp_stage_issue(rp_stage *stage, const rp_command *command) {
    return stage->executor->kind->issue(stage->executor, command);
}

rp_err rp_stage_copy(rp_stage *stage, rp_block from, rp_block to) {
    const rp_command command = {.kind = RP_COMMAND_COPY, .move = {from, to}};
    return rp_stage_issue(stage, &command);
}

rp_err rp_stage_read_block(rp_stage *stage, rp_block block, void *out) {
    const rp_command command = {.kind = RP_COMMAND_BLOCK, .read = {.out = out, .block = block}};
    return rp_stage_issue(stage, &command);
}
