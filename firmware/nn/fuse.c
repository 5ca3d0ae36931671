#include "nn/fuse.h"

#include <string.h>

#include "nn/layer.h"
#include "nn/workspace.h"

static rp_err plan_fused(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    (void)layer;
    *out = (rp_layer_plan){.out = *in, .in_place = true, .same = true};
    return RP_OK;
}

static rp_err run_nothing(const rp_layer_call *call) {
    (void)call;
    return RP_OK;
}

/* Not in the registry, because no model file names it. */
static const rp_layer_kind done_before = {
    .name = "relu",
    .source = "done by the layer before",
    .inputs_min = 1,
    .inputs_max = 1,
    .plan = plan_fused,
    .forward = run_nothing,
    .backward = run_nothing,
};

static bool begins_stage(const rp_cut *cut, uint32_t layer) {
    for (uint32_t k = 0; k < cut->stage_count; k++) {
        if (cut->first[k] == layer) {
            return true;
        }
    }
    return false;
}

static bool can_fuse(const rp_model *model, const rp_cut *cut, uint32_t relu) {
    const rp_layer *layer = &model->layer[relu];
    return strcmp(layer->kind->name, "relu") == 0 && layer->input[0] == relu - 1 &&
           rp_model_readers(model, relu - 1, 0, model->layer_count) == 1 &&
           !begins_stage(cut, relu) && model->layer[relu - 1].kind->fuse_relu;
}

rp_err rp_model_fuse(rp_model *model, const rp_cut *cut, uint32_t *fused) {
    rp_err err = RP_OK;
    *fused = 0;
    for (uint32_t i = 1; i < model->layer_count; i++) {
        if (!can_fuse(model, cut, i)) {
            continue;
        }
        rp_layer *layer = &model->layer[i - 1];
        if (!layer->kind->fuse_relu(layer)) {
            continue;
        }
        RP_TRY(rp_layer_make_plan(layer, model->in[i - 1], &model->plan[i - 1]));
        model->layer[i].kind = &done_before;
        RP_TRY(rp_layer_make_plan(&model->layer[i], model->in[i], &model->plan[i]));
        ++*fused;
    }
    rp_model_forget_workspaces(model);
fail:
    return err;
}
