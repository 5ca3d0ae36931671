#include "nn/layer.h"

#include <inttypes.h>
#include <string.h>

const rp_layer_kind *rp_layer_find(const char *name) {
    for (const rp_layer_kind *const *kind = rp_layer_kinds; *kind; kind++) {
        if (strcmp((*kind)->name, name) == 0) {
            return *kind;
        }
    }
    return NULL;
}

bool rp_layer_trains(const rp_layer_plan *plan) {
    for (uint32_t p = 0; p < plan->param_count; p++) {
        if (plan->param[p].role == RP_PARAM_TRAINED) {
            return true;
        }
    }
    return false;
}

rp_err rp_layer_make_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    rp_err err = layer->kind->plan(layer, in, out);
    for (uint32_t p = 0; err == RP_OK && layer->frozen && p < out->param_count; p++) {
        RP_ASSERT(out->param[p].role != RP_PARAM_SCRATCH);
        out->param[p].role = RP_PARAM_FROZEN;
    }
    return err;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Whether the first `count` elements can be used in computations. */
static bool is_usable(const rp_tensor *tensor, rp_dtype type, uint64_t count) {
    return tensor->dtype == type && rp_tensor_fits(tensor, count);
}

static rp_err refuse_tensor(const rp_layer *layer, const rp_tensor *tensor, rp_dtype type,
                            uint64_t count, const char *name, uint32_t index) {
    if (tensor->dtype != type) {
        return rp_fail(RP_ERR_SHAPE, "layer '%s': %s[%u] is %s, but %s needs %s here", layer->name,
                       name, index, rp_dtype_name(tensor->dtype), layer->kind->name,
                       rp_dtype_name(type));
    }
    return rp_fail(
        RP_ERR_SHAPE, "layer '%s': %llu elements of %s[%u] from element %llu on exceed its memory",
        layer->name, (unsigned long long)count, name, index, (unsigned long long)tensor->offset);
}

/* NULL is a tensor that the call does not use. */
static rp_err check_tensor(const rp_layer_call *call, const rp_tensor *tensor, rp_dtype type,
                           const rp_shape *sample, const char *name, uint32_t index) {
    const uint64_t count = (uint64_t)call->n * rp_shape_count(sample);
    if (count > INT32_MAX) { /* kernels count elements in 32 bits */
        return rp_fail(RP_ERR_SHAPE,
                       "layer '%s': a microbatch of %u samples has %" PRIu64
                       " elements, at most 2^31 - 1 are possible; use a smaller microbatch",
                       call->layer->name, call->n, count);
    }
    return !tensor || is_usable(tensor, type, count)
               ? RP_OK
               : refuse_tensor(call->layer, tensor, type, count, name, index);
}

static rp_err check_params(const rp_layer_call *call, rp_tensor *const *params, const char *name) {
    for (uint32_t i = 0; i < call->plan->param_count; i++) {
        const uint64_t count = rp_shape_count(&call->plan->param[i].shape);
        if (params[i] && (!is_usable(params[i], RP_F32, count) || params[i]->offset != 0)) {
            return refuse_tensor(call->layer, params[i], RP_F32, count, name, i);
        }
    }
    return RP_OK;
}

static rp_err check_tensors(const rp_layer_call *call) {
    rp_err err;
    for (uint32_t i = 0; i < call->layer->input_count; i++) {
        const bool ids = rp_layer_takes_ids(call->plan, i);
        RP_ASSERT(!ids || !call->dx[i]);
        RP_TRY(check_tensor(call, call->x[i], ids ? RP_I32 : RP_F32, &call->in[i], "x", i));
        RP_TRY(check_tensor(call, call->dx[i], RP_F32, &call->in[i], "dx", i));
    }
    const rp_dtype type = call->plan->gives_ids ? RP_I32 : RP_F32;
    RP_TRY(check_tensor(call, call->y, type, &call->plan->out, "y", 0));
    RP_TRY(check_tensor(call, call->dy, RP_F32, &call->plan->out, "dy", 0));
    RP_TRY(check_params(call, call->param, "parameter"));
    RP_TRY(check_params(call, call->dparam, "gradient of parameter"));
fail:
    return err;
}

rp_err rp_layer_forward(const rp_layer_call *call) {
    rp_err err = check_tensors(call);
    return err == RP_OK ? call->layer->kind->forward(call) : err;
}

rp_err rp_layer_backward(const rp_layer_call *call) {
    rp_err err = check_tensors(call);
    return err == RP_OK ? call->layer->kind->backward(call) : err;
}
