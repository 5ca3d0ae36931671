/* When layers of different stages may share a tensor. */
#include <stdio.h>

#include "nn/ties.h"
#include "stage/job.h"

/* Why the copies of a tensor would differ; NULL: they stay equal. Without a flush only one stage
 * updates the tensor. */
static const char *find_reason(const rp_method *method, const rp_optim *optim) {
    if (!method->kind->flushed) {
        return NULL;
    }
    if (optim->clip_norm_stage > 0) {
        return "clip_norm_stage scales the gradients of each stage by its own norm";
    }
    return optim->staleness_per_stage > 0
               ? "staleness_per_stage gives each stage its own learning rate"
               : NULL;
}

rp_err rp_method_fit_ties(const rp_method *method, const rp_optim *optim, const rp_model *model,
                          const rp_cut *cut) {
    const char *reason = find_reason(method, optim);
    for (uint32_t p = 0; reason && p < model->param_count; p++) {
        const rp_model_param *use = &model->param[p];
        const rp_model_param *owner = &model->param[use->owner];
        const uint32_t stage = rp_ties_stage_of(model, cut, p);
        const uint32_t first = rp_ties_stage_of(model, cut, use->owner);
        if (use->role == RP_PARAM_TRAINED && stage != first) {
            return rp_fail(RP_ERR_USAGE,
                           "layers '%.80s' (stage %u) and '%.80s' (stage %u) share '%.80s', which "
                           "schedule %s cannot keep equal here: %s. Leave that key out, use a cut "
                           "with both layers on one board, or separate tensors (no `names`)",
                           model->layer[owner->layer].name, first, model->layer[use->layer].name,
                           stage, use->name, method->kind->name, reason);
        }
    }
    return RP_OK;
}
