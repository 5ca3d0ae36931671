#include <string.h>

#include "optim/optim.h"
#include "optim/optim_own.h"

#define MU_MAX 1e30 /* far from overflow as a float */

static bool is_none(const rp_node *node) {
    return rp_node_is_scalar(node) && strcmp(rp_node_text(node), "none") == 0;
}

rp_err rp_optim_parse_anchor(rp_optim_anchor *anchor, rp_node *section) {
    rp_node *node = rp_node_find(section, "anchor");
    rp_err err = RP_OK;
    *anchor = (rp_optim_anchor){0};
    if (!node || is_none(node)) {
        return RP_OK;
    }
    if (!rp_node_is_map(node)) {
        return rp_node_f64(section, "anchor", 0.0, MU_MAX, &anchor->mu);
    }
    RP_TRY(rp_node_f64(node, "mu", 0.0, MU_MAX, &anchor->mu));
    RP_TRY(rp_node_bool(node, "drift", &anchor->drift));
    RP_TRY(rp_node_done(node));
fail:
    return err;
}

rp_err rp_optim_check_anchor(const rp_optim *optim, const rp_node *node) {
    const bool plain = strcmp(optim->kind->name, "sgd") == 0 && !(optim->momentum > 0) &&
                       !(optim->staleness_power > 0);
    return !optim->anchor.drift || plain
               ? RP_OK
               : rp_node_fail(node,
                              "a drift is computed from the sum of the updates, which must be the "
                              "rate times the gradient: expected kind: sgd without momentum and "
                              "staleness_power");
}

bool rp_optim_is_anchored(const rp_optim *optim) {
    return optim->anchor.mu > 0 || optim->anchor.drift;
}

rp_err rp_optim_anchor_gradient(const rp_optim_call *call, rp_buffer *g, const rp_buffer *start,
                                const rp_buffer *drift) {
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(call, "anchor", &launch));
    rp_arg_buffer(&launch, g);
    rp_arg_buffer(&launch, call->w);
    rp_arg_buffer(&launch, start);
    rp_arg_buffer(&launch, drift);
    rp_arg_u32(&launch, call->count);
    rp_arg_f32(&launch, (float)call->optim->anchor.mu);
    RP_TRY(rp_optim_run(call, &launch));
fail:
    return err;
}

/* ---- states ---------------------------------------------------------------------------------- */

uint32_t rp_optim_anchor_state(const rp_optim *optim) {
    return optim->anchor.mu > 0 ? optim->kind->state_count(optim) : RP_OPTIM_NO_STATE;
}

uint32_t rp_optim_drift_state(const rp_optim *optim) {
    return optim->anchor.drift ? optim->kind->state_count(optim) + (optim->anchor.mu > 0)
                               : RP_OPTIM_NO_STATE;
}

uint32_t rp_optim_state_count(const rp_optim *optim) {
    return optim->kind->state_count(optim) + (optim->anchor.mu > 0) + optim->anchor.drift;
}

const char *rp_optim_state_name(const rp_optim *optim, uint32_t index) {
    RP_ASSERT(index < rp_optim_state_count(optim));
    return index == rp_optim_anchor_state(optim)  ? "anchor"
           : index == rp_optim_drift_state(optim) ? "drift"
                                                  : optim->kind->state_names[index];
}
