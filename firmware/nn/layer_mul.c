/* y = a b element by element, `from: [a, b]`. b has the shape of a, or one element on some axes,
 * or is a gate [C] of an image [C, H, W]; it is then broadcast as in NumPy. The gradient of b is
 * the sum over the axes that were broadcast. All other shapes that NumPy broadcasts are computed by
 * map.c. */
#include "nn/broadcast.h"
#include "nn/map.h"

enum { AXES = 3 /* of rp_broadcast */ };

static const rp_map broadcast_mul = {.name = "mul", .operands = 2, .gradient = RP_MAP_COMPUTED};

static rp_err parse_mul(rp_layer *layer, rp_node *keys, const rp_model_data *data) {
    (void)layer;
    (void)keys;
    (void)data;
    return RP_OK;
}

/* Neighbouring axes that are both kept, or both broadcast, count as one. Returns false if b does
 * not fit or more than AXES remain. */
static bool find_form(const rp_shape *a, const rp_shape *b, rp_broadcast *out) {
    const bool gate = a->dims == 3 && b->dims == 1 && b->dim[0] == a->dim[0];
    const rp_shape factor = gate ? rp_shape_3(b->dim[0], 1, 1) : *b;
    uint32_t size[AXES] = {1, 1, 1};
    bool keep[AXES] = {false};
    uint32_t used = 0;
    if (factor.dims != a->dims) {
        return false;
    }
    for (uint32_t i = a->dims; i-- > 0;) {
        const bool kept = factor.dim[i] == a->dim[i];
        if (!kept && factor.dim[i] != 1) {
            return false;
        }
        if (a->dim[i] == 1) {
            continue;
        }
        if (used == 0 || keep[used - 1] != kept) {
            if (used == AXES) {
                return false;
            }
            keep[used++] = kept;
        }
        size[used - 1] *= a->dim[i];
    }
    *out = (rp_broadcast){.wide = size[0],
                          .q = size[1],
                          .p = size[2],
                          .keep_wide = keep[0],
                          .keep_q = keep[1],
                          .keep_p = keep[2]};
    return true;
}

static rp_broadcast form_of(const rp_layer_call *call) {
    rp_broadcast form;
    const bool fits = find_form(&call->in[0], &call->in[1], &form);
    RP_ASSERT(fits);
    form.n = call->n;
    return form;
}

static bool is_same_count(const rp_shape *in) {
    return rp_shape_count(&in[0]) == rp_shape_count(&in[1]);
}

static rp_err plan_mul(const rp_layer *layer, const rp_shape *in, rp_layer_plan *out) {
    rp_broadcast form;
    if (!find_form(&in[0], &in[1], &form)) {
        return rp_map_plan(&broadcast_mul, layer, in, out);
    }
    const double elements = (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = in[0],
        .needs_x = true,
        .flops_forward = elements,
        .flops_backward = (is_same_count(in) ? 2 : 3) * elements,
    };
    return RP_OK;
}

static bool is_general(const rp_shape *in) {
    rp_broadcast form;
    return !find_form(&in[0], &in[1], &form);
}

static size_t workspace_mul(const rp_layer *layer, const rp_layer_plan *plan, const rp_shape *in,
                            uint32_t n, rp_gemm_choice choice) {
    (void)layer;
    (void)choice;
    return is_general(in) ? rp_map_workspace_bytes(&broadcast_mul, plan, in, n) : 0;
}

static rp_err forward_mul(const rp_layer_call *call) {
    if (is_general(call->in)) {
        return rp_map_forward(&broadcast_mul, call);
    }
    rp_broadcast form = form_of(call);
    if (is_same_count(call->in)) {
        form = (rp_broadcast){.n = 1, .p = 1, .q = 1, .keep_wide = true};
        form.wide = (uint32_t)(call->n * rp_shape_count(call->in));
    }
    return rp_broadcast_multiply(call, &form, call->y, call->x[0], call->x[1], false);
}

/* Both inputs have one shape, and may be one tensor. */
static rp_err find_both(const rp_layer_call *call) {
    const size_t count = call->n * rp_shape_count(call->in);
    rp_launch launch;
    rp_err err = rp_layer_begin(call, "mul", "mul_backward", NULL, &launch);
    if (err != RP_OK) {
        return err;
    }
    rp_arg_tensor(&launch, call->dx[0]);
    rp_arg_tensor(&launch, call->dx[1]);
    rp_arg_tensor(&launch, call->dy);
    rp_arg_tensor(&launch, call->x[0]);
    rp_arg_tensor(&launch, call->x[1]);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_u32(&launch, call->dx_add[0]);
    rp_arg_u32(&launch, call->dx_add[1]);
    return rp_layer_run_wide(&launch, count);
}

static rp_err backward_mul(const rp_layer_call *call) {
    rp_err err = RP_OK;
    if (!call->want_dx || (!call->dx[0] && !call->dx[1])) {
        return RP_OK;
    }
    if (is_general(call->in)) {
        return rp_map_backward(&broadcast_mul, call);
    }
    if (is_same_count(call->in)) {
        return find_both(call);
    }
    const rp_broadcast form = form_of(call);
    if (call->dx[1]) {
        RP_TRY(rp_broadcast_sum(call, &form, call->dx[1]->buffer, call->dx[1]->offset, call->dy,
                                call->x[0], 1, call->dx_add[1]));
    }
    if (call->dx[0]) {
        RP_TRY(
            rp_broadcast_multiply(call, &form, call->dx[0], call->dy, call->x[1], call->dx_add[0]));
    }
fail:
    return err;
}

const rp_layer_kind rp_layer_mul = {
    .name = "mul",
    .keys = "from",
    .source = "torch.mul; gates: Hu et al. 2018",
    .inputs_min = 2,
    .inputs_max = 2,
    .parse = parse_mul,
    .plan = plan_mul,
    .workspace_bytes = workspace_mul,
    .forward = forward_mul,
    .backward = backward_mul,
};
