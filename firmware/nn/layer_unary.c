/* Functions of one element: a table of kinds over kernels/unary.cl. */
#include <math.h>
#include <stdio.h>

#include "nn/layer_common.h"

enum { DEFINES_BYTES = 80 };

/* The largest bound of clip that a file can give. */
#define BOUND_MAX 1e30

typedef struct {
    float first, second; /* pow: the exponent; clip: its bounds */
} unary_spec;

/* What backward reads; NONE: neither x nor y. */
typedef enum { READS_NONE, READS_X, READS_Y, NO_GRADIENT } unary_reads;

typedef struct {
    unary_reads reads;
    double flops_forward, flops_backward; /* per element */
} unary_facts;

static rp_err parse_unary(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err parse_pow(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    unary_spec *spec = layer->spec;
    (void)data;
    *spec = (unary_spec){0};
    rp_err err = rp_node_need(keys, "exponent");
    return err == RP_OK ? rp_node_f32(keys, "exponent", -1e6, 1e6, &spec->first) : err;
}

static rp_err parse_clip(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    unary_spec *spec = layer->spec;
    rp_err err = RP_OK;
    (void)data;
    *spec = (unary_spec){-INFINITY, INFINITY};
    if (rp_node_find(keys, "min")) {
        RP_TRY(rp_node_f32(keys, "min", -BOUND_MAX, BOUND_MAX, &spec->first));
    }
    if (rp_node_find(keys, "max")) {
        RP_TRY(rp_node_f32(keys, "max", -BOUND_MAX, BOUND_MAX, &spec->second));
    }
    if (!(spec->first < spec->second)) {
        return rp_node_fail(keys, "layer '%s': clip needs min below max, found %g and %g",
                            layer->name, (double)spec->first, (double)spec->second);
    }
fail:
    return err;
}

static rp_err plan_unary(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    const unary_facts *facts = layer->kind->facts;
    const double elements = (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = *in,
        .needs_x = facts->reads == READS_X,
        .needs_y = facts->reads == READS_Y,
        .in_place = facts->reads != READS_X,
        .flops_forward = facts->flops_forward * elements,
        .flops_backward = facts->flops_backward * elements,
    };
    return RP_OK;
}

static size_t element_count(const rp_layer_call *call) {
    return call->n * rp_shape_count(&call->in[0]);
}

static rp_err begin(const rp_layer_call *call, const char *entry, rp_launch *launch) {
    char defines[DEFINES_BYTES];
    const char *kind = call->layer->kind->name;
    (void)snprintf(defines, sizeof defines, "-DFORWARD=f_%s -DBACKWARD=d_%s", kind, kind);
    return rp_layer_begin(call, "unary", entry, defines, launch);
}

/* The last arguments of both directions. */
static rp_err run(const rp_layer_call *call, rp_launch *launch) {
    const unary_spec *spec = call->layer->spec;
    const bool has_keys = call->layer->kind->keys != NULL;
    rp_arg_u32(launch, (uint32_t)element_count(call));
    rp_arg_f32(launch, has_keys ? spec->first : 0.0f);
    rp_arg_f32(launch, has_keys ? spec->second : 0.0f);
    return rp_layer_run_wide(launch, element_count(call));
}

static rp_err forward_unary(const rp_layer_call *call) {
    rp_launch launch;
    rp_err err = begin(call, "unary_forward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->y);
    rp_arg_tensor(&launch, call->x[0]);
    return run(call, &launch);
}

static rp_err backward_unary(const rp_layer_call *call) {
    const unary_facts *facts = call->layer->kind->facts;
    rp_launch launch;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    rp_err err = begin(call, "unary_backward", &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, facts->reads == READS_X   ? call->x[0]
                           : facts->reads == READS_Y ? call->y
                                                     : call->dy);
    rp_arg_u32(&launch, call->dx_add[0]);
    return run(call, &launch);
}

#define UNARY_WITH(id, about, bytes, own_keys, own_parse, ...)                                     \
    const rp_layer_kind rp_layer_##id = {                                                          \
        .name = #id,                                                                               \
        .keys = own_keys,                                                                          \
        .source = about,                                                                           \
        .spec_bytes = bytes,                                                                       \
        .inputs_min = 1,                                                                           \
        .inputs_max = 1,                                                                           \
        .parse = own_parse,                                                                        \
        .plan = plan_unary,                                                                        \
        .forward = forward_unary,                                                                  \
        .backward = backward_unary,                                                                \
        .facts = &(const unary_facts){__VA_ARGS__},                                                \
    }
#define UNARY(id, about, ...) UNARY_WITH(id, about, 0, NULL, parse_unary, __VA_ARGS__)

UNARY(neg, "torch.neg", READS_NONE, 1, 1);
UNARY(abs, "torch.abs", READS_X, 1, 1);
UNARY(exp, "torch.exp", READS_Y, 8, 1);
UNARY(log, "torch.log", READS_X, 8, 1);
UNARY(sqrt, "torch.sqrt", READS_Y, 4, 2);
UNARY(reciprocal, "torch.reciprocal", READS_Y, 4, 3);
UNARY(erf, "torch.erf", READS_X, 12, 10);
UNARY(not, "torch.logical_not", NO_GRADIENT, 1, 0);
UNARY(isnan, "torch.isnan", NO_GRADIENT, 1, 0);
UNARY_WITH(pow, "torch.pow with a constant exponent", sizeof(unary_spec), "exponent", parse_pow,
           READS_X, 20, 22);
UNARY_WITH(clip, "torch.clamp, with the derivative of torch.nn.Hardtanh", sizeof(unary_spec),
           "min, max", parse_clip, READS_X, 2, 2);
