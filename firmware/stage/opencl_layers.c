/* Passes of the opencl executor: boundary tensors in, the layers in order, boundary tensors out.
 * The only caller of layers. */
#include "stage/opencl_own.h"

/* ---- binding --------------------------------------------------------------------------------- */

static void select_weights(rp_opencl *e, const rp_pass *pass, rp_block weights) {
    const rp_layout *layout = e->base.layout;
    const rp_flat *flat = rp_opencl_flat(e, weights);
    for (uint32_t i = 0; i < layout->param_count; i++) {
        if (layout->trained[i] != RP_NOT_TRAINED) {
            e->param[i].value.buffer = flat->part[layout->trained[i]];
        }
    }
    rp_opencl_select_values(e, pass);
}

/* View of n samples of a buffer, from sample `first` on. */
static rp_tensor view_of(rp_buffer *buffer, rp_dtype type, uint32_t first, uint32_t n,
                         const rp_shape *sample) {
    return (rp_tensor){.buffer = buffer,
                       .dtype = type,
                       .offset = buffer ? first * (uint64_t)rp_shape_count(sample) : 0,
                       .shape = rp_shape_batch(n, sample)};
}

/* The memory of a value that is not in the slot, or of its f32 copy; NULL: it is in the slot. */
static rp_buffer *scratch_of(const rp_opencl *e, const rp_layout_storage *storage, bool backward) {
    return storage->recomputed ? e->recomputed[storage->buffer]
           : storage->packed   ? e->value_pool[storage->copy[backward]]
           : storage->kept     ? NULL
                               : e->value_pool[storage->buffer];
}

/* Sets the op's views: of kept storage, at the op's position among its forward's samples; of
 * scratch, at its beginning. */
static void bind_tensors(rp_opencl *e, const rp_pass *pass) {
    const rp_layout *layout = e->base.layout;
    const rp_model_view view = rp_model_view_at(layout->model, pass->time);
    rp_buffer *const *part = e->slot[pass->stash.slot];
    const uint32_t n = pass->op->samples.count;
    const bool backward = pass->op->kind != RP_OP_FORWARD;
    for (uint32_t t = 0; t < layout->tensor_count; t++) {
        const rp_layout_tensor *tensor = &layout->tensor[t];
        const rp_shape *sample = rp_model_view_shape(&view, tensor->producer);
        const rp_layout_storage *storage = &layout->value.storage[tensor->storage];
        rp_buffer *scratch = scratch_of(e, storage, backward);
        e->value[t] =
            scratch ? view_of(scratch, tensor->type, 0, n, sample)
                    : view_of(part[storage->buffer], tensor->type, pass->stash.first, n, sample);
        e->grad[t] = view_of(NULL, RP_F32, 0, n, sample);
        if (tensor->grad == RP_NO_STORAGE) {
            continue;
        }
        storage = &layout->grad.storage[tensor->grad];
        if (!storage->kept) {
            e->grad[t].buffer = e->grad_pool[storage->buffer];
        } else if (pass->deferred.slot != RP_NO_SLOT) {
            e->grad[t] = view_of(e->deferred[pass->deferred.slot][storage->buffer], RP_F32,
                                 pass->deferred.first, n, sample);
        }
    }
}

static uint32_t tensor_of(const rp_layout *layout, uint32_t producer) {
    return producer == RP_LAYER_DATA ? layout->data_tensor : layout->tensor_of[producer];
}

/* The arguments that a layer's forward and backward have in common. */
static rp_layer_call make_call(rp_opencl *e, rp_buffer *const *part, uint32_t position, uint32_t n,
                               uint32_t time, uint64_t sample_first) {
    const rp_layout *layout = e->base.layout;
    const rp_model *model = e->base.job->model;
    const rp_model_view view = rp_model_view_at(model, time);
    uint32_t index = layout->first_layer + position;
    rp_layer_call call = {
        .device = e->device,
        .layer = &model->layer[index],
        .plan = &view.plan[index],
        .n = n,
        .longest_in = model->in[index],
        .training = !model->layer[index].frozen,
        .y = &e->value[layout->input_count + position],
        .workspace = e->workspace,
        .seed = e->base.job->seed,
        .sample_first = sample_first,
    };
    for (uint32_t i = 0; i < call.layer->input_count; i++) {
        call.in[i] = view.in[index][i];
        call.x[i] = &e->value[tensor_of(layout, call.layer->input[i])];
    }
    for (uint32_t s = 0; s < call.plan->saved_count && model->wants_grad[index]; s++) {
        const uint32_t at = position * RP_LAYER_SAVED_MAX + s;
        call.saved[s] = layout->group_count ? e->recomputed[layout->recompute_saved[at]]
                                            : part[rp_layout_saved_part(layout, position, s)];
    }
    uint32_t param = model->param_first[index] - layout->param_first;
    for (uint32_t p = 0; p < call.plan->param_count; p++) {
        call.param[p] = &e->param[param + p].value;
        call.dparam[p] = e->param[param + p].grad.buffer ? &e->param[param + p].grad : NULL;
    }
    return call;
}

static rp_layer_call call_of(rp_opencl *e, const rp_pass *pass, uint32_t position) {
    rp_layer_call call =
        make_call(e, e->slot[pass->stash.slot], position, pass->op->samples.count, pass->time,
                  pass->op->step * e->base.job->batch + pass->op->samples.first);
    call.saved_first = e->base.layout->group_count ? 0 : pass->stash.first;
    return call;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* For tests: see rp_site. */
static rp_err make_wrong(rp_opencl *e) {
    static const float wrong = 1.0f;
    const rp_tensor *y = &e->value[e->base.layout->tensor_count - 1];
    return rp_buffer_write(e->device, y->buffer, (size_t)y->offset * sizeof wrong, &wrong,
                           sizeof wrong);
}

rp_err rp_opencl_forward(rp_opencl *e, const rp_pass *pass) {
    const rp_layout *layout = e->base.layout;
    const rp_boundary_tensors lower = rp_layout_boundary_at(layout, pass->time, false, false);
    const rp_boundary_tensors upper = rp_layout_boundary_at(layout, pass->time, true, false);
    rp_err err;
    select_weights(e, pass, pass->weights);
    bind_tensors(e, pass);
    RP_TRY(rp_opencl_take_values(e, pass));
    RP_TRY(rp_opencl_tensors_in(e, pass, &lower, e->value));
    RP_TRY(rp_opencl_store_inputs(e, pass));
    for (uint32_t i = 0; i < layout->layer_count; i++) {
        rp_layer_call call = call_of(e, pass, i);
        call.training = pass->training && !call.layer->frozen;
        call.renewal = pass->renewal;
        RP_TRY(rp_layer_forward(&call));
        RP_TRY(rp_opencl_store(e, pass, layout->input_count + i));
    }
    if (pass->training && rp_executor_is_wrong(&e->base)) {
        RP_TRY(make_wrong(e));
    }
    RP_TRY(rp_opencl_tensors_out(e, pass, &upper, e->value));
fail:
    return err;
}

/* Loss of the last layer's output. gradient: the op is a backward, so dy is written. */
static rp_err run_loss(rp_opencl *e, const rp_pass *pass, bool gradient) {
    const rp_job *job = e->base.job;
    const uint32_t t = e->base.layout->tensor_count - 1;
    const size_t width = rp_job_target_width_at(job, pass->time);
    rp_err err;
    RP_TRY(rp_opencl_write_pieces(e, pass, 0, e->target, 0, width * sizeof(float)));
    rp_loss_call call = {
        .device = e->device,
        .n = pass->op->samples.count,
        .step_samples = pass->step_samples,
        .rows = rp_job_target_rows_at(job, pass->time),
        .options = job->loss_options,
        .y = &e->value[t],
        .target = e->target,
        .dy = gradient && e->grad[t].buffer ? &e->grad[t] : NULL,
        .result = e->results,
        .row_result = e->row_results,
        .result_first = pass->op->samples.first,
        .overlap = gradient ? NULL : e->overlap,
    };
    RP_TRY(rp_loss_run(job->loss, &call));
fail:
    return err;
}

rp_err rp_opencl_loss(rp_opencl *e, const rp_pass *pass) {
    bind_tensors(e, pass);
    return run_loss(e, pass, false);
}

/* The gradient of the stage's output, from the next stage or the loss. */
static rp_err gradient_in(rp_opencl *e, const rp_pass *pass) {
    if (rp_job_is_last(e->base.job)) {
        return run_loss(e, pass, true);
    }
    const rp_boundary_tensors upper = rp_layout_boundary_at(e->base.layout, pass->time, true, true);
    return rp_opencl_tensors_in(e, pass, &upper, e->grad);
}

static rp_err gradient_out(rp_opencl *e, const rp_pass *pass) {
    const rp_boundary_tensors lower =
        rp_layout_boundary_at(e->base.layout, pass->time, false, true);
    return rp_opencl_tensors_out(e, pass, &lower, e->grad);
}

/* Unpacks what a layer reads: its inputs, its output. */
static rp_err load_values(rp_opencl *e, const rp_pass *pass, uint32_t position, bool x, bool y) {
    const rp_layout *layout = e->base.layout;
    const rp_layer *layer = &e->base.job->model->layer[layout->first_layer + position];
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < layer->input_count && x; i++) {
        RP_TRY(rp_opencl_load(e, pass, tensor_of(layout, layer->input[i])));
    }
    RP_TRY(y ? rp_opencl_load(e, pass, layout->input_count + position) : RP_OK);
fail:
    return err;
}

static rp_err backward_layer(rp_opencl *e, const rp_pass *pass, uint32_t position) {
    const rp_layout *layout = e->base.layout;
    const rp_op_kind kind = pass->op->kind;
    rp_layer_call call = call_of(e, pass, position);
    const rp_tensor *dy = &e->grad[layout->input_count + position];
    if (!dy->buffer) {
        return RP_OK; /* nothing is trained here or in an earlier layer */
    }
    call.dy = dy;
    call.want_dx = kind != RP_OP_BACKWARD_WEIGHT;
    call.want_dw = kind != RP_OP_BACKWARD_INPUT && rp_layer_trains(call.plan);
    call.accumulate = pass->accumulate;
    bool any_dx = false;
    for (uint32_t i = 0; i < call.layer->input_count; i++) {
        uint32_t t = tensor_of(layout, call.layer->input[i]);
        if (call.want_dx && e->grad[t].buffer) {
            call.dx[i] = &e->grad[t];
            call.dx_add[i] = layout->tensor[t].grad_first != position;
            for (uint32_t j = 0; j < i; j++) {
                call.dx_add[i] |= call.layer->input[j] == call.layer->input[i];
            }
            any_dx = true;
        }
    }
    call.want_dx = any_dx;
    if (!any_dx && !call.want_dw) {
        return RP_OK;
    }
    const rp_err err = load_values(e, pass, position, call.plan->needs_x, call.plan->needs_y);
    return err == RP_OK ? rp_layer_backward(&call) : err;
}

/* Positions [first, end), in reverse order. */
static rp_err backward_layers(rp_opencl *e, const rp_pass *pass, uint32_t first, uint32_t end) {
    rp_err err = RP_OK;
    for (uint32_t i = end; i-- > first;) {
        RP_TRY(backward_layer(e, pass, i));
    }
fail:
    return err;
}

/* Repeats a group's forward, without the running statistics, which the first forward has
 * updated. */
static rp_err forward_again(rp_opencl *e, const rp_pass *pass, const rp_layout_group *group) {
    const rp_layout *layout = e->base.layout;
    rp_err err = RP_OK;
    select_weights(e, pass, pass->forward_weights);
    for (uint32_t i = group->first; i < group->recompute_end; i++) {
        rp_layer_call call = call_of(e, pass, i);
        for (uint32_t p = 0; p < call.plan->param_count; p++) {
            const rp_param_role role = call.plan->param[p].role;
            const bool moves = role == RP_PARAM_STATE || role == RP_PARAM_SCRATCH;
            call.param[p] = moves ? NULL : call.param[p];
        }
        RP_TRY(load_values(e, pass, i, true, false));
        RP_TRY(rp_layer_forward(&call));
        RP_TRY(rp_opencl_store_again(e, layout->input_count + i));
    }
    select_weights(e, pass, pass->weights);
fail:
    return err;
}

static rp_err backward_groups(rp_opencl *e, const rp_pass *pass) {
    rp_err err = RP_OK;
    for (uint32_t g = e->base.layout->group_count; g-- > 0;) {
        const rp_layout_group *group = &e->base.layout->group[g];
        RP_TRY(forward_again(e, pass, group));
        RP_TRY(backward_layers(e, pass, group->first, group->end));
    }
fail:
    return err;
}

rp_err rp_opencl_backward(rp_opencl *e, const rp_pass *pass) {
    const bool moves = pass->op->kind != RP_OP_BACKWARD_WEIGHT && pass->in_count > 0;
    const rp_layout *layout = e->base.layout;
    rp_err err = RP_OK;
    select_weights(e, pass, pass->weights);
    bind_tensors(e, pass);
    rp_opencl_forget_copies(e);
    if (moves) {
        RP_TRY(gradient_in(e, pass));
    }
    RP_TRY(layout->group_count ? backward_groups(e, pass)
                               : backward_layers(e, pass, 0, layout->layer_count));
    if (moves) {
        RP_TRY(gradient_out(e, pass));
    }
fail:
    return err;
}

rp_err rp_opencl_commit(rp_opencl *e, uint64_t step) {
    rp_err err = RP_OK;
    for (uint32_t i = 0; i < e->base.layout->layer_count; i++) {
        rp_layer_call call = make_call(e, e->slot[0], i, 0, 0, step * e->base.job->batch);
        if (call.layer->kind->commit) {
            RP_TRY(call.layer->kind->commit(&call));
        }
    }
fail:
    return err;
}
