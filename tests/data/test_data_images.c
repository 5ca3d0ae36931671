/* Pictures in a folder for each class: which samples there are, what they are, what is refused. */
#include "picture.h"

#include "data/image.h"
#include "data/resize.h"

enum { H = 10, W = 14 };

static uint8_t pixels[H * W * 3];

/* The picture `tone`, whose first byte says which it is. */
static void put_picture(const char *name, uint8_t tone) {
    fill_picture(pixels, H, W, 3);
    pixels[0] = tone;
    if (strstr(name, ".j")) {
        write_jpeg(name, pixels, H, W);
    } else {
        write_png(name, pixels, H, W, PNG_COLOR_TYPE_RGB, 8, W * 3, false);
    }
}

static void make_folder(const char *name) {
    assert_int_equal(mkdir(in_folder(name), 0700), 0);
}

/* Two classes; four pictures to train, two to test. */
static void make_set(void) {
    make_folder("train");
    make_folder("train/dog");
    make_folder("train/cat");
    make_folder("test");
    make_folder("test/dog");
    put_picture("train/dog/b.png", 1);
    put_picture("train/dog/a.PNG", 2);
    put_picture("train/cat/z.jpeg", 3);
    put_picture("train/cat/.hidden.png", 4);
    write_file("train/cat/notes.txt", "x", 1);
    put_picture("train/cat/10.png", 5);
    put_picture("test/dog/t.png", 6);
    put_picture("test/dog/u.png", 7);
}

static void samples(void **state) {
    (void)state;
    static float x[4 * 3 * H * W];
    int32_t label[4];
    rp_data data;
    const uint32_t index[] = {0, 1, 2, 3};
    make_set();
    expect_ok(
        open_data(&data, "{set: images, path: %, size: [10, 14], normalise: none}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 4);
    assert_int_equal(data.count[RP_SPLIT_TEST], 2);
    assert_int_equal(data.classes, 2);
    assert_string_equal(data.class_name[0], "cat");
    assert_string_equal(data.class_name[1], "dog");
    assert_int_equal(data.channels, 3);
    assert_true(data.workers >= 1);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, index, 4, false, x, label, NULL));
    assert_true(label[0] == 0 && label[1] == 0 && label[2] == 1 && label[3] == 1);
    /* cat/10.png, cat/z.jpeg, dog/a.PNG, dog/b.png */
    const size_t count = 3 * H * W;
    expect_close(x[0], 5 / 255.0, 1e-6, 0);
    expect_close(x[2 * count], 2 / 255.0, 1e-6, 0);
    expect_close(x[3 * count], 1 / 255.0, 1e-6, 0);
    for (uint32_t c = 0; c < 3; c++) { /* planes */
        expect_close(x[(c * H + 4) * W + 9], picture_byte(4, 9, c) / 255.0, 1e-6, 0);
    }
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, index, 2, false, x, label, NULL));
    assert_int_equal(label[1], 1);
    expect_close(x[count], 7 / 255.0, 1e-6, 0);
    rp_data_close(&data);
}

static void sizes_and_colours(void **state) {
    (void)state;
    static float x[3 * 6 * 6];
    static uint8_t small[6 * 6 * 3];
    rp_data data;
    const uint32_t zero = 0;
    make_set();
    put_picture("train/cat/10.png", 5); /* in `pixels` again */
    const rp_image image = {W, H, 3, pixels};
    expect_ok(rp_resize(&image, 6, 6, small));
    expect_ok(open_data(&data, "{set: images, path: %, size: 6}", NULL, true));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, false, x, NULL, NULL));
    for (uint32_t i = 0; i < 36; i++) {
        expect_close(x[i], (small[3 * i] / 255.0 - 0.485) / 0.229, 1e-5, 1e-6);
        expect_close(x[72 + i], (small[3 * i + 2] / 255.0 - 0.406) / 0.225, 1e-5, 1e-6);
    }
    rp_data_close(&data);
    expect_ok(open_data(&data, "{set: images, path: %, size: 6, grey: true}", NULL, true));
    assert_true(data.channels == 1 && data.sample.dim[0] == 1 && data.sample.dim[2] == 6);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, false, x, NULL, NULL));
    rp_data_close(&data);
    const rp_shape input = rp_shape_3(1, 5, 4); /* of a model with a size of its own */
    expect_ok(open_data(&data, "{set: images, path: %}", &input, true));
    assert_true(rp_shape_equal(&data.sample, &input));
    rp_data_close(&data);
    expect_ok(open_data(&data,
                        "{set: images, path: %/train, size: 6, classes: [dog, cat, cow],"
                        " workers: 3, augment: crop-flip}",
                        NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TEST], 0);
    assert_int_equal(data.classes, 3);
    assert_int_equal(data.workers, 3);
    int32_t label;
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, true, x, &label, NULL));
    assert_int_equal(label, 1); /* cat */
    rp_data_close(&data);
}

static void bad_sets(void **state) {
    (void)state;
    float x[3 * 4];
    rp_data data;
    const uint32_t zero = 0;
    static const char keys[] = "{set: images, path: %, size: 2}";
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("expected one folder for each class, but there are no folders");
    make_set();
    expect_err(open_data(&data, "{set: images, path: %}", NULL, true), RP_ERR_USAGE);
    expect_part("the key 'size' is needed");
    expect_err(open_data(&data, "{set: images, path: %, size: [1, 2, 3]}", NULL, true),
               RP_ERR_USAGE);
    expect_part("expected one side, or [height, width]");
    expect_err(open_data(&data, "{set: images, path: %, size: 2, classes: [cat]}", NULL, true),
               RP_ERR_FORMAT);
    expect_part("train/dog: unknown class 'dog': it is not in data.classes");
    expect_err(open_data(&data, "{set: images, path: /nowhere, size: 2}", NULL, true),
               RP_ERR_USAGE);
    make_folder("test/cow");
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("test/cow: unknown class 'cow': the training part lacks it");
    rmdir(in_folder("test/cow"));
    make_folder("test/cat");
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("test/cat: has 0 .jpg, .jpeg or .png files");
    rmdir(in_folder("test/cat"));
    /* A broken picture is found when it is read. */
    write_file("train/cat/10.png", "\x89PNG\r\n\x1a\n", 8);
    expect_ok(open_data(&data, keys, NULL, true));
    expect_err(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &zero, 1, false, x, NULL, NULL),
               RP_ERR_FORMAT);
    expect_part("train/cat/10.png: the picture is damaged");
    rp_data_close(&data);
}

/* `skip_damaged`: what is damaged is no part of the set, up to so many. */
static void damaged_pictures(void **state) {
    (void)state;
    static float x[3 * H * W];
    static const char keys[] =
        "{set: images, path: %, size: [10, 14], normalise: none, skip_damaged: 2}";
    static const uint32_t index[] = {0, 1};
    rp_data data;
    rp_feeder *feeder = NULL;
    const rp_batch *batch;
    int32_t label;
    make_set();
    write_file("train/cat/10.png", "\x89PNG\r\n\x1a\n", 8);
    expect_ok(open_data(&data, "{set: images, path: %, size: 2, shuffle: false}", NULL, true));
    expect_ok(
        rp_feeder_open(&arena, &data, RP_FEEDER_DIRECT, RP_SPLIT_TRAIN, true, 2, 0, 1, 1, &feeder));
    expect_err(rp_feeder_take(feeder, &batch), RP_ERR_DATA);
    rp_feeder_close(&feeder);
    rp_data_close(&data);
    write_file("test/dog/u.png", "", 0);
    expect_ok(open_data(&data, keys, NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 3);
    assert_int_equal(data.count[RP_SPLIT_TEST], 1);
    assert_non_null(strstr(data.notes.text[1], "2 damaged pictures are skipped"));
    assert_non_null(strstr(data.notes.text[1], "train/cat/10.png and others"));
    /* cat/z.jpeg, dog/a.PNG, dog/b.png */
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &index[1], 1, false, x, &label, NULL));
    expect_close(x[0], 2 / 255.0, 1e-6, 0);
    assert_int_equal(label, 1);
    expect_ok(rp_data_batch(&data, RP_SPLIT_TEST, 0, index, 1, false, x, &label, NULL));
    expect_close(x[0], 6 / 255.0, 1e-6, 0);
    rp_data_close(&data);
    write_file("train/dog/b.png", "x", 1);
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("3 of 6 pictures cannot be read, but data.skip_damaged allows 2");
    put_picture("train/dog/b.png", 1);
    put_picture("test/dog/u.png", 7);
    write_file("train/cat/z.jpeg", "x", 1);
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("train/cat: every picture of this class is damaged");
    put_picture("train/cat/z.jpeg", 3);
    assert_int_equal(unlink(in_folder("train/cat/10.png")), 0);
    make_folder("train/cat/10.png"); /* bad, and no damage */
    expect_err(open_data(&data, keys, NULL, true), RP_ERR_FORMAT);
    expect_part("damaged ones only");
}

/* What lies in the folders and is no sample is counted; names of classes are text. */
static void what_is_passed_over(void **state) {
    (void)state;
    rp_data data;
    make_set();
    write_file("train/cat/b.webp", "x", 1);
    write_file("train/loose.png", "x", 1);
    make_folder("train/dog/more");
    put_picture("train/dog/more/x.png", 8);
    expect_ok(open_data(&data, "{set: images, path: %, size: 8}", NULL, true));
    assert_int_equal(data.notes.count, 1);
    assert_non_null(strstr(data.notes.text[0], "/train: 4 entries are ignored"));
    assert_non_null(strstr(data.notes.text[0], "/train/cat/b.webp, ..."));
    rp_data_close(&data);
    expect_ok(
        open_data(&data, "{set: images, path: %, size: 8, classes: [cat, cow, dog]}", NULL, true));
    assert_non_null(strstr(data.notes.text[1], "1 of 3 classes have no training sample: cow"));
    rp_data_close(&data);
    make_folder("train/k\xe4tzchen");
    put_picture("train/k\xe4tzchen/x.png", 8);
    expect_err(open_data(&data, "{set: images, path: %, size: 8}", NULL, true), RP_ERR_FORMAT);
    expect_part("train/k\\xe4tzchen: expected the name of a class in UTF-8");
}

/* Whatever the number of workers, the batches are the same. */
static void workers(void **state) {
    (void)state;
    enum { STEPS = 12, COUNT = 3 * 8 * 8 };
    static float want[STEPS][3 * COUNT];
    rp_data data;
    make_set();
    for (uint32_t n = 1; n <= 5; n += 2) {
        rp_feeder *feeder = NULL;
        const rp_batch *batch = NULL;
        char keys[128];
        (void)snprintf(keys, sizeof keys,
                       "{set: images, path: %%, size: 8, augment: crop-flip, workers: %u}", n);
        expect_ok(open_data(&data, keys, NULL, true));
        expect_ok(rp_feeder_open(&arena, &data, RP_FEEDER_THREAD, RP_SPLIT_TRAIN, true, 3, 0, STEPS,
                                 4, &feeder));
        for (int step = 0; step < STEPS; step++) {
            rp_err err;
            while ((err = rp_feeder_take(feeder, &batch)) == RP_ERR_AGAIN) {
                usleep(1000);
            }
            expect_ok(err);
            assert_int_equal(batch->step, step);
            if (n == 1) {
                memcpy(want[step], batch->x, batch->count * COUNT * sizeof(float));
            } else {
                assert_memory_equal(want[step], batch->x, batch->count * COUNT * sizeof(float));
            }
            rp_feeder_return(feeder, batch);
        }
        rp_feeder_close(&feeder);
        rp_data_close(&data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_and_colours, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_sets, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_pictures, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_passed_over, setup, teardown),
        cmocka_unit_test_setup_teardown(workers, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
