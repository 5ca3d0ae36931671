/* How long the layers of a stage take: the planner's costs. */
#include "stage/stage_own.h"

/* The time at which all issued commands will have ended, if known; 0 = unknown. */
static rp_err find_end(rp_stage *stage, int64_t *end_ns) {
    rp_mark mark;
    rp_err err = rp_stage_mark(stage, &mark);
    if (err == RP_OK) {
        *end_ns = mark.end_ns;
        rp_stage_release(stage, &mark);
    }
    return err;
}

static rp_err issue_pass(rp_stage *stage, rp_op_kind kind, uint32_t samples) {
    const rp_op op = {.kind = kind, .samples = {0, samples}};
    const bool defers = kind != RP_OP_FORWARD && stage->layout->deferred_slots;
    const rp_command command = {
        .kind = kind == RP_OP_FORWARD ? RP_COMMAND_FORWARD : RP_COMMAND_BACKWARD,
        .pass = {.op = &op,
                 .weights = stage->seen,
                 .forward_weights = stage->seen,
                 .deferred = {.slot = defers ? 0 : RP_NO_SLOT},
                 .training = true,
                 .accumulate = stage->accumulated > 0},
    };
    return rp_stage_issue(stage, &command);
}

static rp_err issue_op(rp_stage *stage, rp_op_kind kind, uint32_t samples, uint32_t repeat) {
    const rp_version_step in_place = {0};
    if (kind != RP_OP_UPDATE) {
        return issue_pass(stage, kind, samples);
    }
    return stage->layout->trained_count > 0 ? rp_stage_run_update(stage, &in_place, repeat, 1)
                                            : RP_OK;
}

rp_err rp_stage_time_op(rp_stage *stage, rp_op_kind kind, uint32_t samples, uint32_t repeats,
                        double *seconds) {
    const rp_clock clock = rp_clock_real();
    int64_t known_ns[2];
    rp_err err;
    RP_ASSERT(samples <= rp_job_pass_samples(stage->job) && repeats > 0);
    RP_TRY(rp_stage_drain(stage));
    RP_TRY(find_end(stage, &known_ns[0]));
    const int64_t start_ns = rp_clock_now_ns(&clock);
    for (uint32_t r = 0; r < repeats; r++) {
        RP_TRY(issue_op(stage, kind, samples, r));
    }
    RP_TRY(find_end(stage, &known_ns[1]));
    RP_TRY(rp_stage_drain(stage));
    const int64_t took_ns =
        known_ns[1] ? known_ns[1] - known_ns[0] : rp_clock_now_ns(&clock) - start_ns;
    *seconds = (double)took_ns * 1e-9 / repeats;
fail:
    return err;
}

rp_err rp_stage_try_op(rp_stage *stage, rp_op_kind kind, uint32_t samples) {
    RP_ASSERT(samples <= rp_job_pass_samples(stage->job));
    return issue_op(stage, kind, samples, 0);
}

rp_err rp_stage_time(rp_stage *stage, uint32_t repeats, double *forward_s, double *backward_s) {
    const uint32_t micro = stage->job->micro;
    rp_err err;
    RP_TRY(rp_stage_time_op(stage, RP_OP_FORWARD, micro, repeats, forward_s));
    RP_TRY(rp_stage_time_op(stage, RP_OP_BACKWARD, micro, repeats, backward_s));
fail:
    return err;
}
