#include "optim/average.h"

#include "optim/optim_own.h"

enum { BUFFERS_MAX = 3, NUMBERS_MAX = 2 };

/* Runs one kernel over the blocks: buffers (NULL ends them), their length, then numbers. */
static rp_err run_over_blocks(rp_device *device, const char *entry,
                              const rp_buffer *const buffers[BUFFERS_MAX], uint32_t count,
                              const float *numbers, uint32_t number_count) {
    const rp_optim_call call = {.device = device, .count = count};
    rp_launch launch;
    rp_err err;
    RP_TRY(rp_optim_begin(&call, entry, &launch));
    for (uint32_t i = 0; i < BUFFERS_MAX && buffers[i]; i++) {
        rp_arg_buffer(&launch, buffers[i]);
    }
    rp_arg_u32(&launch, count);
    for (uint32_t i = 0; i < number_count; i++) {
        rp_arg_f32(&launch, numbers[i]);
    }
    RP_TRY(rp_optim_run(&call, &launch));
fail:
    return err;
}

rp_err rp_average_elastic(rp_device *device, rp_buffer *x, rp_buffer *centre, uint32_t count,
                          float alpha) {
    const rp_buffer *const buffers[BUFFERS_MAX] = {x, centre};
    return run_over_blocks(device, "elastic", buffers, count, &alpha, 1);
}

rp_err rp_average_pull(rp_device *device, rp_buffer *out, const rp_buffer *x, rp_buffer *centre,
                       uint32_t count, float alpha) {
    const rp_buffer *const buffers[BUFFERS_MAX] = {out, x, centre};
    return run_over_blocks(device, "elastic_pull", buffers, count, &alpha, 1);
}

rp_err rp_average_add(rp_device *device, rp_buffer *out, const rp_buffer *a, const rp_buffer *b,
                      float factor, uint32_t count) {
    const rp_buffer *const buffers[BUFFERS_MAX] = {out, a, b};
    const float back = -factor; /* negated because the kernel subtracts */
    return run_over_blocks(device, "predict_direction", buffers, count, &back, 1);
}

rp_err rp_average_push(rp_device *device, rp_buffer *x, const rp_buffer *pull, uint32_t count) {
    return rp_average_add(device, x, x, pull, -1.0f, count);
}

rp_err rp_average_towards(rp_device *device, rp_buffer *mean, const rp_buffer *x, uint32_t count,
                          float share) {
    const rp_buffer *const buffers[BUFFERS_MAX] = {mean, x};
    return run_over_blocks(device, "towards", buffers, count, &share, 1);
}

rp_err rp_average_reference(rp_device *device, rp_buffer *x, rp_buffer *reference,
                            const rp_buffer *before, uint32_t count, float alpha, float share) {
    const rp_buffer *const buffers[BUFFERS_MAX] = {x, reference, before};
    const float numbers[NUMBERS_MAX] = {alpha, share};
    return run_over_blocks(device, "reference", buffers, count, numbers, NUMBERS_MAX);
}
