/* Prediction-error samples ("probes"): how far the weights that a forward saw were from the true
 * ones.
 *
 *   seen   weights that the forward saw
 *   then   newest weights at that forward
 *   true   newest weights at its backward. If the prediction goes further than the backward
 *          (spectrain, xpipe: to the end of the round trip): newest weights that many updates later
 *   e = seen - true          prediction error
 *   b = true - then          stale error: the error without a prediction
 *   a = seen - then = e + b  prediction
 *
 * All three are computed in place, in the two blocks that held seen and then.
 *
 * source  METHODS 5.3: ||W^ - W_true|| against ||W_t - W_true|| */
#include "stage/stage_own.h"

static bool probe_due(const rp_stage *stage, const rp_op *op) {
    const uint32_t every = stage->layout->probe_steps;
    return every > 0 && stage->layout->trained_count > 0 && op->micro == 0 && op->step % every == 0;
}

bool rp_stage_probe_walk(rp_stage *stage, const rp_op *op, const rp_weight_view *view) {
    if (op->kind == RP_OP_UPDATE) {
        return stage->probe_left > 0 && --stage->probe_left == 0;
    }
    if (!probe_due(stage, op)) {
        return false;
    }
    if (op->kind == RP_OP_FORWARD) {
        RP_ASSERT(stage->probe_left == 0); /* samples are at least so far apart */
        stage->probe_about.ahead = view->ahead;
        return true;
    }
    stage->probe_about.step = op->step;
    stage->probe_about.staleness = view->staleness;
    stage->probe_about.effect = op->step + rp_stage_gain_delay(stage);
    stage->probe_left = stage->versions.past_backward;
    return stage->probe_left == 0;
}

static rp_err begin_probe(rp_stage *stage, rp_block newest) {
    rp_err err;
    RP_TRY(rp_stage_copy(stage, stage->seen, (rp_block){RP_BLOCK_PROBE, 0}));
    RP_TRY(rp_stage_copy(stage, newest, (rp_block){RP_BLOCK_PROBE, 1}));
fail:
    return err;
}

static rp_err end_probe(rp_stage *stage, rp_block newest) {
    const rp_command command = {.kind = RP_COMMAND_PROBE, .move = {.from = newest}};
    rp_err err;
    RP_TRY(rp_stage_issue(stage, &command));
    stage->probe_done = true;
fail:
    return err;
}

rp_err rp_stage_run_probe(rp_stage *stage, const rp_op *op, const rp_weight_view *view) {
    const rp_block newest = {RP_BLOCK_WEIGHTS, stage->versions.latest[view->replica]};
    if (!rp_stage_probe_walk(stage, op, view)) {
        return RP_OK;
    }
    return op->kind == RP_OP_FORWARD ? begin_probe(stage, newest) : end_probe(stage, newest);
}

bool rp_stage_probe_done(const rp_stage *stage) {
    return stage->probe_done;
}

bool rp_stage_probe_waits(const rp_stage *stage) {
    return stage->probe_left > 0;
}

rp_err rp_stage_probe_read(rp_stage *stage, float *out, rp_stage_probe *about) {
    const rp_command command = {.kind = RP_COMMAND_PROBE_NORMS, .read = {.out = out}};
    rp_err err;
    RP_TRY(rp_stage_issue(stage, &command));
    *about = stage->probe_about;
    stage->probe_done = false;
fail:
    return err;
}
