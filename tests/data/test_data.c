#include "fixture.h"

#include <math.h>

enum { RECORD = 3073, PIXELS = 3072, RECORDS = 4 };

/* Tiny CIFAR batches; byte j of record i of batch b is a hash of all three. */
static void write_cifar(void) {
    static unsigned char bytes[RECORDS * RECORD];
    static const char *const names[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    for (unsigned b = 0; b < 6; b++) {
        for (unsigned i = 0; i < RECORDS; i++) {
            for (unsigned j = 1; j < RECORD; j++) {
                bytes[i * RECORD + j] = (unsigned char)(1 + (b * 31 + i * 7 + j * j * 13) % 255);
            }
            bytes[i * RECORD] = (unsigned char)((b + i) % 10);
        }
        write_file(names[b], bytes, sizeof bytes);
    }
}

static void orders(void **state) {
    (void)state;
    rp_data data;
    uint32_t a[100];
    uint32_t b[100];
    bool seen[100] = {false};
    expect_ok(open_data(&data, "{set: glyphs, train: 100, test: 10}", NULL, true));
    rp_data_order(&data, RP_SPLIT_TRAIN, 0, a);
    rp_data_order(&data, RP_SPLIT_TRAIN, 0, b);
    assert_memory_equal(a, b, sizeof a);
    for (uint32_t i = 0; i < 100; i++) {
        assert_true(a[i] < 100 && !seen[a[i]]);
        seen[a[i]] = true;
    }
    rp_data_order(&data, RP_SPLIT_TRAIN, 1, b);
    assert_memory_not_equal(a, b, sizeof a);
    data.seed++;
    rp_data_order(&data, RP_SPLIT_TRAIN, 0, b);
    assert_memory_not_equal(a, b, sizeof a);
    rp_data_close(&data);
    expect_ok(open_data(&data, "{set: glyphs, train: 100, test: 10, shuffle: false}", NULL, true));
    rp_data_order(&data, RP_SPLIT_TRAIN, 3, a);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(a[i], i);
    }
    rp_data_close(&data);
}

/* Samples of 3 shares in an epoch; *most, *least: how often one of the 100 samples is there. */
static uint32_t count_shares(const char *text, uint32_t batch, uint32_t epochs, uint32_t *least,
                             uint32_t *most) {
    uint32_t seen[100] = {0};
    uint32_t steps[3];
    uint32_t all = 0;
    for (uint32_t share = 0; share < 3; share++) {
        rp_data data;
        uint32_t order[100];
        expect_ok(open_data(&data, text, NULL, true));
        expect_ok(rp_data_take_share(&data, share, 3, batch));
        assert_int_equal(rp_data_drawn(&data, RP_SPLIT_TRAIN), 100);
        const uint32_t own = data.count[RP_SPLIT_TRAIN];
        steps[share] = (own - 1) / batch + 1;
        all += own;
        for (uint32_t epoch = 0; epoch < epochs; epoch++) {
            rp_data_order(&data, RP_SPLIT_TRAIN, epoch, order);
            for (uint32_t i = 0; i < own; i++) {
                assert_true(order[i] < 100);
                seen[order[i]]++;
            }
        }
        rp_data_close(&data);
    }
    assert_true(steps[0] == steps[1] && steps[1] == steps[2]);
    *least = UINT32_MAX;
    *most = 0;
    for (uint32_t i = 0; i < 100; i++) {
        *least = seen[i] < *least ? seen[i] : *least;
        *most = seen[i] > *most ? seen[i] : *most;
    }
    return all;
}

/* Lanes count a sample once in an epoch. Where one more would take a step of its own, in 33 samples
 * by 11, it is left out, and others are in other epochs, also where nothing is shuffled. */
static void shares_are_an_epoch_together(void **state) {
    (void)state;
    static const char shuffled[] = "{set: glyphs, train: 100, test: 10}";
    static const char as_is[] = "{set: glyphs, train: 100, test: 10, shuffle: false}";
    rp_data data;
    uint32_t least;
    uint32_t most;
    assert_int_equal(count_shares(shuffled, 8, 1, &least, &most), 100);
    assert_true(least == 1 && most == 1);
    assert_int_equal(count_shares(shuffled, 11, 1, &least, &most), 99);
    assert_true(least == 0 && most == 1);
    assert_int_equal(count_shares(as_is, 11, 100, &least, &most), 99);
    assert_true(least == 99 && most == 99);
    expect_ok(open_data(&data, "{set: glyphs, train: 2, test: 10}", NULL, true));
    expect_err(rp_data_take_share(&data, 0, 3, 1), RP_ERR_USAGE);
    rp_data_close(&data);
}

static void batches_are_normalised(void **state) {
    (void)state;
    static float raw[2 * PIXELS];
    static float x[2 * PIXELS];
    rp_data data;
    const uint32_t index[] = {5, 2};
    int32_t labels[2];
    write_cifar();
    expect_ok(
        open_data(&data, "{set: cifar10, path: %, mean: [0, 0, 0], std: [1, 1, 1]}", NULL, true));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 2, false, raw, labels, NULL));
    assert_int_equal(labels[0], 2); /* record 1 of batch 1 */
    assert_int_equal(labels[1], 2);
    expect_close(raw[0], (float)(1 + (31 + 7 + 13) % 255) / 255.0f, 0, 0);
    rp_data_close(&data);
    expect_ok(open_data(&data, "{set: cifar10, path: %}", NULL, true));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 9, index, 2, true, x, NULL, NULL));
    static const float mean[] = {0.4914f, 0.4822f, 0.4465f};
    static const float deviation[] = {0.2470f, 0.2435f, 0.2616f};
    for (int i = 0; i < 2 * PIXELS; i++) {
        int c = i % PIXELS / 1024;
        expect_close(x[i], (raw[i] - mean[c]) / deviation[c], 1e-6, 0);
    }
    const uint32_t beyond = 20;
    expect_err(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &beyond, 1, false, x, NULL, NULL),
               RP_ERR_USAGE);
    rp_data_close(&data);
}

/* Finds the shift and mirror that turn `raw` into `x`; zeros come in from outside. */
static bool find_augmentation(const float *raw, const float *x, int *dy, int *dx, bool *flip) {
    for (int code = 0; code < 2 * 81; code++) {
        *dy = code / 2 / 9 - 4;
        *dx = code / 2 % 9 - 4;
        *flip = code % 2;
        bool same = true;
        for (int i = 0; i < PIXELS && same; i++) {
            int px = *flip ? 31 - i % 32 : i % 32;
            int sy = i / 32 % 32 + *dy;
            int sx = px + *dx;
            bool inside = sy >= 0 && sy < 32 && sx >= 0 && sx < 32;
            float want = inside ? raw[i / 1024 * 1024 + sy * 32 + sx] : 0.0f;
            same = expect_is_close((double)x[i], (double)want, 0, 1e-7);
        }
        if (same) {
            return true;
        }
    }
    return false;
}

static void augmentation(void **state) {
    (void)state;
    static float raw[PIXELS];
    static float x[PIXELS];
    static float again[4 * PIXELS];
    bool moved = false;
    bool kept_side = false;
    bool flipped = false;
    rp_data data;
    write_cifar();
    expect_ok(open_data(
        &data, "{set: cifar10, path: %, augment: crop-flip, mean: [0, 0, 0], std: [1, 1, 1]}", NULL,
        true));
    for (uint32_t epoch = 0; epoch < 6; epoch++) {
        for (uint32_t i = 0; i < 4; i++) {
            int dy;
            int dx;
            bool flip;
            expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, epoch, &i, 1, false, raw, NULL, NULL));
            expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, epoch, &i, 1, true, x, NULL, NULL));
            assert_true(find_augmentation(raw, x, &dy, &dx, &flip));
            moved = moved || (dy != 0 && dx != 0);
            flipped = flipped || flip;
            kept_side = kept_side || !flip;
            /* The same in other company. */
            const uint32_t four[] = {i, 9, i, 3};
            expect_ok(
                rp_data_batch(&data, RP_SPLIT_TRAIN, epoch, four, 4, true, again, NULL, NULL));
            assert_memory_equal(x, again, sizeof x);
            assert_memory_equal(x, again + 2 * PIXELS, sizeof x);
        }
    }
    assert_true(moved && flipped && kept_side);
    rp_data_close(&data);
    expect_ok(open_data(&data,
                        "{set: cifar10, path: %, augment: flip, mean: [0, 0, 0], "
                        "std: [1, 1, 1]}",
                        NULL, true));
    for (uint32_t i = 0; i < 4; i++) {
        int dy;
        int dx;
        bool flip;
        expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &i, 1, false, raw, NULL, NULL));
        expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &i, 1, true, x, NULL, NULL));
        assert_true(find_augmentation(raw, x, &dy, &dx, &flip));
        assert_true(dy == 0 && dx == 0);
    }
    rp_data_close(&data);
}

static void bad_keys(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        const char *part;
    } bad[] = {
        {"{path: x}", "run.yaml:1: the key 'set' is needed"},
        {"{set: glyhps}", "run.yaml:1: set: expected one of: glyphs mnist"},
        {"{set: glyphs, train: 0}", "train: expected a whole number from 1"},
        {"{set: glyphs, trian: 5}", "trian: unknown key; did you mean 'train'?"},
        {"{set: glyphs, path: x}", "path: unknown key"},
        {"{set: glyphs, test: 1, train: 1, augment: rotate}", "one of: none crop flip crop-flip"},
        {"{set: glyphs, test: 1, train: 1, mean: 0.5}", "expected a list of 1 numbers"},
        {"{set: glyphs, test: 1, train: 1, std: [1, 1]}", "expected a list of 1 numbers"},
        {"{set: glyphs, test: 1, train: 1, std: [0]}", "std[0]: expected a number from 1e-30"},
        {"{set: glyphs, test: 1, train: 1, mean: [.nan]}", "mean[0]: expected a number"},
        {"{set: mnist}", "the key 'path' is needed here"},
        {"{set: cifar10, path: %}", "data_batch_1.bin: cannot be opened"},
    };
    rp_data data;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(rp_err_exit_code(open_data(&data, bad[i].keys, NULL, true)), 2);
        expect_part(bad[i].part);
        assert_null(data.kind);
    }
    expect_err(open_data(&data, "{set: glyphs, train: 1, test: 1}", NULL, false), RP_ERR_USAGE);
    expect_part("set: data set 'glyphs' has classes, so it needs `loss: cross-entropy`");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(orders, setup, teardown),
        cmocka_unit_test_setup_teardown(shares_are_an_epoch_together, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_are_normalised, setup, teardown),
        cmocka_unit_test_setup_teardown(augmentation, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_keys, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
