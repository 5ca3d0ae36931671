/* Running ops. */
#include "stage/stage.h"

#include "base/clock.h"
#include "optim/average.h"
#include "stage/stage_own.h"

const rp_layout *rp_stage_layout(const rp_stage *stage) {
    return stage->layout;
}

rp_stage_copies rp_stage_copies_of(const rp_stage *stage) {
    return stage->copies;
}

uint32_t rp_stage_replicas(const rp_stage *stage) {
    return stage->versions.replicas;
}

uint64_t rp_stage_applied(const rp_stage *stage, uint32_t replica) {
    RP_ASSERT(replica < RP_REPLICAS_MAX);
    return stage->applied[replica];
}

void rp_stage_set_applied(rp_stage *stage, uint32_t replica, uint64_t applied) {
    RP_ASSERT(replica < RP_REPLICAS_MAX);
    stage->applied[replica] = applied;
}

uint32_t rp_stage_gap_max(const rp_stage *stage) {
    return stage->versions.gap_max;
}

void rp_stage_start(rp_stage *stage, uint64_t step) {
    stage->mean_valid = false;
    stage->probe_left = 0;
    rp_versions_start(&stage->versions, step);
}

void rp_stage_end(rp_stage *stage, uint64_t step) {
    rp_versions_end(&stage->versions, step);
}

void rp_stage_see(rp_stage *stage, const rp_flat *weights) {
    stage->seen = weights;
    for (uint32_t i = 0; i < stage->param_count; i++) {
        rp_stage_param *param = &stage->param[i];
        if (param->trained != RP_NOT_TRAINED) {
            param->value.buffer = weights->part[param->trained];
        }
    }
}

const rp_flat *rp_stage_evaluated(const rp_stage *stage) {
    const rp_versions *versions = &stage->versions;
    const uint64_t step = versions->list.step;
    switch (stage->job->method.evaluate) {
    case RP_EVALUATE_MEAN:
        return &stage->scratch;
    case RP_EVALUATE_LATEST:
        return &stage->weights[versions->latest[step > 0 ? (step - 1) % versions->replicas : 0]];
    case RP_EVALUATE_CENTRE:
        break;
    }
    return stage->centre.arena ? &stage->centre : &stage->weights[versions->latest[0]];
}

rp_err rp_stage_evaluated_fill(rp_stage *stage) {
    const rp_versions *versions = &stage->versions;
    const uint32_t count = (uint32_t)(stage->layout->weight_bytes / sizeof(float));
    rp_err err = RP_OK;
    if (stage->job->method.evaluate != RP_EVALUATE_MEAN || stage->mean_valid || count == 0) {
        return RP_OK;
    }
    rp_buffer *mean = rp_darena_whole(stage->scratch.arena);
    RP_TRY(rp_buffer_copy(stage->device, mean, 0,
                          rp_darena_whole(stage->weights[versions->latest[0]].arena), 0,
                          stage->layout->weight_bytes));
    for (uint32_t r = 1; r < versions->replicas; r++) {
        const rp_flat *replica = &stage->weights[versions->latest[r]];
        RP_TRY(rp_average_towards(stage->device, mean, rp_darena_whole(replica->arena), count,
                                  1.0f / (float)(r + 1)));
    }
    stage->mean_valid = true;
fail:
    return err;
}

/* Chooses what an op sees; a prediction is enqueued ahead of it. */
static rp_err look(rp_stage *stage, const rp_sight *sight, const rp_op *op, uint32_t direction) {
    const bool cached = stage->predicted[1].arena != NULL;
    rp_flat *ahead = &stage->predicted[cached ? direction : 0];
    rp_err err = RP_OK;
    if (sight->ahead == 0) {
        rp_stage_see(stage, &stage->weights[sight->block]);
        return RP_OK;
    }
    if (!sight->reuse) {
        RP_TRY(rp_stage_run_prediction(stage, sight, rp_stage_trust_at(stage, op->step), ahead));
    }
    rp_stage_see(stage, ahead);
fail:
    return err;
}

static size_t tensor_bytes(const rp_layout_tensor *tensor, uint32_t n) {
    return rp_shape_count(&tensor->sample) * n * sizeof(float);
}

void rp_stage_bind(rp_stage *stage, const rp_slot *slot, const rp_debt *debt, uint32_t n) {
    const rp_layout *layout = stage->layout;
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        const rp_layout_tensor *tensor = &layout->tensor[t];
        const rp_layout_storage *storage = &layout->value.storage[tensor->storage];
        stage->value[t].buffer =
            storage->kept ? slot->kept[storage->buffer] : stage->value_pool[storage->buffer];
        stage->value[t].shape = rp_shape_batch(n, &tensor->sample);
        stage->grad[t].buffer = NULL;
        stage->grad[t].shape = stage->value[t].shape;
        if (tensor->grad == RP_NO_STORAGE) {
            continue;
        }
        storage = &layout->grad.storage[tensor->grad];
        if (!storage->kept) {
            stage->grad[t].buffer = stage->grad_pool[storage->buffer];
        } else if (debt) {
            stage->grad[t].buffer = debt->kept[storage->buffer];
        }
    }
}

static uint32_t tensor_of(const rp_layout *layout, uint32_t producer) {
    return producer == RP_LAYER_DATA ? layout->data_tensor : layout->tensor_of[producer];
}

/* What forward and backward of the layer at `position` share. */
static rp_layer_call make_call(rp_stage *stage, const rp_slot *slot, uint32_t position,
                               const rp_op *op) {
    const rp_layout *layout = stage->layout;
    const rp_model *model = stage->job->model;
    uint32_t index = layout->first_layer + position;
    rp_layer_call call = {
        .device = stage->device,
        .layer = &model->layer[index],
        .plan = &model->plan[index],
        .n = op->samples.count,
        .training = true,
        .y = &stage->value[layout->input_count + position],
        .workspace = stage->workspace,
        .seed = stage->job->seed,
        .sample_first = op->step * stage->job->batch + op->samples.first,
    };
    for (uint32_t i = 0; i < call.layer->input_count; i++) {
        call.in[i] = model->in[index][i];
        call.x[i] = &stage->value[tensor_of(layout, call.layer->input[i])];
    }
    for (uint32_t s = 0; s < call.plan->saved_count; s++) {
        call.saved[s] = slot->saved[position * RP_LAYER_SAVED_MAX + s];
    }
    uint32_t param = model->param_first[index] - stage->param_first;
    for (uint32_t p = 0; p < call.plan->param_count; p++) {
        call.param[p] = &stage->param[param + p].value;
        call.dparam[p] = stage->param[param + p].grad.buffer ? &stage->param[param + p].grad : NULL;
    }
    return call;
}

static bool same_range(const rp_range *a, const rp_range *b) {
    return a->first == b->first && a->count == b->count;
}

/* The schedule never asks for more slots than its own replay found. */
static rp_slot *free_slot(rp_stage *stage) {
    rp_slot *slot = NULL;
    for (uint32_t i = 0; !slot && i < stage->layout->slots; i++) {
        slot = stage->slot[i].busy ? NULL : &stage->slot[i];
    }
    RP_ASSERT(slot);
    return slot;
}

/* A backward follows its forward. */
static rp_slot *slot_of(rp_stage *stage, const rp_op *op, bool evaluating) {
    rp_slot *found = NULL;
    for (uint32_t i = 0; !found && i < stage->layout->slots; i++) {
        rp_slot *slot = &stage->slot[i];
        bool fits = slot->busy && slot->evaluating == evaluating && slot->step == op->step &&
                    same_range(&slot->samples, &op->samples);
        found = fits ? slot : NULL;
    }
    RP_ASSERT(found);
    return found;
}

rp_err rp_stage_run_forward(rp_stage *stage, const rp_op *op, const void *const *in,
                            void *const *out, rp_pass pass) {
    const rp_layout *layout = stage->layout;
    uint32_t n = op->samples.count;
    RP_ASSERT(n > 0 && n <= stage->job->micro);
    rp_slot *slot = free_slot(stage);
    rp_err err = RP_OK;
    rp_stage_bind(stage, slot, NULL, n);
    for (uint32_t i = 0; i < layout->input_count; i++) {
        RP_TRY(rp_buffer_write(stage->device, stage->value[i].buffer, 0, in[i],
                               tensor_bytes(&layout->tensor[i], n)));
    }
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        rp_layer_call call = make_call(stage, slot, i, op);
        call.training = pass.training;
        call.renewal = pass.renewal;
        RP_TRY(rp_layer_forward(&call));
    }
    for (uint32_t i = 0; i < layout->output_count; i++) {
        uint32_t t = layout->outputs[i];
        RP_TRY(rp_buffer_read(stage->device, out[i], stage->value[t].buffer, 0,
                              tensor_bytes(&layout->tensor[t], n)));
    }
    slot->busy = true;
    slot->evaluating = pass.evaluating;
    slot->step = op->step;
    slot->samples = op->samples;
fail:
    return err;
}

rp_err rp_stage_forward(rp_stage *stage, const rp_op *op, const void *const *in, void *const *out) {
    const rp_sight sight = rp_versions_forward(&stage->versions, op);
    rp_err err;
    RP_TRY(look(stage, &sight, op, 0));
    RP_TRY(rp_stage_run_probe(stage, op, &sight));
    RP_TRY(rp_stage_run_forward(stage, op, in, out, (rp_pass){.training = true}));
fail:
    return err;
}

rp_err rp_stage_forward_only(rp_stage *stage, const rp_op *op, const void *const *in,
                             void *const *out, bool training) {
    rp_err err = rp_stage_evaluated_fill(stage);
    if (err != RP_OK) {
        return err;
    }
    rp_stage_see(stage, rp_stage_evaluated(stage));
    const uint64_t before =
        op->step * ((stage->job->batch - 1) / stage->job->micro + 1) + op->micro;
    const rp_pass pass = {training, true, training ? (uint32_t)before + 1 : 0};
    return rp_stage_run_forward(stage, op, in, out, pass);
}

/* Loss over the last layer's output; writes dy when the op is a backward. */
static rp_err run_loss(rp_stage *stage, const rp_op *op, uint32_t step_samples, const void *target,
                       bool gradient) {
    const rp_job *job = stage->job;
    uint32_t t = stage->layout->tensor_count - 1;
    size_t width = job->loss->class_target ? 1 : job->target_width;
    rp_err err;
    RP_TRY(rp_buffer_write(stage->device, stage->target, 0, target,
                           width * op->samples.count * sizeof(float)));
    rp_loss_call call = {
        .device = stage->device,
        .n = op->samples.count,
        .step_samples = step_samples,
        .y = &stage->value[t],
        .target = stage->target,
        .dy = gradient && stage->grad[t].buffer ? &stage->grad[t] : NULL,
        .result = stage->results,
        .result_first = op->samples.first,
    };
    RP_TRY(rp_loss_run(job->loss, &call));
fail:
    return err;
}

rp_err rp_stage_evaluate(rp_stage *stage, const rp_op *op, uint32_t step_samples,
                         const void *target) {
    rp_slot *slot = slot_of(stage, op, true);
    rp_stage_bind(stage, slot, NULL, op->samples.count);
    slot->busy = false;
    return run_loss(stage, op, step_samples, target, false);
}

void rp_stage_forget(rp_stage *stage, const rp_op *op) {
    slot_of(stage, op, true)->busy = false;
}

static rp_debt *debt_of(rp_stage *stage, const rp_op *op) {
    for (uint32_t i = 0; i < stage->layout->debts; i++) {
        rp_debt *debt = &stage->debt[i];
        if (op->kind == RP_OP_BACKWARD_INPUT && !debt->busy) {
            debt->busy = true;
            debt->step = op->step;
            debt->samples = op->samples;
            return debt;
        }
        if (op->kind == RP_OP_BACKWARD_WEIGHT && debt->busy && debt->step == op->step &&
            same_range(&debt->samples, &op->samples)) {
            return debt;
        }
    }
    RP_ASSERT(op->kind == RP_OP_BACKWARD);
    return NULL;
}

/* The gradient that enters at the top: from the next stage, or the loss. */
static rp_err gradient_in(rp_stage *stage, const rp_op *op, const void *const *in) {
    const rp_layout *layout = stage->layout;
    if (rp_job_is_last(stage->job)) {
        rp_sched_shape shape = rp_job_sched_shape(stage->job, 0, UINT64_MAX);
        return run_loss(stage, op, rp_sched_step_samples(&shape, op->step), in[0], true);
    }
    rp_crossing upper = rp_layout_crossing(layout, true, true);
    for (uint32_t i = 0; i < upper.count; i++) {
        uint32_t t = upper.tensor[i];
        rp_err err = rp_buffer_write(stage->device, stage->grad[t].buffer, 0, in[i],
                                     tensor_bytes(&layout->tensor[t], op->samples.count));
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

static rp_err backward_layer(rp_stage *stage, const rp_slot *slot, uint32_t position,
                             const rp_op *op) {
    const rp_layout *layout = stage->layout;
    rp_layer_call call = make_call(stage, slot, position, op);
    const rp_tensor *dy = &stage->grad[layout->input_count + position];
    if (!dy->buffer) {
        return RP_OK; /* nothing trained from here on down */
    }
    call.dy = dy;
    call.want_dx = op->kind != RP_OP_BACKWARD_WEIGHT;
    call.want_dw = op->kind != RP_OP_BACKWARD_INPUT && call.plan->param_count > 0;
    call.accumulate = stage->accumulated > 0;
    bool any_dx = false;
    for (uint32_t i = 0; i < call.layer->input_count; i++) {
        uint32_t t = tensor_of(layout, call.layer->input[i]);
        if (call.want_dx && stage->grad[t].buffer) {
            call.dx[i] = &stage->grad[t];
            call.dx_add[i] = layout->tensor[t].grad_first != position;
            for (uint32_t j = 0; j < i; j++) {
                call.dx_add[i] |= call.layer->input[j] == call.layer->input[i];
            }
            any_dx = true;
        }
    }
    call.want_dx = any_dx;
    return any_dx || call.want_dw ? rp_layer_backward(&call) : RP_OK;
}

static rp_err gradient_out(rp_stage *stage, const rp_op *op, void *const *out) {
    const rp_layout *layout = stage->layout;
    rp_crossing lower = rp_layout_crossing(layout, false, true);
    for (uint32_t i = 0; i < lower.count; i++) {
        uint32_t t = lower.tensor[i];
        rp_err err = rp_buffer_read(stage->device, out[i], stage->grad[t].buffer, 0,
                                    tensor_bytes(&layout->tensor[t], op->samples.count));
        if (err != RP_OK) {
            return err;
        }
    }
    return RP_OK;
}

rp_err rp_stage_run_backward(rp_stage *stage, const rp_op *op, const void *const *in,
                             void *const *out) {
    rp_slot *slot = slot_of(stage, op, false);
    rp_debt *debt = debt_of(stage, op);
    rp_err err = RP_OK;
    rp_stage_bind(stage, slot, debt, op->samples.count);
    if (op->kind != RP_OP_BACKWARD_WEIGHT) {
        RP_TRY(gradient_in(stage, op, in));
    }
    for (uint32_t i = stage->layout->layer_count; i-- > 0;) {
        RP_TRY(backward_layer(stage, slot, i, op));
    }
    if (op->kind != RP_OP_BACKWARD_WEIGHT) {
        RP_TRY(gradient_out(stage, op, out));
    }
    if (op->kind != RP_OP_BACKWARD_INPUT) {
        slot->busy = false;
        stage->accumulated++;
        if (debt) {
            debt->busy = false;
        }
    }
fail:
    return err;
}

rp_err rp_stage_backward(rp_stage *stage, const rp_op *op, const void *const *in,
                         void *const *out) {
    const rp_sight sight = rp_versions_backward(&stage->versions, op);
    rp_err err;
    RP_TRY(look(stage, &sight, op, 1));
    RP_TRY(rp_stage_run_probe(stage, op, &sight));
    RP_TRY(rp_stage_run_backward(stage, op, in, out));
fail:
    return err;
}

uint32_t rp_stage_norm_count(const rp_stage *stage) {
    return stage->trained_count;
}

rp_err rp_stage_norms(rp_stage *stage, float *out) {
    if (stage->trained_count == 0) {
        return RP_OK;
    }
    rp_err err;
    RP_TRY(rp_grad_sumsq(stage->device, rp_darena_whole(stage->grads.arena), stage->spans,
                         stage->trained_count, stage->norms));
    RP_TRY(
        rp_buffer_read(stage->device, out, stage->norms, 0, stage->trained_count * sizeof(float)));
fail:
    return err;
}

/* Layers with something to do once a step (deferred batch statistics). */
static rp_err commit_layers(rp_stage *stage, uint64_t step) {
    rp_op op = {.kind = RP_OP_UPDATE, .step = step};
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < stage->layout->layer_count; i++) {
        rp_layer_call call = make_call(stage, &stage->slot[0], i, &op);
        if (call.layer->kind->commit) {
            RP_TRY(call.layer->kind->commit(&call));
        }
    }
fail:
    return err;
}

/* The optimiser's call for a replica, on the weights `w`; step: for the learning rate. */
static rp_optim_call optim_call(const rp_stage *stage, uint32_t replica, const rp_flat *w,
                                uint64_t step) {
    const rp_job *job = stage->job;
    const uint32_t states = stage->layout->state_count;
    rp_sched_shape shape = rp_job_sched_shape(job, 0, UINT64_MAX);
    rp_optim_call call = {
        .device = stage->device,
        .optim = &job->optim,
        .w = rp_darena_whole(w->arena),
        .g = rp_darena_whole(stage->grads.arena),
        .count = (uint32_t)(stage->layout->weight_bytes / sizeof(float)),
        .lr = (float)rp_lr_at(&job->lr, (double)job->optim.lr, step, job->steps,
                              rp_sched_epoch_steps(&shape)),
        .t = stage->applied[replica],
        .grad_scale = 1.0f,
    };
    for (uint32_t s = 0; s < states; s++) {
        call.state[s] = rp_darena_whole(stage->state[replica * states + s].arena);
    }
    return call;
}

/* With the learning rate of the stage's next update for all of the steps ahead. `trust` lies in the
 * host's memory until later probes have passed the queue, so it outlives the copy. */
rp_err rp_stage_run_prediction(rp_stage *stage, const rp_sight *sight, const float *trust,
                               rp_flat *out) {
    rp_err err = RP_OK;
    if (stage->trained_count == 0) {
        return RP_OK;
    }
    rp_buffer *whole = rp_darena_whole(out->arena);
    const rp_optim_call call =
        optim_call(stage, sight->replica, &stage->weights[sight->block], stage->versions.list.step);
    RP_TRY(call.optim->kind->predict(&call, whole, (float)sight->ahead));
    if (trust) {
        RP_TRY(rp_buffer_write(stage->device, stage->shares, 0, trust,
                               stage->trained_count * sizeof *trust));
        RP_TRY(rp_optim_in_shares(&call, whole, stage->spans, stage->shares, stage->trained_count));
    }
fail:
    return err;
}

/* What an average needs from before the local step. */
static rp_err average_before(rp_stage *stage, rp_buffer *x, bool due) {
    const rp_method *method = &stage->job->method;
    const uint32_t count = (uint32_t)(stage->layout->weight_bytes / sizeof(float));
    const bool reference = method->kind->average == RP_AVERAGE_REFERENCE;
    if (!due || (!reference && !method->before)) {
        return RP_OK;
    }
    rp_buffer *scratch = rp_darena_whole(stage->scratch.arena);
    if (reference) {
        return rp_buffer_copy(stage->device, scratch, 0, x, 0, count * sizeof(float));
    }
    return rp_average_pull(stage->device, scratch, x, rp_darena_whole(stage->centre.arena), count,
                           (float)method->alpha);
}

static rp_err average_after(rp_stage *stage, rp_buffer *x, bool due) {
    const rp_method *method = &stage->job->method;
    const uint32_t count = (uint32_t)(stage->layout->weight_bytes / sizeof(float));
    if (!due) {
        return RP_OK;
    }
    rp_buffer *centre = rp_darena_whole(stage->centre.arena);
    if (method->kind->average == RP_AVERAGE_REFERENCE) {
        return rp_average_reference(stage->device, x, centre, rp_darena_whole(stage->scratch.arena),
                                    count, (float)method->alpha,
                                    1.0f / (float)stage->versions.replicas);
    }
    return method->before
               ? rp_average_push(stage->device, x, rp_darena_whole(stage->scratch.arena), count)
               : rp_average_elastic(stage->device, x, centre, count, (float)method->alpha);
}

rp_err rp_stage_run_update(rp_stage *stage, const rp_version_step *by, uint64_t step,
                           float grad_scale) {
    const rp_method *method = &stage->job->method;
    /* updates of the replica when the term is taken: algorithm 1 of EASGD asks its clock before */
    const uint64_t own = step / stage->versions.replicas + !method->before;
    const bool due = method->kind->average != RP_AVERAGE_NONE && own % method->period == 0;
    rp_optim_call call = optim_call(stage, by->replica, &stage->weights[by->to], step);
    rp_err err;
    call.grad_scale = grad_scale;
    RP_TRY(average_before(stage, call.w, due));
    RP_TRY(call.optim->kind->step(&call));
    RP_TRY(average_after(stage, call.w, due));
    stage->applied[by->replica]++;
fail:
    return err;
}

rp_err rp_stage_update(rp_stage *stage, const rp_op *op, float grad_scale, bool skip) {
    const rp_version_step by = rp_versions_update(&stage->versions, op);
    rp_err err;
    RP_ASSERT(by.to < stage->layout->versions);
    stage->accumulated = 0;
    stage->mean_valid = false;
    RP_TRY(commit_layers(stage, op->step));
    if (stage->trained_count == 0) {
        return RP_OK;
    }
    if (by.from != by.to) {
        RP_TRY(rp_buffer_copy(stage->device, rp_darena_whole(stage->weights[by.to].arena), 0,
                              rp_darena_whole(stage->weights[by.from].arena), 0,
                              stage->layout->weight_bytes));
    }
    if (!skip) {
        RP_TRY(rp_stage_run_update(stage, &by, op->step, grad_scale));
    }
    RP_TRY(rp_stage_run_probe(stage, op, &(rp_sight){.replica = by.replica}));
fail:
    return err;
}

rp_err rp_stage_results(rp_stage *stage, float *out, uint32_t samples) {
    return rp_buffer_read(stage->device, out, stage->results, 0, 2 * samples * sizeof(float));
}

/* One timed batch of enqueues: seconds a repeat, by the device's own end and the host's start. */
static rp_err time_layers(rp_stage *stage, uint32_t repeats, bool backward, double *seconds) {
    rp_op op = {.kind = backward ? RP_OP_BACKWARD : RP_OP_FORWARD,
                .samples = {0, stage->job->micro}};
    rp_debt *debt = stage->layout->debts ? &stage->debt[0] : NULL;
    rp_stage_bind(stage, &stage->slot[0], debt, op.samples.count);
    rp_clock clock = rp_clock_real();
    rp_err err;
    RP_TRY(rp_device_drain(stage->device));
    int64_t start_ns = rp_clock_now_ns(&clock);
    for (uint32_t r = 0; r < repeats; r++) {
        for (uint32_t i = 0; i < stage->layout->layer_count; i++) {
            if (backward) {
                RP_TRY(backward_layer(stage, &stage->slot[0], i, &op));
            } else {
                rp_layer_call call = make_call(stage, &stage->slot[0], i, &op);
                RP_TRY(rp_layer_forward(&call));
            }
        }
    }
    RP_TRY(rp_device_drain(stage->device));
    *seconds = (double)(rp_clock_now_ns(&clock) - start_ns) * 1e-9 / repeats;
fail:
    return err;
}

rp_err rp_stage_time(rp_stage *stage, uint32_t repeats, double *forward_s, double *backward_s) {
    rp_err err;
    RP_TRY(time_layers(stage, repeats, false, forward_s));
    RP_TRY(time_layers(stage, repeats, true, backward_s));
fail:
    return err;
}
