/* What is true of every normalisation without batch statistics. */
#ifndef RP_TESTS_NN_NORM_CASE_H
#define RP_TESTS_NN_NORM_CASE_H

#include <math.h>

#include "golden.h"

/* Bits of y and dx of `count` samples from `first` on, computed by themselves, without a backward
 * where `evaluating`. */
static inline void norm_case_part(layer_rig *rig, uint32_t first, uint32_t count, bool evaluating,
                                  float *y, float *dx) {
    const size_t sample = rp_shape_count(&rig->plan.out);
    rp_tensor view[4];
    const rp_tensor *const of[4] = {&rig->x[0], &rig->y, &rig->dy, &rig->dx[0]};
    rp_layer_call call = rig->call;
    for (size_t i = 0; i < 4; i++) {
        expect_ok(rp_tensor_slice(of[i], first, count, &view[i]));
    }
    call.n = count;
    call.x[0] = &view[0];
    call.y = &view[1];
    call.dy = &view[2];
    call.dx[0] = &view[3];
    call.saved_first = first;
    call.training = !evaluating;
    call.saved[0] = evaluating ? NULL : rig->call.saved[0];
    expect_ok(rp_layer_forward(&call));
    if (!evaluating) {
        expect_ok(rp_layer_backward(&call));
    }
    memcpy(y + first * sample, rig_read(rig, &view[1]), count * sample * sizeof(float));
    memcpy(dx + first * sample, rig_read(rig, &view[3]), count * sample * sizeof(float));
}

/* Neither the other samples of the microbatch nor training or evaluation change a bit. */
static inline void norm_case_alone(const char *keys, const rp_shape *shape) {
    enum { N = 5 };
    const size_t count = N * rp_shape_count(shape);
    layer_rig rig;
    float *value[6];
    rig_open(&rig, "norm", keys, N, shape, 1);
    for (size_t i = 0; i < 6; i++) {
        expect_ok(RP_ARENA_NEW(&rig.arena, count, &value[i]));
    }
    rig_draw(&rig, &rig.x[0], "x");
    rig_draw(&rig, &rig.dy, "dy");
    rig_draw(&rig, &rig.param[0], "w");
    if (rig.plan.param_count > 1) {
        rig_draw(&rig, &rig.param[1], "b");
    }
    norm_case_part(&rig, 0, N, false, value[0], value[1]);
    for (uint32_t i = 0; i < N; i++) {
        norm_case_part(&rig, i, 1, false, value[2], value[3]);
    }
    norm_case_part(&rig, 0, 2, true, value[4], value[5]);
    norm_case_part(&rig, 2, N - 2, true, value[4], value[5]);
    assert_memory_equal(value[0], value[2], count * sizeof(float));
    assert_memory_equal(value[1], value[3], count * sizeof(float));
    assert_memory_equal(value[0], value[4], count * sizeof(float));
    assert_true(value[0][0] != 0 && value[1][0] != 0);
    rig_close(&rig);
}

/* One group of 9800 values whose mean is 10000 times the deviation: E[x^2] - E[x]^2 would have no
 * correct digit left. Weights are 1 and biases 0. */
static inline void norm_case_stable(const char *keys, const rp_shape *shape) {
    enum { COUNT = 9800 };
    double mean = 0;
    double square = 0;
    layer_rig rig;
    assert_int_equal(rp_shape_count(shape), COUNT);
    rig_open(&rig, "norm", keys, 1, shape, 1);
    float *x = rig_read(&rig, &rig.x[0]);
    float *ones = rig_read(&rig, &rig.param[0]);
    golden_values("x", COUNT, x);
    for (size_t i = 0; i < rp_shape_count(&rig.param[0].shape); i++) {
        ones[i] = 1.0f;
    }
    for (size_t i = 0; i < COUNT; i++) {
        x[i] = x[i] * 0.1f + 1000.0f;
        mean += (double)x[i] / COUNT;
    }
    for (size_t i = 0; i < COUNT; i++) {
        square += ((double)x[i] - mean) * ((double)x[i] - mean) / COUNT;
    }
    rig_write(&rig, &rig.x[0], x);
    rig_write(&rig, &rig.param[0], ones);
    expect_ok(rp_layer_forward(&rig.call));
    const float *y = rig_read(&rig, &rig.y);
    for (size_t i = 0; i < COUNT; i++) { /* the mean has a rounding of 3e-5 */
        expect_close(y[i], ((double)x[i] - mean) / sqrt(square + 1e-5), 1e-4, 1e-3);
    }
    rig_close(&rig);
}

#endif
