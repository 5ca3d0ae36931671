/* Opening and closing a stage: executor, bookkeeping, a dry step, initial weights. */
#include <string.h>

#include "stage/stage_own.h"

/* The commands that the job's method adds to a step. */
static rp_err warm_up_method(rp_stage *stage) {
    const rp_version_step by = {0};
    const rp_weight_view view = {.ahead = 1};
    rp_err err = RP_OK;
    if (stage->layout->trained_count == 0) {
        return RP_OK;
    }
    /* the last step of a period, which also runs the average */
    uint64_t step = (uint64_t)stage->versions.replicas * stage->job->method.period;
    RP_TRY(rp_stage_run_update(stage, &by, step > 0 ? step - 1 : 0, 1.0f));
    if (stage->layout->copies.predicted) {
        const bool shares = stage->job->method.horizon == RP_HORIZON_MEASURED;
        RP_TRY(rp_stage_run_prediction(stage, &view, shares ? stage->gain.share[0] : NULL,
                                       (rp_block){RP_BLOCK_PREDICTED, 0}));
    }
fail:
    return err;
}

/* An exchange of tied weights with rows of zeros. */
static rp_err warm_up_ties(rp_stage *stage, char *zeros) {
    const rp_layout *layout = stage->layout;
    rp_arena scratch;
    rp_tie_row *row;
    rp_err err;
    if (layout->use_count == 0) {
        return RP_OK;
    }
    rp_arena_init(&scratch, "warm-up of ties", 0);
    RP_TRY(RP_ARENA_NEW(&scratch, layout->use_count, &row));
    for (uint32_t i = 0; i < layout->use_count; i++) {
        row[i] = (rp_tie_row){layout->use[i].stage, zeros};
    }
    stage->tied = false;
    RP_TRY(layout->tie_row_bytes > 0 ? rp_stage_read_row(stage, zeros) : RP_OK);
    RP_TRY(rp_stage_tie(stage, row, layout->use_count));
fail:
    rp_arena_finish(&scratch);
    return err;
}

/* Forwards and backwards on zeros in host memory, of steps of `time` tokens. */
static rp_err warm_up_passes(rp_stage *stage, uint32_t time, char *zeros) {
    const rp_job *job = stage->job;
    const bool split = job->method.kind->split_backward;
    const uint32_t most = rp_job_pass_samples(job);
    const uint32_t forward = rp_job_forward_samples(job);
    rp_op op = {.kind = RP_OP_FORWARD, .samples = {0, most}};
    const void *in[RP_CUT_TENSORS_MAX];
    void *out[RP_CUT_TENSORS_MAX];
    const rp_stage_piece whole = {.samples = op.samples, .part = in, .time = time};
    const rp_stage_mode mode = {.training = true, .alone = true};
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < RP_CUT_TENSORS_MAX; i++) {
        in[i] = zeros;
        out[i] = zeros;
    }
    if (rp_job_is_last(job)) {
        RP_TRY(
            rp_stage_run_forward(stage, &op, &whole, 1, out, (rp_stage_mode){.evaluating = true}));
        RP_TRY(rp_stage_evaluate(stage, &op, most, &whole, 1));
    }
    for (int twice = 0; twice < 2; twice++) { /* first overwrites gradients, then adds to them */
        op = (rp_op){.kind = RP_OP_FORWARD, .samples = {0, most}};
        RP_TRY(rp_stage_run_forward(stage, &op, &whole, 1, out, mode));
        if (job->role == RP_ROLE_FORWARD) {
            rp_slots_clear(&stage->slots);
            continue;
        }
        op.samples.count = rp_job_backward_samples(job);
        op.kind = split ? RP_OP_BACKWARD_INPUT : RP_OP_BACKWARD;
        RP_TRY(rp_stage_run_backward(stage, &op, &whole, 1, out));
        if (split) {
            op.kind = RP_OP_BACKWARD_WEIGHT;
            RP_TRY(rp_stage_run_backward(stage, &op, NULL, 0, out));
        }
        RP_TRY(rp_stage_drain(stage));
        rp_slots_clear(&stage->slots);
    }
    if (forward < most) { /* forwards have fewer samples than the largest pass */
        op = (rp_op){.kind = RP_OP_FORWARD, .samples = {0, forward}};
        RP_TRY(rp_stage_run_forward(stage, &op, &whole, 1, out, mode));
        rp_slots_clear(&stage->slots);
    }
    RP_TRY(rp_stage_drain(stage));
fail:
    return err;
}

/* What precedes an update. */
static rp_err warm_up_gradients(rp_stage *stage, char *zeros) {
    rp_err err;
    RP_TRY(warm_up_ties(stage, zeros));
    RP_TRY(rp_stage_norms(stage, (float *)(void *)zeros));
    if (stage->layout->peers && stage->layout->trained_count > 0) {
        RP_TRY(rp_stage_sum_gradients(stage, (const void *const[]){zeros, zeros}, 2));
    }
fail:
    return err;
}

rp_err rp_stage_warm_up(rp_stage *stage) {
    const rp_job *job = stage->job;
    const rp_layout *layout = stage->layout;
    size_t bytes = 16;
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        size_t tensor =
            rp_shape_count(&layout->tensor[t].sample) * rp_job_pass_samples(job) * sizeof(float);
        bytes = tensor > bytes ? tensor : bytes;
    }
    bytes = layout->codec_bytes > bytes ? layout->codec_bytes : bytes;
    bytes = layout->gradient_bytes > bytes ? layout->gradient_bytes : bytes;
    bytes = layout->tie_row_bytes > bytes ? layout->tie_row_bytes : bytes;
    bytes = layout->tie_far_bytes > bytes ? layout->tie_far_bytes : bytes;
    bytes += ((size_t)job->batch * 2 + layout->trained_count) * sizeof(float);
    rp_arena scratch; /* freed at the end */
    rp_arena_init(&scratch, "warm-up", 0);
    rp_err err;
    char *zeros;
    RP_TRY(RP_ARENA_NEW(&scratch, bytes, &zeros));
    for (uint32_t k = 0; k < job->model->view_count; k++) { /* a length may need other kernels */
        RP_TRY(warm_up_passes(stage, job->model->view[k].time, zeros));
    }
    RP_TRY(warm_up_passes(stage, 0, zeros));
    if (job->role != RP_ROLE_FORWARD) {
        RP_TRY(warm_up_gradients(stage, zeros));
        RP_TRY(warm_up_method(stage));
    }
fail:;
    rp_err drained = rp_stage_drain(stage); /* commands in the queue still read the zeros */
    rp_arena_finish(&scratch);
    return err != RP_OK ? err : drained;
}

static rp_err open_books(rp_arena *arena, rp_stage *stage) {
    const rp_layout *layout = stage->layout;
    rp_err err;
    RP_TRY(rp_versions_open(arena, stage->job, layout->slots, &stage->versions));
    RP_TRY(RP_ARENA_NEW(arena, layout->slots, &stage->slots.slot));
    RP_TRY(RP_ARENA_NEW(arena, layout->deferred_slots + 1, &stage->deferred.slot));
    RP_TRY(rp_stage_open_statistics(arena, stage));
    stage->slots.count = layout->slots;
    stage->deferred.count = layout->deferred_slots;
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        const uint32_t layer = layout->first_layer + i;
        stage->whole =
            stage->job->model->plan[layer].whole ? &stage->job->model->layer[layer] : stage->whole;
    }
    for (uint32_t i = 0; i < RP_GAIN_ENTRIES && layout->probes; i++) {
        RP_TRY(RP_ARENA_NEW(arena, layout->trained_count + 1, &stage->gain.share[i]));
    }
fail:
    return err;
}

/* METHODS 11. */
static double rate_factor(const rp_job *job) {
    const double per_stage = job->optim.staleness_per_stage;
    const uint32_t behind = job->cut.stage_count - 1 - job->stage;
    return rp_optim_stage_rate(&job->optim,
                               per_stage > 0 ? per_stage * behind : rp_job_staleness(job));
}

rp_err rp_stage_prepare(rp_arena *arena, const rp_executor_kind *kind, const rp_site *site,
                        const rp_job *job, rp_stage **out) {
    const rp_command init = {.kind = RP_COMMAND_INIT};
    rp_stage *stage = NULL;
    rp_err err;
    RP_TRY(RP_ARENA_NEW(arena, 1, &stage));
    stage->job = job;
    stage->rate_factor = rate_factor(job);
    RP_TRY(kind->prepare(arena, site, job, &stage->executor));
    stage->layout = stage->executor->layout;
    RP_TRY(open_books(arena, stage));
    if (rp_stage_facts(stage).warms_up) {
        kind->rehearse(stage->executor, true);
        err = rp_stage_warm_up(stage);
        kind->rehearse(stage->executor, false);
        RP_TRY(err);
        RP_TRY(rp_stage_warm_up(stage));
        stage->accumulated = 0;
        stage->tied = false;
        stage->anchored = false;
        memset(stage->applied, 0, sizeof stage->applied);
    }
    RP_TRY(rp_stage_issue(stage, &init));
    stage->starts = job->step_first == 0;
    rp_stage_start(stage, job->step_first);
    RP_TRY(rp_stage_drain(stage));
    *out = stage;
    return RP_OK;
fail:
    rp_stage_destroy(&stage);
    return err;
}

void rp_stage_destroy(rp_stage **stage_pointer) {
    rp_stage *stage = *stage_pointer;
    if (stage && stage->executor) {
        stage->executor->kind->destroy(&stage->executor);
        rp_stage_record_free(stage);
    }
    *stage_pointer = NULL;
}
