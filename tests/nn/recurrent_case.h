/* What is true of lstm and gru. */
#ifndef RP_TESTS_NN_RECURRENT_CASE_H
#define RP_TESTS_NN_RECURRENT_CASE_H

#include <math.h>

#include "golden.h"

enum { RECURRENT_TEXT = 128, RECURRENT_FLOPS_SMALL = 130000 };

/* Where kernels are interpreted, only the smaller cases run. */
static inline void recurrent_golden(const golden_case *golden) {
    layer_rig rig;
    golden_open(&rig, golden, 0);
    const bool small = rig.plan.flops_forward * rig.call.n <= RECURRENT_FLOPS_SMALL;
    rig_close(&rig);
    if (small || !expect_small()) {
        golden_run(golden);
    }
}

/* `keys` after the kind, for a rig. */
static inline const char *recurrent_keys(const char *kind, const char *keys, char *text) {
    (void)snprintf(text, RECURRENT_TEXT, "{kind: %s, %s}", kind, keys);
    return text;
}

static inline void recurrent_differences(const char *kind) {
    static const char *const keys[] = {"hidden: 5", "hidden: 5, bidirectional: true",
                                       "hidden: 5, output: last, reverse: true"};
    const rp_shape in = rp_shape_2(4, 3);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char text[RECURRENT_TEXT];
        golden_differences(recurrent_keys(kind, keys[i], text), 3, &in, 1, 1e-2f, 2e-3);
    }
}

static inline void recurrent_draw(layer_rig *rig) {
    rig_draw(rig, &rig->x[0], "x");
    rig_draw(rig, &rig->dy, "dy");
    for (uint32_t i = 0; i < rig->plan.param_count; i++) {
        rig_draw(rig, &rig->param[i], rig->plan.param[i].suffix);
    }
}

/* y and dx of `count` samples from `first` on, computed by themselves, the forward a second time
 * without memory for a backward. */
static inline void recurrent_part(layer_rig *rig, uint32_t first, uint32_t count, float *y,
                                  float *dx) {
    const size_t out = rp_shape_count(&rig->plan.out);
    const size_t in = rp_shape_count(&rig->call.in[0]);
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
    expect_ok(rp_layer_forward(&call));
    expect_ok(rp_layer_backward(&call));
    memcpy(y + first * out, rig_read(rig, &view[1]), count * out * sizeof(float));
    memcpy(dx + first * in, rig_read(rig, &view[3]), count * in * sizeof(float));
    call.saved[0] = call.saved[1] = NULL;
    call.training = false;
    rig_draw(rig, &view[1], "other");
    expect_ok(rp_layer_forward(&call));
    assert_memory_equal(y + first * out, rig_read(rig, &view[1]), count * out * sizeof(float));
}

/* Neither the other samples of the microbatch, nor how many of them a work-group has, nor training
 * or evaluation change a bit. */
static inline void recurrent_alone(const char *kind) {
    enum { N = 9 };
    static const char *const keys[] = {"hidden: 19, bidirectional: true",
                                       "hidden: 19, output: last"};
    const rp_shape in = rp_shape_2(expect_small() ? 2 : 6, 5);
    const rp_gemm_choice before = rp_device_gemm(golden_device());
    rp_device_choose_gemm(golden_device(), RP_GEMM_PANEL); /* CLBlast's sums depend on n */
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        char text[RECURRENT_TEXT];
        layer_rig rig;
        float *value[4];
        rig_open(&rig, kind, recurrent_keys(kind, keys[k], text), N, &in, 1);
        const size_t count[2] = {N * rp_shape_count(&rig.plan.out), N * rp_shape_count(&in)};
        for (size_t i = 0; i < 4; i++) {
            expect_ok(RP_ARENA_NEW(&rig.arena, count[i % 2], &value[i]));
        }
        recurrent_draw(&rig);
        recurrent_part(&rig, 0, N, value[0], value[1]);
        for (uint32_t i = 0; i < 4; i++) {
            recurrent_part(&rig, i, 1, value[2], value[3]);
        }
        recurrent_part(&rig, 4, N - 4, value[2], value[3]);
        assert_memory_equal(value[0], value[2], count[0] * sizeof(float));
        assert_memory_equal(value[1], value[3], count[1] * sizeof(float));
        assert_true(value[0][0] != 0 && value[1][0] != 0);
        rig_close(&rig);
    }
    rp_device_choose_gemm(golden_device(), before);
}

/* torch's names and shapes, in its order. */
static inline void recurrent_parameters(const char *kind, uint32_t gates) {
    static const char *const suffix[] = {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0",
                                         "bias_hh_l0"};
    const rp_shape in = rp_shape_2(6, 5);
    const rp_shape shape[] = {rp_shape_2(gates * 16, 5), rp_shape_2(gates * 16, 16),
                              rp_shape_1(gates * 16), rp_shape_1(gates * 16)};
    char text[RECURRENT_TEXT];
    layer_rig rig;
    rig_open(&rig, kind, recurrent_keys(kind, "hidden: 16, bidirectional: true", text), 1, &in, 1);
    assert_int_equal(rig.plan.param_count, 8);
    for (uint32_t i = 0; i < 8; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s%s", suffix[i % 4], i < 4 ? "" : "_reverse");
        assert_string_equal(rig.plan.param[i].suffix, name);
        assert_true(rp_shape_equal(&rig.plan.param[i].shape, &shape[i % 4]));
        assert_int_equal(rig.plan.param[i].init, RP_INIT_UNIFORM);
        expect_close(rig.plan.param[i].init_bound, 0.25, 0, 0);
    }
    const rp_shape out = rp_shape_2(6, 32);
    assert_true(rp_shape_equal(&rig.plan.out, &out));
    rig_close(&rig);
}

static inline void recurrent_refuse(layer_rig *rig, uint32_t inputs, const rp_shape *in,
                                    const char *text) {
    rp_layer_plan plan;
    rig->layer.input_count = inputs;
    expect_err(rp_layer_make_plan(&rig->layer, in, &plan), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), text));
}

static inline void recurrent_shapes(const char *kind) {
    const rp_shape in[2] = {rp_shape_2(6, 5), rp_shape_1(6)};
    const rp_shape other[2] = {rp_shape_2(6, 5), rp_shape_1(5)};
    const rp_shape image = rp_shape_3(3, 6, 5);
    char text[RECURRENT_TEXT];
    layer_rig rig;
    rp_node *keys;
    rig_open(&rig, kind, recurrent_keys(kind, "hidden: 4", text), 1, in, 1);
    recurrent_refuse(&rig, 1, &image, "[3, 6, 5]");
    recurrent_refuse(&rig, 2, in, "not `lengths: true`");
    rig.layer.input_count = 1;
    recurrent_keys(kind, "hidden: 4, bidirectional: true, reverse: true", text);
    expect_ok(rp_config_read_text(&rig.arena, text, strlen(text), "keys", &keys));
    expect_err(rig.layer.kind->parse(&rig.layer, keys, &(rp_model_data){0}), RP_ERR_USAGE);
    rig_close(&rig);
    rig_open(&rig, kind, recurrent_keys(kind, "hidden: 4, lengths: true", text), 1, in, 2);
    assert_int_equal(rig.plan.ids, 2);
    recurrent_refuse(&rig, 1, in, "second input");
    recurrent_refuse(&rig, 2, other, "needs 6 token ids");
    rig.layer.input_count = 2;
    rig_close(&rig);
}

#endif
