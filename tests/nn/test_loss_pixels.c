/* Cross-entropy of images [classes, height, width] with a target for each pixel. */
#include "loss_case.h"

#include <math.h>

enum { TARGETS_MAX = 1024 };

static void take_overlap(loss_case *c) {
    const size_t bytes = 2 * (size_t)c->n * (c->outputs / c->rows) * sizeof(uint32_t);
    expect_ok(rp_darena_take(c->memory, bytes, &c->overlap));
}

/* Opens a golden case, with its targets and the number of them that count. */
static void open_case(loss_case *c, const rp_st_reader *reader, rp_node *facts, const char *name) {
    rp_loss_options options = {.classes_first = true};
    uint32_t n = 0;
    uint32_t outputs = 0;
    uint32_t rows = 0;
    int32_t sent[TARGETS_MAX];
    int32_t counted = 0;
    expect_ok(rp_node_u32(facts, "n", 1, 4096, &n));
    expect_ok(rp_node_u32(facts, "outputs", 1, 4096, &outputs));
    expect_ok(rp_node_u32(facts, "rows", 1, 4096, &rows));
    expect_ok(rp_node_f32(facts, "label_smoothing", 0, 1, &options.label_smoothing));
    options.ignores = rp_node_find(facts, "ignore") != NULL;
    expect_ok(rp_node_i32(facts, "ignore", &options.ignore));
    loss_case_open_rows(c, "cross-entropy", n, rows, outputs, &options);
    const uint32_t width = rows + options.ignores;
    const float *target = loss_case_golden(reader, name, "target");
    assert_true(n * width <= TARGETS_MAX);
    for (uint32_t i = 0; i < n * rows; i++) {
        sent[i / rows * width + i % rows] = (int32_t)target[i];
        counted += (int32_t)target[i] != options.ignore;
    }
    for (uint32_t i = 0; options.ignores && i < n; i++) {
        sent[i * width + rows] = counted;
    }
    loss_case_fill(c, loss_case_golden(reader, name, "y"), sent);
    take_overlap(c);
}

/* The number of pixels of a sample that are right, or that count. */
static double count_pixels(const loss_case *c, const float *y, const float *target, bool right) {
    const uint32_t outputs = c->outputs / c->rows;
    double count = 0;
    for (uint32_t p = 0; p < c->rows; p++) {
        uint32_t best = 0;
        for (uint32_t k = 1; k < outputs; k++) {
            best = y[k * c->rows + p] > y[best * c->rows + p] ? k : best;
        }
        const bool counts = !c->options.ignores || (int32_t)target[p] != c->options.ignore;
        count += counts && (!right || (float)best == target[p]);
    }
    return count;
}

/* Counts the pixels of sample `s` that have class `k` as target and as answer, or as one of the
 * two. */
static uint32_t count_class(const loss_case *c, const float *y, const float *target, uint32_t k,
                            bool both) {
    const uint32_t outputs = c->outputs / c->rows;
    uint32_t count = 0;
    for (uint32_t p = 0; p < c->rows; p++) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < outputs; i++) {
            best = y[i * c->rows + p] > y[best * c->rows + p] ? i : best;
        }
        const bool counts = !c->options.ignores || (int32_t)target[p] != c->options.ignore;
        const bool wanted = (uint32_t)target[p] == k;
        count += counts && (both ? wanted && best == k : wanted || best == k);
    }
    return count;
}

static void compare_overlap(const loss_case *c, const float *y, const float *target) {
    const uint32_t outputs = c->outputs / c->rows;
    const size_t count = 2 * (size_t)c->n * outputs;
    uint32_t got[TARGETS_MAX];
    assert_true(count <= TARGETS_MAX);
    expect_ok(rp_buffer_read_now(golden_device(), got, c->overlap, 0, count * sizeof *got));
    for (uint32_t s = 0; s < c->n; s++, y += c->outputs, target += c->rows) {
        for (uint32_t k = 0; k < outputs; k++) {
            const uint32_t *of = &got[2 * (size_t)outputs * s + k];
            assert_int_equal(of[0], count_class(c, y, target, k, true));
            assert_int_equal(of[outputs], count_class(c, y, target, k, false));
        }
    }
}

static void compare_case(loss_case *c, const rp_st_reader *reader, const char *name) {
    const float *y = loss_case_golden(reader, name, "y");
    const float *target = loss_case_golden(reader, name, "target");
    const float *loss = loss_case_golden(reader, name, "loss");
    const float *dy = loss_case_golden(reader, name, "dy");
    loss_case_run(c, c->n, false);
    compare_overlap(c, y, target);
    for (size_t i = 0; i < (size_t)c->n * c->outputs; i++) {
        expect_close(c->gradient[i], 0, 0, 0);
    }
    loss_case_run(c, c->n, true);
    expect_close_all(c->gradient, dy, (size_t)c->n * c->outputs, 1e-5, 1e-7);
    for (uint32_t i = 0; i < c->n; i++, y += c->outputs, target += c->rows) {
        expect_close(c->loss[RP_LOSS_RESULT * i], loss[i], 1e-5, 1e-5);
        expect_close(c->loss[RP_LOSS_RESULT * i + 1], count_pixels(c, y, target, true), 0, 0);
        expect_close(c->loss[RP_LOSS_RESULT * i + 2], count_pixels(c, y, target, false), 0, 0);
    }
}

static void equals_pytorch(void **state) {
    (void)state;
    rp_arena arena;
    rp_arena_init(&arena, "golden", 0);
    rp_st_reader *reader = golden_file(&arena, "pixels");
    char *names;
    char *rest;
    uint32_t count = 0;
    expect_ok(rp_arena_string(&arena, rp_st_meta(reader, "cases"), &names));
    for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        const char *text = rp_st_meta(reader, name);
        rp_node *facts;
        loss_case c;
        expect_ok(rp_config_read_text(&arena, text, strlen(text), name, &facts));
        open_case(&c, reader, facts, name);
        compare_case(&c, reader, name);
        loss_case_close(&c);
        count++;
    }
    assert_int_equal(count, 12);
    rp_st_close(&reader);
    rp_arena_finish(&arena);
}

/* A class that is not an output makes its own pixel NaN, and no other. */
static void class_outside(void **state) {
    (void)state;
    enum { ROWS = 20, OUTPUTS = 3 };
    const rp_loss_options options = {.classes_first = true};
    int32_t target[ROWS] = {0};
    float y[ROWS * OUTPUTS];
    loss_case c;
    target[4] = OUTPUTS;
    target[17] = -1;
    golden_values("y", ROWS * OUTPUTS, y);
    loss_case_open_rows(&c, "cross-entropy", 1, ROWS, OUTPUTS, &options);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, 1, true);
    assert_true(isnan(c.loss[0]));
    for (size_t i = 0; i < ROWS * OUTPUTS; i++) {
        assert_int_equal(isnan(c.gradient[i]) != 0, i % ROWS == 4 || i % ROWS == 17);
    }
    loss_case_close(&c);
}

/* A step without a pixel that counts: 0, not NaN. */
static void nothing_counts(void **state) {
    (void)state;
    enum { ROWS = 18, OUTPUTS = 2 };
    const rp_loss_options options = {.classes_first = true, .ignores = true};
    const int32_t target[ROWS + 1] = {0};
    float y[ROWS * OUTPUTS];
    loss_case c;
    golden_values("y", ROWS * OUTPUTS, y);
    loss_case_open_rows(&c, "cross-entropy", 1, ROWS, OUTPUTS, &options);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, 1, true);
    for (size_t i = 0; i < ROWS * OUTPUTS; i++) {
        expect_close(c.gradient[i], 0, 0, 0);
    }
    for (size_t i = 0; i < RP_LOSS_RESULT; i++) {
        expect_close(c.loss[i], 0, 0, 0);
    }
    loss_case_close(&c);
}

/* A pixel with a NaN has a target and no answer; one whose target is no class is left out. */
static void overlap_of_broken_pixels(void **state) {
    (void)state;
    enum { ROWS = 4, OUTPUTS = 2 };
    const rp_loss_options options = {.classes_first = true};
    const int32_t target[ROWS] = {0, 1, OUTPUTS, 1};
    const float y[OUTPUTS * ROWS] = {NAN, 0, 1, 1, 1, 2, 0, 0};
    const uint32_t want[2 * OUTPUTS] = {0, 1, 2, 2};
    uint32_t got[2 * OUTPUTS];
    loss_case c;
    loss_case_open_rows(&c, "cross-entropy", 1, ROWS, OUTPUTS, &options);
    take_overlap(&c);
    loss_case_fill(&c, y, target);
    loss_case_run(&c, 1, false);
    expect_ok(rp_buffer_read_now(golden_device(), got, c.overlap, 0, sizeof got));
    assert_memory_equal(got, want, sizeof got);
    loss_case_close(&c);
}

static void mean_of_the_classes(void **state) {
    (void)state;
    const double both[] = {1, 0, 0, 3};
    const double either[] = {4, 2, 0, 4};
    expect_close(rp_loss_mean_iou(both, either, 4), (0.25 + 0 + 0.75) / 3, 0, 1e-15);
    assert_true(isnan(rp_loss_mean_iou(both + 2, either + 2, 1)));
}

static void layouts_are_checked(void **state) {
    (void)state;
    const rp_shape image = rp_shape_3(5, 4, 6);
    const rp_shape row = rp_shape_1(5);
    const rp_shape most = rp_shape_3(RP_LOSS_PIXEL_CLASSES_MAX, 4, 6);
    const rp_shape more = rp_shape_3(RP_LOSS_PIXEL_CLASSES_MAX + 1, 4, 6);
    const rp_loss_options first = {.classes_first = true};
    const rp_loss_options last = {0};
    expect_ok(rp_loss_check_layout(&image, 24, &first));
    expect_ok(rp_loss_check_layout(&image, 20, &last));
    expect_err(rp_loss_check_layout(&image, 20, &first), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "[classes, height, width]"));
    expect_ok(rp_loss_check_layout(&most, 24, &first));
    expect_err(rp_loss_check_layout(&more, 24, &first), RP_ERR_LIMIT);
    assert_non_null(strstr(rp_err_message(), "is [4097, 4, 6]: expected at most 4096 classes of "
                                             "pixels (loss.classes_at: first)"));
    expect_ok(rp_loss_check_layout(&more, 4097 * 4, &last));
    expect_err(rp_loss_check_layout(&row, 1, &first), RP_ERR_SHAPE);
    assert_non_null(strstr(rp_err_message(), "a sample has 1 target:"));
    expect_err(rp_loss_check_layout(&image, 24, &last), RP_ERR_SHAPE);
    expect_err(rp_loss_check_layout(&image, 6, &last), RP_ERR_SHAPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_pytorch),      cmocka_unit_test(class_outside),
        cmocka_unit_test(nothing_counts),      cmocka_unit_test(overlap_of_broken_pixels),
        cmocka_unit_test(mean_of_the_classes), cmocka_unit_test(layouts_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
