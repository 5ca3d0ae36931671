/* Tied weights of a stage: the exchange of gradients, and their sums. */
#include "stage/stage_own.h"

bool rp_stage_norm_counts(const rp_stage *stage, uint32_t index) {
    RP_ASSERT(index < stage->layout->trained_count);
    return !stage->layout->repeats[index];
}

rp_err rp_stage_read_row(rp_stage *stage, void *out) {
    const rp_command command = {.kind = RP_COMMAND_ROW,
                                .read = {.out = out, .block = {RP_BLOCK_GRADIENT, 0}}};
    RP_ASSERT(!stage->tied && stage->layout->tie_row_bytes > 0);
    return rp_stage_issue(stage, &command);
}

rp_err rp_stage_read_values(rp_stage *stage, void *out) {
    const rp_command command = {.kind = RP_COMMAND_ROW, .read = {.out = out, .block = stage->seen}};
    RP_ASSERT(stage->layout->tie_row_bytes > 0);
    return rp_stage_issue(stage, &command);
}

void rp_stage_set_values(rp_stage *stage, const rp_tie_row *row, uint32_t count) {
    stage->far_row = row;
    stage->far_rows = count;
}

rp_err rp_stage_tie(rp_stage *stage, const rp_tie_row *row, uint32_t count) {
    const rp_command command = {.kind = RP_COMMAND_TIE, .tie = {row, count}};
    RP_ASSERT(!stage->tied && stage->layout->use_count > 0);
    stage->tied = true;
    return rp_stage_issue(stage, &command);
}

rp_err rp_stage_tie_own(rp_stage *stage) {
    if (stage->layout->use_count == 0 || stage->tied) {
        return RP_OK;
    }
    RP_ASSERT(!stage->layout->tie_waits); /* else the agent exchanges rows first */
    return rp_stage_tie(stage, NULL, 0);
}
