#include "nn/activation.h"

#include <stdio.h>

#include "nn/layer_common.h"

enum { ENTRY_BYTES = 64 };

/* The value of the kind's only key; the index of a word. */
static float *slope_of(const rp_layer *layer) {
    return layer->spec;
}

rp_err rp_activation_parse(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    const rp_activation *facts = layer->kind->facts;
    (void)data;
    const char *key = layer->kind->keys;
    *slope_of(layer) = facts->slope;
    if (facts->words) {
        uint32_t word = 0;
        rp_err err = rp_node_word(keys, key, facts->words, &word);
        *slope_of(layer) = (float)word;
        return err;
    }
    return key ? rp_node_f32(keys, key, 0.0, 1e6, slope_of(layer)) : RP_OK;
}

rp_err rp_activation_plan(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const rp_activation *facts = layer->kind->facts;
    const double elements = (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = *in,
        .needs_x = !facts->from_y,
        .needs_y = facts->from_y,
        .in_place = facts->from_y,
        .flops_forward = facts->flops_forward * elements,
        .flops_backward = facts->flops_backward * elements,
    };
    return RP_OK;
}

static size_t element_count(const rp_layer_call *call) {
    return call->n * rp_shape_count(&call->in[0]);
}

static rp_err begin_launch(const rp_layer_call *call, const char *direction, rp_launch *launch) {
    const char *kind = call->layer->kind->name;
    const rp_activation *facts = call->layer->kind->facts;
    const size_t word = facts->words ? (size_t)*slope_of(call->layer) : 0;
    char entry[ENTRY_BYTES];
    (void)snprintf(entry, sizeof entry, "%s%s%s_%s", kind, word > 0 ? "_" : "",
                   word > 0 ? facts->words[word] : "", direction);
    return rp_layer_begin(call, kind, entry, NULL, launch);
}

rp_err rp_activation_forward(const rp_layer_call *call) {
    const size_t count = element_count(call);
    rp_launch launch;
    rp_err err = begin_launch(call, "forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_f32(&launch, *slope_of(call->layer));
    return rp_layer_run_wide(&launch, count);
}

rp_err rp_activation_backward(const rp_layer_call *call) {
    const size_t count = element_count(call);
    const rp_tensor *reference = call->plan->needs_y ? call->y : call->x[0];
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = begin_launch(call, "backward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, reference);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_u32(&launch, call->dx_add[0]);
    rp_arg_f32(&launch, *slope_of(call->layer));
    return rp_layer_run_wide(&launch, count);
}
