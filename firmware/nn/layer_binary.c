/* Functions of two operands, and `where` of three, as in NumPy: a table of kinds over map.c. The
 * values of kinds that compare are 0 and 1, and have no gradient. */
#include "nn/map.h"

static rp_err parse_binary(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

static rp_err plan_binary(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    return rp_map_plan(layer->kind->facts, layer, in, out);
}

static size_t workspace_binary(const rp_layer *layer, const rp_layer_plan *plan, const rp_shape *in,
                               uint32_t n, rp_gemm_choice choice) {
    (void)choice;
    return rp_map_workspace_bytes(layer->kind->facts, plan, in, n);
}

static rp_err forward_binary(const rp_layer_call *call) {
    return rp_map_forward(call->layer->kind->facts, call);
}

static rp_err backward_binary(const rp_layer_call *call) {
    return rp_map_backward(call->layer->kind->facts, call);
}

#define BINARY(id, about, count, ...)                                                              \
    const rp_layer_kind rp_layer_##id = {                                                          \
        .name = #id,                                                                               \
        .keys = "from",                                                                            \
        .source = about,                                                                           \
        .inputs_min = count,                                                                       \
        .inputs_max = count,                                                                       \
        .parse = parse_binary,                                                                     \
        .plan = plan_binary,                                                                       \
        .workspace_bytes = workspace_binary,                                                       \
        .forward = forward_binary,                                                                 \
        .backward = backward_binary,                                                               \
        .facts = &(const rp_map){.name = #id, .operands = count, __VA_ARGS__},                     \
    }

#define COMPARES .gradient = RP_MAP_NONE, .takes_ids = true

BINARY(sub, "torch.sub", 2, .gradient = RP_MAP_LINEAR, .factor = {1.0f, -1.0f});
BINARY(div, "torch.div", 2, .gradient = RP_MAP_COMPUTED);
BINARY(min, "torch.minimum", 2, .gradient = RP_MAP_COMPUTED);
BINARY(max, "torch.maximum", 2, .gradient = RP_MAP_COMPUTED);
BINARY(where, "torch.where", 3, .gradient = RP_MAP_COMPUTED);
BINARY(equal, "torch.eq", 2, COMPARES);
BINARY(less, "torch.lt", 2, COMPARES);
BINARY(greater, "torch.gt", 2, COMPARES);
BINARY(and, "torch.logical_and", 2, .gradient = RP_MAP_NONE);
BINARY(or, "torch.logical_or", 2, .gradient = RP_MAP_NONE);
