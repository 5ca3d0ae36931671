/* When layers of different stages may share a tensor. */
#include <stdio.h>

#include "nn/ties.h"
#include "stage/job.h"

/* Whether every stage sees the same version in each step: with a flush the newest; with 2BW that of
 * the step before; with replicas their own, which no other step changes. */
static bool has_one_version(const rp_method *method) {
    return method->kind->flushed || method->weights == RP_WEIGHTS_DOUBLE ||
           (method->kind->average != RP_AVERAGE_NONE && method->weights == RP_WEIGHTS_CURRENT &&
            !method->lean);
}

/* Why the copies of a tensor would differ; NULL: they stay equal. */
static const char *find_reason(const rp_method *method, const rp_optim *optim, bool guard) {
    if (!has_one_version(method)) {
        return "its stages see different versions of the weights";
    }
    if (optim->clip_norm_stage > 0) {
        return "clip_norm_stage scales the gradients of each stage by its own norm";
    }
    if (optim->staleness_per_stage > 0 || (optim->staleness_power > 0 && !method->kind->flushed)) {
        return "staleness_power gives each stage its own learning rate";
    }
    if (!method->kind->flushed && guard) {
        return "train.guard lets each stage skip a step of its own; guard: false is possible";
    }
    return NULL;
}

rp_err rp_method_fit_ties(const rp_method *method, const rp_optim *optim, bool guard,
                          const rp_model *model, const rp_cut *cut) {
    const char *reason = find_reason(method, optim, guard);
    for (uint32_t p = 0; reason && p < model->param_count; p++) {
        const rp_model_param *use = &model->param[p];
        const rp_model_param *owner = &model->param[use->owner];
        const uint32_t stage = rp_ties_stage_of(model, cut, p);
        const uint32_t first = rp_ties_stage_of(model, cut, use->owner);
        if (use->role == RP_PARAM_TRAINED && stage != first) {
            return rp_fail(RP_ERR_USAGE,
                           "layers '%.80s' (stage %u) and '%.80s' (stage %u) share '%.80s', which "
                           "schedule %s cannot keep equal here: %s. Use a schedule that flushes "
                           "(gpipe, 1f1b, zb-h1), a cut with both layers on one board, or separate "
                           "tensors (no `names`)",
                           model->layer[owner->layer].name, first, model->layer[use->layer].name,
                           stage, use->name, method->kind->name, reason);
        }
    }
    return RP_OK;
}
