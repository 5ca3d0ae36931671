/* The transforms against numbers from torch (tests/golden/cases/augment.py), what they draw, and
 * that a sample's picture depends on seed, epoch and index only. */
#include "fixture.h"

#include <math.h>

#include "base/safetensors.h"
#include "data/describe.h"
#include "data/mixup.h"
#include "data/rotate.h"

/* ---- golden ---------------------------------------------------------------------------------- */

typedef struct {
    const char *op;
    uint32_t shape[3];
    float by;
} golden_case;

static void read_case(const rp_st_reader *file, const char *name, golden_case *out) {
    const char *text = rp_st_meta(file, name);
    rp_node *facts;
    expect_ok(rp_config_read_text(&arena, text, strlen(text), name, &facts));
    expect_ok(rp_node_string(facts, "op", &out->op));
    double by = 0;
    expect_ok(rp_node_f64(facts, "by", -360, 360, &by));
    out->by = (float)by;
    for (uint32_t i = 0; i < 3; i++) {
        expect_ok(rp_node_item_u32(rp_node_find(facts, "shape"), i, 1, 64, &out->shape[i]));
    }
}

static const float *golden_tensor(const rp_st_reader *file, const char *name, const char *what,
                                  size_t count) {
    char full[128];
    (void)snprintf(full, sizeof full, "%s/%s", name, what);
    const rp_st_entry *entry = rp_st_find(file, full);
    assert_non_null(entry);
    assert_int_equal(entry->bytes, count * sizeof(float));
    return rp_st_data(file, entry);
}

static void run_case(const golden_case *c, float *x) {
    const size_t plane = (size_t)c->shape[1] * c->shape[2];
    float scratch[256];
    assert_true(plane <= 256);
    if (strcmp(c->op, "rotation") == 0) {
        rp_rotate_image(x, c->shape[0], c->shape[1], c->shape[2], (double)c->by, scratch);
    } else if (strcmp(c->op, "brightness") == 0) {
        rp_colour_brightness(x, c->shape[0], plane, c->by);
    } else if (strcmp(c->op, "contrast") == 0) {
        rp_colour_contrast(x, c->shape[0], plane, c->by);
    } else if (strcmp(c->op, "saturation") == 0) {
        rp_colour_saturation(x, c->shape[0], plane, c->by);
    } else {
        assert_string_equal(c->op, "hue");
        rp_colour_hue(x, c->shape[0], plane, c->by);
    }
}

static void equals_torch(void **state) {
    (void)state;
    const char *root = getenv("RP_SOURCE_DIR");
    rp_st_reader *file;
    char *path;
    char *names;
    char *rest;
    uint32_t count = 0;
    expect_ok(
        rp_arena_printf(&arena, &path, "%s/tests/golden/augment.safetensors", root ? root : "."));
    expect_ok(rp_st_open(&arena, path, &file));
    expect_ok(rp_arena_string(&arena, rp_st_meta(file, "cases"), &names));
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        golden_case c;
        float x[512];
        read_case(file, name, &c);
        const size_t values = (size_t)c.shape[0] * c.shape[1] * c.shape[2];
        assert_true(values <= 512);
        memcpy(x, golden_tensor(file, name, "x", values), values * sizeof *x);
        run_case(&c, x);
        const float *want = golden_tensor(file, name, "y", values);
        for (size_t i = 0; i < values; i++) {
            if (!expect_is_close(x[i], want[i], 0, 3e-6)) {
                fail_msg("%s[%zu]: %.9g is not %.9g", name, i, (double)x[i], (double)want[i]);
            }
        }
        count++;
    }
    assert_int_equal(count, 18 + 32);
    rp_st_close(&file);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* What is left of the farthest distance between the draws and a distribution. */
static double distance_from(double alpha, double (*below)(double x)) {
    enum { DRAWS = 20000, BINS = 100 };
    uint32_t bin[BINS] = {0};
    double farthest = 0;
    double sum = 0;
    rp_rng rng = rp_rng_named(5, "mixup");
    for (int i = 0; i < DRAWS; i++) {
        const double share = rp_mixup_share(&rng, alpha);
        assert_true(share >= 0 && share <= 1);
        bin[share < 1 ? (int)(share * BINS) : BINS - 1]++;
    }
    for (int b = 0; b + 1 < BINS; b++) {
        sum += (double)bin[b] / DRAWS;
        farthest = fmax(farthest, fabs(sum - below((b + 1) / (double)BINS)));
    }
    return farthest;
}

static double below_arcsine(double x) { /* Beta(1/2, 1/2) */
    return 2 / 3.14159265358979323846 * asin(sqrt(x));
}

static double below_uniform(double x) { /* Beta(1, 1) */
    return x;
}

static double below_two(double x) { /* Beta(2, 2) */
    return x * x * (3 - 2 * x);
}

static double below_five(double x) { /* Beta(5, 5): its polynomial */
    double sum = 0;
    static const double choose[] = {1, 9, 36, 84, 126, 126, 84, 36, 9, 1};
    for (int k = 5; k <= 9; k++) {
        sum += choose[k] * pow(x, k) * pow(1 - x, 9 - k);
    }
    return sum;
}

static void shares_are_beta(void **state) {
    (void)state;
    const double bound = 1.63 / sqrt(20000); /* Kolmogorov-Smirnov, 1 % */
    assert_true(distance_from(0.5, below_arcsine) < bound);
    assert_true(distance_from(1, below_uniform) < bound);
    assert_true(distance_from(2, below_two) < bound);
    assert_true(distance_from(5, below_five) < bound);
    assert_true(distance_from(0.5, below_uniform) > bound); /* it can tell */
    static const double alphas[] = {0.2, 1e-3, 700};
    for (size_t a = 0; a < 3; a++) { /* variance 1 / (4 (2 alpha + 1)) */
        double square = 0;
        double mean = 0;
        rp_rng rng = rp_rng_named(a, "mixup");
        for (int i = 0; i < 20000; i++) {
            const double share = rp_mixup_share(&rng, alphas[a]);
            mean += share / 20000;
            square += (share - 0.5) * (share - 0.5) / 20000;
        }
        expect_close(mean, 0.5, 0.02, 0);
        expect_close(square, 1 / (4 * (2 * alphas[a] + 1)), 0.05, 0);
    }
}

static void boxes(void **state) {
    (void)state;
    const rp_erase erase = {.p = 0.25f, .scale = {0.02f, 0.33f}, .ratio = {0.3f, 3.3f}};
    const rp_erase never = {.p = 1, .scale = {1, 1}, .ratio = {1, 1}};
    enum { DRAWS = 4000, SIDE = 32 };
    uint32_t count = 0;
    bool tall = false;
    bool wide = false;
    rp_rng rng = rp_rng_named(1, "erasing");
    for (int i = 0; i < DRAWS; i++) {
        rp_box box;
        if (!rp_erase_draw(&erase, &rng, SIDE, SIDE, &box)) {
            continue;
        }
        count++;
        assert_true(box.height < SIDE && box.width < SIDE);
        assert_true(box.top + box.height <= SIDE && box.left + box.width <= SIDE);
        const double share = (double)(box.height * box.width) / (SIDE * SIDE);
        assert_true(share > 0.01 && share < 0.36); /* whole pixels */
        tall |= box.height > 2 * box.width;
        wide |= box.width > 2 * box.height;
    }
    expect_close((double)count / DRAWS, 0.25, 0.1, 0);
    assert_true(tall && wide);
    assert_false(rp_erase_draw(&never, &rng, SIDE, SIDE, &(rp_box){0})); /* none fits */
    float x[2 * 12];
    for (size_t i = 0; i < 24; i++) {
        x[i] = 1.0f;
    }
    rp_erase_box(&(rp_box){.top = 1, .left = 2, .height = 2, .width = 1}, x, 2, 3, 4);
    for (size_t i = 0; i < 24; i++) {
        expect_close(x[i], i % 12 != 6 && i % 12 != 10, 0, 0);
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

enum { SIDE = 12, PIXELS = SIDE * SIDE, SAMPLES = 20 };
#define SET "set: glyphs, train: 20, test: 4, size: 12, mean: [0], std: [1]"

static float picture[SAMPLES][PIXELS];

static void take(const rp_data *data, uint32_t epoch, uint32_t index, bool training, float *x) {
    expect_ok(rp_data_batch(data, RP_SPLIT_TRAIN, epoch, &index, 1, training, x, NULL, NULL));
}

static void each_is_keyed_by_epoch_and_index(void **state) {
    (void)state;
    static const char *const keys[] = {
        "crop: 2",
        "flip: true",
        "rotation: 30",
        "colour: {brightness: 0.8}",
        "colour: {contrast: 0.8}",
        "erasing: 1",
        "erasing: {p: 1, scale: [0.1, 0.2]}",
        "mixup: 1",
        "crop: 3, flip: true, rotation: 9, colour: {brightness: 0.2}, erasing: 0.5, mixup: 0.4"};
    static const uint32_t many[] = {3, 7, 3, 0};
    float again[4 * PIXELS];
    float one[PIXELS];
    float later[PIXELS];
    rp_data plain;
    expect_ok(open_data(&plain, "{" SET "}", NULL, true));
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        char text[400];
        rp_data data;
        uint32_t changed = 0;
        (void)snprintf(text, sizeof text, "{" SET ", augment: {%s}}", keys[k]);
        expect_ok(open_data(&data, text, NULL, true));
        for (uint32_t i = 0; i < SAMPLES; i++) {
            take(&plain, 0, i, true, picture[i]);
            take(&data, 0, i, true, one);
            changed += memcmp(one, picture[i], sizeof one) != 0;
            take(&data, 0, i, false, one); /* not in evaluation */
            assert_memory_equal(one, picture[i], sizeof one);
        }
        assert_true(changed >= 5);
        take(&data, 2, 3, true, one);
        expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 2, many, 4, true, again, NULL, NULL));
        assert_memory_equal(one, again, sizeof one);
        assert_memory_equal(one, again + 2 * PIXELS, sizeof one);
        uint32_t epochs = 0;
        for (uint32_t epoch = 3; epoch < 9; epoch++) {
            take(&data, epoch, 3, true, later);
            epochs += memcmp(one, later, sizeof one) != 0;
        }
        assert_true(epochs > 0);
        rp_data_close(&data);
    }
    rp_data_close(&plain);
}

/* The words are the map that they stand for. */
static void words_are_maps(void **state) {
    (void)state;
    static const char *const same[][2] = {{"crop", "{crop: 4}"},
                                          {"flip", "{flip: true}"},
                                          {"crop-flip", "{crop: 4, flip: true}"},
                                          {"none", "{crop: 0}"}};
    for (size_t k = 0; k < 4; k++) {
        float x[2][PIXELS];
        for (uint32_t i = 0; i < SAMPLES; i++) {
            for (size_t side = 0; side < 2; side++) {
                char text[200];
                rp_data data;
                (void)snprintf(text, sizeof text, "{" SET ", augment: %s}", same[k][side]);
                expect_ok(open_data(&data, text, NULL, true));
                take(&data, 1, i, true, x[side]);
                rp_data_close(&data);
            }
            assert_memory_equal(x[0], x[1], sizeof x[0]);
        }
    }
}

/* x = share * own + (1 - share) * partner, and the row says the same of the classes. */
static void mixed_samples(void **state) {
    (void)state;
    rp_data plain;
    rp_data data;
    int32_t label[SAMPLES];
    uint32_t index[SAMPLES];
    float rows[SAMPLES][10];
    static float x[SAMPLES][PIXELS];
    uint32_t between = 0;
    expect_ok(open_data(&plain, "{" SET "}", NULL, true));
    expect_ok(open_data(&data, "{" SET ", augment: {mixup: 1}}", NULL, true));
    assert_true(rp_data_has_labels(&plain) && !rp_data_has_labels(&data));
    assert_int_equal(data.classes, 10);
    assert_int_equal(data.target_width, 1);
    assert_int_equal(rp_data_row_width(&data), 10);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        index[i] = i;
    }
    expect_ok(
        rp_data_batch(&plain, RP_SPLIT_TRAIN, 0, index, SAMPLES, true, picture[0], label, NULL));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 4, index, SAMPLES, true, x[0], NULL, rows[0]));
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t partner;
        double share;
        rp_augment_partner(&data.augment, data.seed, 4, i, SAMPLES, &partner, &share);
        between += share > 0.1 && share < 0.9 && partner != i;
        for (size_t p = 0; p < PIXELS; p++) {
            expect_close(x[i][p],
                         share * (double)picture[i][p] + (1 - share) * (double)picture[partner][p],
                         1e-6, 1e-7);
        }
        for (int32_t k = 0; k < 10; k++) {
            expect_close(rows[i][k], (label[i] == k) * share + (label[partner] == k) * (1 - share),
                         1e-6, 1e-7);
        }
    }
    assert_true(between > SAMPLES / 2);
    /* evaluation: all in one place; labels for who asks */
    int32_t own[SAMPLES];
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 4, index, SAMPLES, false, x[0], own, rows[0]));
    assert_memory_equal(own, label, sizeof own);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        for (int32_t k = 0; k < 10; k++) {
            expect_close(rows[i][k], label[i] == k, 0, 0);
        }
    }
    rp_data_close(&plain);
    rp_data_close(&data);
}

/* Partners come from what is trained on, not from what is held out. */
static void partners_are_trained_on(void **state) {
    (void)state;
    rp_data data;
    float x[PIXELS];
    expect_ok(open_data(&data, "{" SET ", validation: 10, augment: {mixup: 1}}", NULL, true));
    assert_int_equal(data.count[RP_SPLIT_TRAIN], 10);
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t partner;
        double share;
        rp_augment_partner(&data.augment, data.seed, 0, data.part[RP_SPLIT_TRAIN][i], 10, &partner,
                           &share);
        assert_true(partner < 10);
        take(&data, 0, i, true, x);
        float own[PIXELS];
        float other[PIXELS];
        take(&data, 0, i, false, own);
        take(&data, 0, partner, false, other);
        for (size_t p = 0; p < PIXELS; p++) {
            expect_close(x[p], share * (double)own[p] + (1 - share) * (double)other[p], 1e-6, 1e-7);
        }
    }
    rp_data_close(&data);
}

static void rows_of_tables_are_mixed(void **state) {
    (void)state;
    const rp_shape input = rp_shape_1(2);
    rp_data data;
    const uint32_t index = 1;
    float x[2];
    float row[1];
    uint32_t partner;
    double share;
    write_file("train.csv", "1,2,3\n10,20,30\n", 15);
    write_file("test.csv", "1,2,3\n", 6);
    expect_ok(open_data(&data, "{set: table, path: %, augment: {mixup: 2}}", &input, false));
    expect_ok(rp_data_batch(&data, RP_SPLIT_TRAIN, 0, &index, 1, true, x, NULL, row));
    rp_augment_partner(&data.augment, data.seed, 0, 1, 2, &partner, &share);
    const double by = partner == 1 ? 10 : 10 * share + (1 - share);
    expect_close(x[0], by, 1e-6, 0);
    expect_close(x[1], 2 * by, 1e-6, 0);
    expect_close(row[0], 3 * by, 1e-6, 0);
    rp_data_close(&data);
}

/* Classes of a table with names: mixup makes rows of them, the set stays what it is. */
static void a_set_is_described_as_it_is(void **state) {
    (void)state;
    static const char csv[] = "a,b,kind\n1,2,cat\n3,5,dog\n4,4,cow\n";
    static char text[2][4096];
    for (size_t mixed = 0; mixed < 2; mixed++) {
        rp_data data;
        write_file("train.csv", csv, sizeof csv - 1);
        expect_ok(open_data(
            &data, mixed ? "{set: table, path: %, augment: {mixup: 1}}" : "{set: table, path: %}",
            NULL, true));
        assert_int_equal(rp_data_row_width(&data), mixed ? 3 : 1);
        expect_ok(rp_data_describe(&data, in_folder("data.json")));
        FILE *file = fopen(in_folder("data.json"), "r");
        assert_non_null(file);
        text[mixed][fread(text[mixed], 1, sizeof text[mixed] - 1, file)] = '\0';
        (void)fclose(file);
        rp_data_close(&data);
    }
    assert_non_null(strstr(text[0], "kind"));
    assert_string_equal(text[0], text[1]);
}

static void feeders_give_rows(void **state) {
    (void)state;
    rp_data data;
    rp_feeder *feeder;
    const rp_batch *batch;
    expect_ok(open_data(&data, "{" SET ", augment: {mixup: 0.2}}", NULL, true));
    expect_ok(
        rp_feeder_open(&arena, &data, RP_FEEDER_DIRECT, RP_SPLIT_TRAIN, true, 8, 0, 3, 1, &feeder));
    expect_ok(rp_feeder_take(feeder, &batch));
    assert_null(batch->labels);
    assert_non_null(batch->rows);
    for (uint32_t i = 0; i < batch->count; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < 10; k++) {
            sum += (double)batch->rows[i * 10 + k];
        }
        expect_close(sum, 1, 1e-6, 0);
    }
    rp_feeder_return(feeder, batch);
    rp_feeder_close(&feeder);
    rp_data_close(&data);
}

static void mistakes(void **state) {
    (void)state;
    static const struct {
        const char *augment, *part;
    } bad[] = {
        {"{rotations: 5}", "rotations: unknown key; did you mean 'rotation'?"},
        {"{rotation: 181}", "augment.rotation: expected a number from 0 to 180"},
        {"{crop: -1}", "augment.crop"},
        {"{flip: 1}", "augment.flip: expected true or false"},
        {"{colour: 0.4}", "augment.colour: expected a map"},
        {"{colour: {hue: 0.6}}", "augment.colour.hue"},
        {"{erasing: 1.5}", "augment.erasing"},
        {"{erasing: {scale: 0.5}}", "augment.erasing.scale: expected two numbers"},
        {"{erasing: {scale: [0.5, 0.1]}}", "augment.erasing.scale: expected two numbers"},
        {"{erasing: {ratio: [0, 1]}}", "augment.erasing.ratio[0]"},
        {"{mixup: -1}", "augment.mixup"},
        {"{mixup: .nan}", "augment.mixup"},
        {"[crop]", "augment"},
    };
    rp_data data;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "{" SET ", augment: %s}", bad[i].augment);
        expect_err(open_data(&data, text, NULL, true), RP_ERR_USAGE);
        expect_part(bad[i].part);
    }
    const rp_shape input = rp_shape_1(2);
    write_file("train.csv", "1,2,3\n", 6);
    write_file("test.csv", "1,2,3\n", 6);
    expect_err(open_data(&data, "{set: table, path: %, augment: {rotation: 5}}", &input, false),
               RP_ERR_USAGE);
    expect_part("augment: needs images, but samples of data set 'table' are not images");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equals_torch, setup, teardown),
        cmocka_unit_test(shares_are_beta),
        cmocka_unit_test(boxes),
        cmocka_unit_test_setup_teardown(each_is_keyed_by_epoch_and_index, setup, teardown),
        cmocka_unit_test_setup_teardown(words_are_maps, setup, teardown),
        cmocka_unit_test_setup_teardown(mixed_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(partners_are_trained_on, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_of_tables_are_mixed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_set_is_described_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(feeders_give_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(mistakes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
