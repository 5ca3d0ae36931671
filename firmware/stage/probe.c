/* Probes: how far the weights that a forward saw are from those that its backward finds.
 *
 * At the forward: seen = what it sees, then = the newest weights. At the backward, with the newest
 * weights of then called true: b = true - then (the stale error), e = seen - true (the error of the
 * prediction), a = seen - then = e + b (what was predicted). All three in place, in two copies.
 *
 * source  METHODS 5.3: ||W^ - W_true|| against ||W_t - W_true|| */
#include "optim/average.h"
#include "stage/stage_own.h"

static bool due(const rp_stage *stage, const rp_op *op) {
    const uint32_t every = stage->layout->probe_steps;
    return every > 0 && stage->trained_count > 0 && op->micro == 0 && op->step % every == 0;
}

rp_err rp_stage_probe_forward(rp_stage *stage, const rp_op *op, const rp_sight *sight) {
    const size_t bytes = stage->layout->weight_bytes;
    rp_err err = RP_OK;
    if (!due(stage, op)) {
        return RP_OK;
    }
    RP_TRY(rp_buffer_copy(stage->device, rp_darena_whole(stage->probe[0].arena), 0,
                          rp_darena_whole(stage->seen->arena), 0, bytes));
    RP_TRY(rp_buffer_copy(
        stage->device, rp_darena_whole(stage->probe[1].arena), 0,
        rp_darena_whole(stage->weights[stage->versions.latest[sight->replica]].arena), 0, bytes));
    stage->probe_about.ahead = sight->ahead;
fail:
    return err;
}

/* The forward was before the checkpoint, which holds the weights. */
void rp_stage_probe_resume(rp_stage *stage, const rp_op *op, const rp_sight *sight) {
    if (due(stage, op)) {
        stage->probe_about.ahead = sight->ahead;
    }
}

rp_err rp_stage_probe_backward(rp_stage *stage, const rp_op *op, const rp_sight *sight) {
    const uint32_t count = (uint32_t)(stage->layout->weight_bytes / sizeof(float));
    const uint32_t tensors = stage->trained_count;
    rp_err err = RP_OK;
    if (!due(stage, op)) {
        return RP_OK;
    }
    rp_buffer *seen = rp_darena_whole(stage->probe[0].arena);
    rp_buffer *then = rp_darena_whole(stage->probe[1].arena);
    const rp_buffer *now =
        rp_darena_whole(stage->weights[stage->versions.latest[sight->replica]].arena);
    RP_TRY(rp_average_add(stage->device, then, now, then, -1.0f, count)); /* b */
    RP_TRY(rp_average_add(stage->device, seen, seen, now, -1.0f, count)); /* e */
    RP_TRY(rp_grad_sumsq(stage->device, seen, stage->spans, tensors, stage->probe_norms[0]));
    RP_TRY(rp_grad_sumsq(stage->device, then, stage->spans, tensors, stage->probe_norms[1]));
    RP_TRY(rp_average_add(stage->device, seen, seen, then, 1.0f, count)); /* a */
    RP_TRY(rp_grad_sumsq(stage->device, seen, stage->spans, tensors, stage->probe_norms[2]));
    stage->probe_about.gap = sight->gap;
    stage->probe_about.effect = op->step + rp_stage_trust_delay(stage);
    stage->probe_done = true;
fail:
    return err;
}

bool rp_stage_probe_done(const rp_stage *stage) {
    return stage->probe_done;
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
