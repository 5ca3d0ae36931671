#include "golden.h"

static void equals_pytorch(void **state) {
    (void)state;
    golden_each("conv2d", golden_run);
}

static void gradients_are_differences(void **state) {
    (void)state;
    const rp_shape in = rp_shape_3(4, 6, 5);
    const char *const keys[] = {
        "{kind: conv2d, out: 6, kernel: 3, pad: 1}",
        "{kind: conv2d, out: 6, kernel: 3, pad: 2, stride: 2, dilation: 2}",
        "{kind: conv2d, out: 6, kernel: 3, pad: 1, groups: 2}",
        "{kind: conv2d, out: 8, kernel: 3, pad: 1, groups: 4}",
        "{kind: conv2d, out: 6, kernel: [1, 3], pad: [0, 1], stride: [2, 1]}",
        "{kind: conv2d, out: 8, kernel: [3, 2], pad: [2, 1], dilation: [2, 1], groups: 4}",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        golden_differences(keys[i], 2, &in, 1, 0.25f, 1e-4);
    }
}

/* y and dw of `n` samples of a rig that was planned for more; the layer is run with drawn values.
 */
static void run_few(layer_rig *rig, uint32_t n) {
    rig->call.n = n;
    rig_draw(rig, &rig->x[0], "x");
    rig_draw(rig, &rig->dy, "dy");
    rig_draw(rig, &rig->param[0], "weight");
    rig_draw(rig, &rig->param[1], "bias");
    expect_ok(rig->layer.kind->forward(&rig->call));
    expect_ok(rig->layer.kind->backward(&rig->call));
}

static void fewer_samples_than_planned(void **state) {
    (void)state;
    const char *const keys[] = {
        "{kind: conv2d, out: 4, kernel: 3, pad: 1}",
        "{kind: conv2d, out: 4, kernel: 3, pad: 1, stride: 2}",
        "{kind: conv2d, out: 4, kernel: 3, pad: 1, groups: 4}",
        "{kind: conv2d, out: 4, kernel: [1, 3], pad: [0, 1], stride: [2, 1]}",
        "{kind: conv2d, out: 4, kernel: [3, 1], pad: [1, 0], groups: 4}",
    };
    const rp_shape in = rp_shape_3(4, 6, 6);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        layer_rig few;
        layer_rig many;
        rig_open(&few, "few", keys[i], 3, &in, 1);
        rig_open(&many, "many", keys[i], 65, &in, 1);
        run_few(&few, 3);
        run_few(&many, 3);
        size_t count = rp_shape_count(&few.y.shape);
        assert_memory_equal(rig_read(&many, &many.y), rig_read(&few, &few.y), count * 4);
        count = rp_shape_count(&few.x[0].shape);
        assert_memory_equal(rig_read(&many, &many.dx[0]), rig_read(&few, &few.dx[0]), count * 4);
        const float *dx = rig_read(&many, &many.dx[0]);
        expect_close(dx[count], 0, 0, 0); /* nothing behind the third sample is written */
        for (int p = 0; p < 2; p++) {
            count = rp_shape_count(&few.dparam[p].shape);
            assert_memory_equal(rig_read(&many, &many.dparam[p]), rig_read(&few, &few.dparam[p]),
                                count * 4);
        }
        rig_close(&many);
        rig_close(&few);
    }
}

/* A batch whose patches would not fit the workspace's limit is walked in chunks of images: the same
 * as one image after the other. */
static void large_batches_are_walked(void **state) {
    (void)state;
    enum { N = 8, C = 64, SIDE = 64 };
    if (expect_small()) {
        skip(); /* the limit is 64 MiB: an hour of interpretation, and no kernel of its own */
    }
    const char keys[] = "{kind: conv2d, out: 3, kernel: 3, pad: 1}";
    const rp_shape in = rp_shape_3(C, SIDE, SIDE);
    for (int choice = RP_GEMM_CLBLAST; choice <= RP_GEMM_PANEL; choice++) {
        layer_rig all;
        layer_rig one;
        rp_device_choose_gemm(golden_device(), (rp_gemm_choice)choice);
        rig_open(&all, "all", keys, N, &in, 1);
        rig_open(&one, "one", keys, 1, &in, 1);
        size_t bytes =
            all.layer.kind->workspace_bytes(&all.layer, &all.plan, &in, N, (rp_gemm_choice)choice);
        assert_true(bytes < (size_t)66 << 20);
        run_few(&all, N);
        rig_draw(&one, &one.param[0], "weight");
        rig_draw(&one, &one.param[1], "bias");
        const float *x = rig_read(&all, &all.x[0]);
        const float *dy = rig_read(&all, &all.dy);
        const float *y = rig_read(&all, &all.y);
        const float *dx = rig_read(&all, &all.dx[0]);
        for (size_t i = 0; i < N; i++) {
            const size_t pixels = SIDE * SIDE;
            rig_write(&one, &one.x[0], x + i * C * pixels);
            rig_write(&one, &one.dy, dy + i * 3 * pixels);
            one.call.accumulate = i > 0;
            expect_ok(one.layer.kind->forward(&one.call));
            expect_ok(one.layer.kind->backward(&one.call));
            const float *yi = rig_read(&one, &one.y);
            const float *dxi = rig_read(&one, &one.dx[0]);
            expect_close_all(yi, y + i * 3 * pixels, 3 * pixels, 1e-5, 1e-4);
            expect_close_all(dxi, dx + i * C * pixels, C * pixels, 1e-5, 1e-5);
        }
        const float *dw = rig_read(&one, &one.dparam[0]);
        const float *want = rig_read(&all, &all.dparam[0]);
        expect_close_all(dw, want, 3 * C * 9, 1e-5, 2e-3);
        rig_close(&one);
        rig_close(&all);
    }
}

/* Forward; backward; then gradients added, asked for one by one. */
static void run_adding(layer_rig *rig) {
    run_few(rig, rig->call.n);
    rig->call.accumulate = true;
    rig->call.dx_add[0] = true;
    rig->call.want_dw = false;
    expect_ok(rig->layer.kind->backward(&rig->call));
    rig->call.want_dw = true;
    rig->call.want_dx = false;
    expect_ok(rig->layer.kind->backward(&rig->call));
}

static void expect_same(layer_rig *got, const rp_tensor *got_of, layer_rig *want,
                        const rp_tensor *want_of) {
    const float *a = rig_read(got, got_of);
    const float *b = rig_read(want, want_of);
    expect_close_all(a, b, rp_shape_count(&want_of->shape), 1e-5, 1e-3);
}

/* On a CPU few channels go another way than matrix products: whole and broken blocks of channels
 * and vectors, several strips of a plane, several blocks of images. */
static void ways_agree(void **state) {
    (void)state;
    const struct {
        const char *keys;
        uint32_t n, c, h, w;
    } cases[] = {
        {"{kind: conv2d, out: 9, kernel: 3, pad: 1}", 2, 5, 7, 7},
        {"{kind: conv2d, out: 17, kernel: 5, pad: 2}", 1, 3, 5, 21},
        {"{kind: conv2d, out: 8, kernel: 3, pad: 1}", 40, 8, 28, 28},
        {"{kind: conv2d, out: 32, kernel: 3, pad: 1}", 18, 31, 32, 33},
        {"{kind: conv2d, out: 3, kernel: 3, pad: 1}", 2, 2, 5, 470},
    };
    const size_t count = expect_small() ? 2 : sizeof cases / sizeof *cases;
    for (size_t i = 0; i < count; i++) {
        const rp_shape in = rp_shape_3(cases[i].c, cases[i].h, cases[i].w);
        layer_rig rig[2];
        for (int choice = RP_GEMM_CLBLAST; choice <= RP_GEMM_PANEL; choice++) {
            rp_device_choose_gemm(golden_device(), (rp_gemm_choice)choice);
            rig_open(&rig[choice], "way", cases[i].keys, cases[i].n, &in, 1);
            run_adding(&rig[choice]);
        }
        layer_rig *const clblast = &rig[RP_GEMM_CLBLAST];
        layer_rig *const panel = &rig[RP_GEMM_PANEL];
        expect_same(panel, &panel->y, clblast, &clblast->y);
        expect_same(panel, &panel->dx[0], clblast, &clblast->dx[0]);
        for (int p = 0; p < 2; p++) {
            expect_same(panel, &panel->dparam[p], clblast, &clblast->dparam[p]);
        }
        rig_close(panel);
        rig_close(clblast);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),
        cmocka_unit_test(gradients_are_differences),
        cmocka_unit_test(fewer_samples_than_planned),
        cmocka_unit_test(large_batches_are_walked),
        cmocka_unit_test(ways_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
