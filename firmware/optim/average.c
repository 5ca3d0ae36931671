#include "optim/average.h"

#include "optim/elements.h"

rp_err rp_average_elastic(rp_device *device, rp_buffer *x, rp_buffer *centre, uint32_t count,
                          float alpha) {
    const rp_optim_call call = {.device = device, .count = count};
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(&call, "elastic", &launch));
    rp_arg_buffer(&launch, x);
    rp_arg_buffer(&launch, centre);
    rp_arg_u32(&launch, count);
    rp_arg_f32(&launch, alpha);
    RP_TRY(rp_optim_run(&call, &launch));
fail:
    return err;
}

rp_err rp_average_pull(rp_device *device, rp_buffer *out, const rp_buffer *x, rp_buffer *centre,
                       uint32_t count, float alpha) {
    const rp_optim_call call = {.device = device, .count = count};
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(&call, "elastic_pull", &launch));
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, x);
    rp_arg_buffer(&launch, centre);
    rp_arg_u32(&launch, count);
    rp_arg_f32(&launch, alpha);
    RP_TRY(rp_optim_run(&call, &launch));
fail:
    return err;
}

rp_err rp_average_add(rp_device *device, rp_buffer *out, const rp_buffer *a, const rp_buffer *b,
                      float factor, uint32_t count) {
    const rp_optim_call call = {.device = device, .count = count};
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(&call, "predict_direction", &launch));
    rp_arg_buffer(&launch, out);
    rp_arg_buffer(&launch, a);
    rp_arg_buffer(&launch, b);
    rp_arg_u32(&launch, count);
    rp_arg_f32(&launch, -factor);
    RP_TRY(rp_optim_run(&call, &launch));
fail:
    return err;
}

rp_err rp_average_push(rp_device *device, rp_buffer *x, const rp_buffer *pull, uint32_t count) {
    return rp_average_add(device, x, x, pull, -1.0f, count);
}

rp_err rp_average_reference(rp_device *device, rp_buffer *x, rp_buffer *reference,
                            const rp_buffer *before, uint32_t count, float alpha, float share) {
    const rp_optim_call call = {.device = device, .count = count};
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(&call, "reference", &launch));
    rp_arg_buffer(&launch, x);
    rp_arg_buffer(&launch, reference);
    rp_arg_buffer(&launch, before);
    rp_arg_u32(&launch, count);
    rp_arg_f32(&launch, alpha);
    rp_arg_f32(&launch, share);
    RP_TRY(rp_optim_run(&call, &launch));
fail:
    return err;
}
