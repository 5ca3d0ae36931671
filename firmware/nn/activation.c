#include "nn/activation.h"

#include "device/program.h"

enum { GROUP_ITEMS = 64, ITEM_ELEMENTS = 16 };

rp_err rp_activation_parse_nothing(rp_layer *layer, rp_node *keys, uint32_t classes) {
    (void)layer;
    (void)keys;
    (void)classes;
    return RP_OK;
}

void rp_activation_plan(const rp_shape *in, bool from_y, double flops_forward,
                        double flops_backward, rp_layer_plan *out) {
    const double elements = (double)rp_shape_count(in);
    *out = (rp_layer_plan){
        .out = *in,
        .needs_x = !from_y,
        .needs_y = from_y,
        .in_place = from_y,
        .flops_forward = flops_forward * elements,
        .flops_backward = flops_backward * elements,
    };
}

static size_t element_count(const rp_layer_call *call) {
    return call->n * rp_shape_count(&call->in[0]);
}

static rp_err run(rp_launch *launch, size_t count) {
    const size_t items = (count + ITEM_ELEMENTS - 1) / ITEM_ELEMENTS;
    return rp_launch_run(launch, 1, &items, (size_t[]){GROUP_ITEMS});
}

rp_err rp_activation_forward(const rp_layer_call *call, const char *entry, float slope) {
    rp_kernel *kernel;
    rp_err err;
    const size_t count = element_count(call);
    RP_TRY(rp_kernel_find(call->device, "activation", entry, NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, call->y->buffer);
    rp_arg_buffer(&launch, call->x[0]->buffer);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_f32(&launch, slope);
    RP_TRY(run(&launch, count));
    return RP_OK;
fail:
    return err;
}

rp_err rp_activation_backward(const rp_layer_call *call, const char *entry, float slope) {
    rp_kernel *kernel;
    rp_err err;
    if (!call->want_dx || !call->dx[0]) {
        return RP_OK;
    }
    const size_t count = element_count(call);
    const rp_tensor *reference = call->plan->needs_y ? call->y : call->x[0];
    RP_TRY(rp_kernel_find(call->device, "activation", entry, NULL, &kernel));
    rp_launch launch = rp_launch_begin(kernel);
    rp_arg_buffer(&launch, call->dx[0]->buffer);
    rp_arg_buffer(&launch, call->dy->buffer);
    rp_arg_buffer(&launch, reference->buffer);
    rp_arg_u32(&launch, (uint32_t)count);
    rp_arg_u32(&launch, call->dx_add[0]);
    rp_arg_f32(&launch, slope);
    RP_TRY(run(&launch, count));
    return RP_OK;
fail:
    return err;
}
