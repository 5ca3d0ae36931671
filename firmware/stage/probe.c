/* Probes: how far the weights that a forward saw are from those that came.
 *
 * At the forward: seen = what it sees, then = the newest weights. True are the newest weights that
 * its backward finds; of a prediction past it (spectrain, xpipe: the end of the round trip), those
 * as many own updates later. There b = true - then (the stale error), e = seen - true (the error of
 * the prediction), a = seen - then = e + b (what was predicted). All three in place, in two copies.
 *
 * source  METHODS 5.3: ||W^ - W_true|| against ||W_t - W_true|| */
#include "optim/average.h"
#include "stage/stage_own.h"

static bool due(const rp_stage *stage, const rp_op *op) {
    const uint32_t every = stage->layout->probe_steps;
    return every > 0 && stage->trained_count > 0 && op->micro == 0 && op->step % every == 0;
}

bool rp_stage_probe_walk(rp_stage *stage, const rp_op *op, const rp_sight *sight) {
    if (op->kind == RP_OP_UPDATE) {
        return stage->probe_left > 0 && --stage->probe_left == 0;
    }
    if (!due(stage, op)) {
        return false;
    }
    if (op->kind == RP_OP_FORWARD) {
        RP_ASSERT(stage->probe_left == 0); /* probes are that far apart */
        stage->probe_about.ahead = sight->ahead;
        return true;
    }
    stage->probe_about.step = op->step;
    stage->probe_about.gap = sight->gap;
    stage->probe_about.effect = op->step + rp_stage_trust_delay(stage);
    stage->probe_left = stage->versions.past_backward;
    return stage->probe_left == 0;
}

static rp_err begin(rp_stage *stage, const rp_buffer *newest) {
    const size_t bytes = stage->layout->weight_bytes;
    rp_err err;
    RP_TRY(rp_buffer_copy(stage->device, rp_darena_whole(stage->probe[0].arena), 0,
                          rp_darena_whole(stage->seen->arena), 0, bytes));
    RP_TRY(
        rp_buffer_copy(stage->device, rp_darena_whole(stage->probe[1].arena), 0, newest, 0, bytes));
fail:
    return err;
}

static rp_err end(rp_stage *stage, const rp_buffer *newest) {
    const uint32_t count = (uint32_t)(stage->layout->weight_bytes / sizeof(float));
    const uint32_t tensors = stage->trained_count;
    rp_buffer *seen = rp_darena_whole(stage->probe[0].arena);
    rp_buffer *then = rp_darena_whole(stage->probe[1].arena);
    rp_err err;
    RP_TRY(rp_average_add(stage->device, then, newest, then, -1.0f, count)); /* b */
    RP_TRY(rp_average_add(stage->device, seen, seen, newest, -1.0f, count)); /* e */
    RP_TRY(rp_grad_sumsq(stage->device, seen, stage->spans, tensors, stage->probe_norms[0]));
    RP_TRY(rp_grad_sumsq(stage->device, then, stage->spans, tensors, stage->probe_norms[1]));
    RP_TRY(rp_average_add(stage->device, seen, seen, then, 1.0f, count)); /* a */
    RP_TRY(rp_grad_sumsq(stage->device, seen, stage->spans, tensors, stage->probe_norms[2]));
    stage->probe_done = true;
fail:
    return err;
}

rp_err rp_stage_run_probe(rp_stage *stage, const rp_op *op, const rp_sight *sight) {
    const rp_flat *newest = &stage->weights[stage->versions.latest[sight->replica]];
    if (!rp_stage_probe_walk(stage, op, sight)) {
        return RP_OK;
    }
    return op->kind == RP_OP_FORWARD ? begin(stage, rp_darena_whole(newest->arena))
                                     : end(stage, rp_darena_whole(newest->arena));
}

bool rp_stage_probe_done(const rp_stage *stage) {
    return stage->probe_done;
}

bool rp_stage_probe_waits(const rp_stage *stage) {
    return stage->probe_left > 0;
}

rp_err rp_stage_probe_read(rp_stage *stage, float *out, rp_stage_probe *about) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < RP_PROBE_NORMS; i++) {
        RP_TRY(rp_buffer_read(stage->device, out + (size_t)i * stage->trained_count,
                              stage->probe_norms[i], 0, stage->trained_count * sizeof(float)));
    }
    *about = stage->probe_about;
    stage->probe_done = false;
fail:
    return err;
}
