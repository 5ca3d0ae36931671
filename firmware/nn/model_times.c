/* A model whose samples have fewer tokens than planned. The shapes of every layer are computed once
 * for each length, before anything runs; memory, weights and kernels are those of the planned
 * length. A layer that would need others is refused. */
#include <string.h>

#include "nn/layer_common.h"
#include "nn/model.h"

static uint32_t count_inputs(const rp_model *model) {
    return model->input_count > 0 ? model->input_count : 1;
}

uint32_t rp_model_time(const rp_model *model) {
    const uint32_t parts = count_inputs(model);
    const uint32_t time = model->input.dim[0] / parts;
    bool same = model->input_type == RP_I32 && model->input.dims == 1;
    for (uint32_t i = 0; i < model->input_count; i++) {
        same = same && model->plan[i].out.dim[0] == time;
    }
    return same ? time : 0;
}

/* ---- making views ---------------------------------------------------------------------------- */

/* Input `index` of several: tokens [index * time, (index + 1) * time) of the data. */
static void plan_part(const rp_model *model, uint32_t index, uint32_t time, rp_layer_plan *out) {
    *out = model->plan[index];
    out->out.dim[0] = time;
    out->ids_first = index * time;
}

static rp_err refuse_param(const rp_layer *layer, const rp_layer_plan *longest,
                           const rp_layer_plan *plan, uint32_t p, uint32_t time) {
    char text[2][RP_LAYER_SHAPE_TEXT];
    return rp_fail(RP_ERR_SHAPE,
                   "layer '%s': the %s of %s is %s for the longest samples, but %s for %u tokens, "
                   "so it needs samples of one length",
                   layer->name, longest->param[p].suffix, layer->kind->name,
                   rp_layer_shape_text(&longest->param[p].shape, text[0]),
                   rp_layer_shape_text(&plan->param[p].shape, text[1]), time);
}

static bool needs_same_memory(const rp_layer_plan *longest, const rp_layer_plan *plan) {
    bool same = longest->saved_count == plan->saved_count && longest->needs_x == plan->needs_x &&
                longest->needs_y == plan->needs_y && longest->in_place == plan->in_place &&
                longest->same == plan->same && longest->whole == plan->whole &&
                longest->ids == plan->ids && longest->gives_ids == plan->gives_ids &&
                longest->param_count == plan->param_count &&
                rp_shape_count(&plan->out) <= rp_shape_count(&longest->out);
    for (uint32_t s = 0; same && s < plan->saved_count; s++) {
        same = plan->saved[s].fixed_bytes == longest->saved[s].fixed_bytes &&
               plan->saved[s].sample_bytes <= longest->saved[s].sample_bytes;
    }
    return same;
}

static rp_err check_plan(const rp_layer *layer, const rp_layer_plan *longest,
                         const rp_layer_plan *plan, uint32_t time) {
    if (!needs_same_memory(longest, plan)) {
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': %s needs other memory for %u tokens, so it needs samples of "
                       "one length",
                       layer->name, layer->kind->name, time);
    }
    for (uint32_t p = 0; p < plan->param_count; p++) {
        if (!rp_shape_equal(&plan->param[p].shape, &longest->param[p].shape)) {
            return refuse_param(layer, longest, plan, p, time);
        }
    }
    return RP_OK;
}

static rp_err make_view(rp_arena *arena, const rp_model *model, uint32_t time, rp_model_view *out) {
    rp_layer_plan *plan;
    rp_shape(*in)[RP_LAYER_INPUTS_MAX];
    rp_err err;
    *out = (rp_model_view){.time = time, .input = rp_shape_1(count_inputs(model) * time)};
    RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &plan));
    RP_TRY(RP_ARENA_NEW(arena, model->layer_count, &in));
    out->plan = plan;
    out->in = (const rp_shape(*)[RP_LAYER_INPUTS_MAX])in;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const rp_layer *layer = &model->layer[i];
        for (uint32_t j = 0; j < layer->input_count; j++) {
            in[i][j] = *rp_model_view_shape(out, layer->input[j]);
        }
        if (i < model->input_count) {
            plan_part(model, i, time, &plan[i]);
        } else {
            RP_TRY(rp_layer_make_plan(layer, in[i], &plan[i]));
        }
        RP_TRY(check_plan(layer, &model->plan[i], &plan[i], time));
    }
fail:
    return err;
}

rp_err rp_model_add_times(rp_arena *arena, rp_model *model, const uint32_t *time, uint32_t count) {
    const uint32_t most = rp_model_time(model);
    rp_err err = RP_OK;
    RP_ASSERT(count <= RP_MODEL_TIMES_MAX && model->view_count == 0);
    if (count == 0) {
        return RP_OK;
    }
    if (most == 0) {
        return rp_fail(RP_ERR_SHAPE, "the model's input is not one row of token ids, or several of "
                                     "one length");
    }
    RP_TRY(RP_ARENA_NEW(arena, count, &model->view));
    for (uint32_t k = 0; k < count; k++) {
        RP_ASSERT(time[k] > (k > 0 ? time[k - 1] : 0) && time[k] < most);
        RP_TRY(make_view(arena, model, time[k], &model->view[k]));
    }
    model->view_count = count;
fail:
    return err;
}

/* ---- using them ------------------------------------------------------------------------------ */

static uint32_t find_view(const rp_model *model, uint32_t time) {
    uint32_t k = 0;
    while (k < model->view_count && model->view[k].time != time) {
        k++;
    }
    return k;
}

bool rp_model_has_time(const rp_model *model, uint32_t time) {
    return time == 0 || find_view(model, time) < model->view_count;
}

rp_model_view rp_model_view_at(const rp_model *model, uint32_t time) {
    const uint32_t k = find_view(model, time);
    RP_ASSERT(time == 0 || k < model->view_count);
    return time > 0 ? model->view[k]
                    : (rp_model_view){.input = model->input,
                                      .plan = model->plan,
                                      .in = (const rp_shape(*)[RP_LAYER_INPUTS_MAX])model->in};
}

const rp_shape *rp_model_view_shape(const rp_model_view *view, uint32_t layer) {
    return layer == RP_LAYER_DATA ? &view->input : &view->plan[layer].out;
}
