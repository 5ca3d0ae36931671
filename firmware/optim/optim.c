#include "optim/optim.h"

#include <math.h>
#include <string.h>

#include "optim/optim_own.h"

enum { GROUP_ITEMS = 64, ITEM_ELEMENTS = 16 };

#define LR_MAX 1e30 /* far from overflow as a float */
#define STALENESS_POWER_MAX 4.0
#define STALENESS_PER_STAGE_MAX 1e6

const rp_optim_kind *rp_optim_find(const char *name) {
    for (const rp_optim_kind *const *kind = rp_optim_kinds; *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            return *kind;
        }
    }
    return NULL;
}

static rp_err unknown_kind(const rp_node *node, const char *name) {
    char known[256] = "";
    size_t used = 0;
    for (const rp_optim_kind *const *kind = rp_optim_kinds; *kind; kind++) {
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", (*kind)->name);
        if (used >= sizeof known) {
            break;
        }
    }
    return rp_node_fail(node, "unknown optimizer '%s', expected one of:%s", name, known);
}

static rp_err read_clips(rp_optim *optim, rp_node *node) {
    rp_err err;
    RP_TRY(rp_node_f64(node, "clip_norm", 0.0, LR_MAX, &optim->clip_norm));
    RP_TRY(rp_node_f64(node, "clip_norm_stage", 0.0, LR_MAX, &optim->clip_norm_stage));
    if (optim->clip_norm > 0 && optim->clip_norm_stage > 0) {
        return rp_node_fail(rp_node_find(node, "clip_norm_stage"),
                            "clip_norm_stage bounds the norm of each stage, clip_norm the norm "
                            "over all stages; expected only one of them");
    }
fail:
    return err;
}

static rp_err read_staleness(rp_optim *optim, rp_node *node) {
    rp_err err;
    RP_TRY(rp_node_f64(node, "staleness_power", 0.0, STALENESS_POWER_MAX, &optim->staleness_power));
    RP_TRY(rp_node_f64(node, "staleness_per_stage", 0.0, STALENESS_PER_STAGE_MAX,
                       &optim->staleness_per_stage));
fail:
    return err;
}

static rp_err check_staleness(const rp_optim *optim, rp_node *node) {
    if (optim->staleness_per_stage > 0 && !(optim->staleness_power > 0)) {
        return rp_node_fail(rp_node_find(node, "staleness_per_stage"),
                            "staleness_per_stage sets the staleness for staleness_power; expected "
                            "also staleness_power above 0");
    }
    return RP_OK;
}

rp_err rp_optim_parse(rp_optim *optim, rp_node *node) {
    const char *name = NULL;
    rp_err err;
    *optim = (rp_optim){.predicts = true};
    if (!rp_node_is_map(node)) {
        return rp_node_fail(node, "expected a map with kind and lr, e.g. {kind: sgd, lr: 0.05}");
    }
    RP_TRY(rp_node_need(node, "kind"));
    RP_TRY(rp_node_string(node, "kind", &name));
    optim->kind = rp_optim_find(name);
    if (!optim->kind) {
        return unknown_kind(rp_node_find(node, "kind"), name);
    }
    RP_TRY(rp_node_need(node, "lr"));
    RP_TRY(rp_node_f64(node, "lr", 0.0, LR_MAX, &optim->lr));
    RP_TRY(read_clips(optim, node));
    RP_TRY(read_staleness(optim, node));
    RP_TRY(optim->kind->parse(optim, node));
    RP_TRY(rp_node_done(node));
    RP_TRY(check_staleness(optim, node));
fail:
    return err;
}

double rp_optim_stage_rate(const rp_optim *optim, double staleness) {
    return optim->staleness_power > 0 ? pow(1.0 + staleness, -optim->staleness_power) : 1.0;
}

double rp_optim_clip_scale(double most, double norm) {
    const double scale = most > 0 ? most / (norm + 1e-6) : 1.0;
    return scale < 1.0 ? scale : 1.0;
}

double rp_optim_momentum(const rp_optim *optim) {
    return optim->momentum > optim->beta1 ? optim->momentum : optim->beta1;
}

rp_err rp_optim_parse_decay(rp_optim *optim, rp_node *keys) {
    return rp_node_f64(keys, "weight_decay", 0.0, LR_MAX, &optim->weight_decay);
}

rp_err rp_optim_begin(const rp_optim_call *call, const char *entry, rp_launch *launch) {
    rp_kernel *kernel;
    rp_err err = rp_kernel_find(call->device, "optim", entry, NULL, &kernel);
    if (err == RP_OK) {
        *launch = rp_launch_begin(kernel);
    }
    return err;
}

rp_err rp_optim_run(const rp_optim_call *call, rp_launch *launch) {
    const size_t items = ((size_t)call->count + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS;
    return rp_launch_run(launch, 1, &items, (size_t[]){GROUP_ITEMS});
}

rp_err rp_optim_copy(const rp_optim_call *call, rp_buffer *out) {
    return rp_buffer_copy(call->device, out, 0, call->w, 0, (size_t)call->count * sizeof(float));
}

rp_err rp_optim_in_shares(const rp_optim_call *call, rp_buffer *out, const rp_buffer *spans,
                          const rp_buffer *shares, uint32_t tensor_count) {
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(call, "in_shares", &launch));
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, call->w);
    rp_arg_buffer(&launch, spans);
    rp_arg_buffer(&launch, shares);
    rp_arg_u32(&launch, call->count);
    rp_arg_u32(&launch, tensor_count);
    RP_TRY(rp_optim_run(call, &launch));
fail:
    return err;
}

rp_err rp_optim_predict_along(const rp_optim_call *call, const rp_buffer *direction, rp_buffer *out,
                              float s) {
    rp_launch launch;
    rp_err err;
    if (call->t == 0 || s == 0.0f) {
        return rp_optim_copy(call, out);
    }
    if (!direction) {
        return rp_fail(
            RP_ERR_USAGE,
            "%s: cannot predict: the optimiser was opened without the state that predictions need",
            call->optim->kind->name);
    }
    RP_TRY(rp_optim_begin(call, "predict_direction", &launch));
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, call->w);
    rp_arg_buffer(&launch, direction);
    rp_arg_u32(&launch, call->count);
    rp_arg_f32(&launch, call->lr * s);
    RP_TRY(rp_optim_run(call, &launch));
    return RP_OK;
fail:
    return err;
}
