#include "open.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "device/gemm.h"

/* Everything is checked against sums in double over elements found by the definition in gemm.h. */
static double element(const rp_mat *mat, const float *data, uint32_t i, uint32_t j) {
    const uint32_t row = mat->transposed ? j : i;
    const uint32_t col = mat->transposed ? i : j;
    if (mat->kind == RP_MAT_STRIDED) {
        return (
            double)data[mat->offset + row * mat->row_stride + col / mat->inner * mat->outer_stride +
                        col % mat->inner * mat->inner_stride];
    }
    const rp_patches *x = &mat->patches;
    const uint32_t s = row % x->s;
    const uint32_t r = row / x->s % x->r;
    const uint32_t c = row / x->s / x->r;
    const uint32_t q = col % x->q;
    const uint32_t p = col / x->q % x->p;
    const uint32_t image = col / x->q / x->p;
    const int32_t y = (int32_t)p * x->y.mul + (int32_t)r * x->y.step + x->y.off;
    const int32_t z = (int32_t)q * x->x.mul + (int32_t)s * x->x.step + x->x.off;
    if (y % x->div != 0 || z % x->div != 0 || y < 0 || z < 0 || y / x->div >= (int32_t)x->h ||
        z / x->div >= (int32_t)x->w) {
        return 0;
    }
    const uint64_t plane = (uint64_t)image * x->channels_total + x->channel_first + c;
    return (double)
        data[mat->offset + (plane * x->h + (uint32_t)(y / x->div)) * x->w + (uint32_t)(z / x->div)];
}

static rp_arena host;
static rp_darena *memory;
static rp_rng rng;
static uint64_t sum; /* over all results, bit by bit */

static void begin_case(void) {
    rp_arena_init(&host, "host", 0);
    expect_ok(rp_darena_open(&host, device, "test", 0, 0, &memory));
}

static void end_case(void) {
    rp_darena_close(&memory);
    rp_arena_finish(&host);
}

typedef struct {
    float *host;
    rp_buffer *buffer;
    size_t count;
} data;

static data make_data(size_t count) {
    data made = {.count = count};
    expect_ok(RP_ARENA_NEW(&host, count, &made.host));
    for (size_t i = 0; i < count; i++) {
        made.host[i] = 2 * rp_rng_uniform(&rng) - 1;
    }
    expect_ok(rp_darena_take(memory, count * sizeof(float), &made.buffer));
    expect_ok(rp_buffer_write_now(device, made.buffer, 0, made.host, count * sizeof(float)));
    return made;
}

static uint32_t rows_of(const rp_mat *mat) {
    return mat->transposed ? mat->cols : mat->rows;
}

static uint32_t cols_of(const rp_mat *mat) {
    return mat->transposed ? mat->rows : mat->cols;
}

static size_t element_index(const rp_mat *c, uint32_t i, uint32_t j) {
    return c->offset + i * c->row_stride + j / c->inner * c->outer_stride +
           j % c->inner * c->inner_stride;
}

/* Runs the product and checks every element of the buffer of C, also those outside of C. */
static void check_product(const rp_mat *c, data cd, const rp_mat *a, data ad, const rp_mat *b,
                          data bd, const rp_epilogue *end_with, data bias) {
    rp_buffer *workspace = NULL; /* as in a stage whose products need none */
    float *got;
    char *inside;
    const uint32_t m = rows_of(c);
    const uint32_t n = cols_of(c);
    const uint32_t k = cols_of(a);
    size_t bytes = rp_gemm_workspace_bytes(rp_device_gemm(device), c, a, b);
    expect_ok(bytes > 0 ? rp_darena_take(memory, bytes, &workspace) : RP_OK);
    expect_ok(rp_gemm_run(device, c, a, b, end_with, workspace));
    expect_ok(RP_ARENA_NEW(&host, cd.count, &got));
    expect_ok(RP_ARENA_NEW(&host, cd.count, &inside));
    expect_ok(rp_buffer_read_now(device, got, cd.buffer, 0, cd.count * sizeof(float)));
    const double tolerance = 1e-6 * (2 + (double)k / 16);
    for (uint32_t i = 0; i < m; i++) {
        for (uint32_t j = 0; j < n; j++) {
            const size_t at = element_index(c, i, j);
            double want = end_with && end_with->accumulate ? (double)cd.host[at] : 0;
            for (uint32_t l = 0; l < k; l++) {
                want += element(a, ad.host, i, l) * element(b, bd.host, l, j);
            }
            if (end_with && end_with->bias_axis != RP_BIAS_NONE) {
                uint32_t which = end_with->bias_axis == RP_BIAS_ROW ? i : j;
                want += (double)bias.host[end_with->bias_offset + which];
            }
            if (end_with && end_with->relu && want < 0) {
                want = 0;
            }
            expect_close_at((double)got[at], want, 1e-5, tolerance, "C", at, __FILE__, __LINE__);
            inside[at] = 1;
        }
    }
    for (size_t i = 0; i < cd.count; i++) {
        uint32_t bits;
        memcpy(&bits, &got[i], sizeof bits);
        sum = (sum ^ bits) * UINT64_C(1099511628211);
        if (!inside[i]) {
            expect_close(got[i], cd.host[i], 0, 0);
        }
    }
}

static void check_plain(uint32_t m, uint32_t n, uint32_t k, int flags) {
    begin_case();
    data a = make_data((size_t)m * k);
    data b = make_data((size_t)k * n);
    data c = make_data((size_t)m * n + 5);
    rp_mat am = flags & 1 ? rp_mat_transposed(rp_mat_plain(a.buffer, 0, k, m))
                          : rp_mat_plain(a.buffer, 0, m, k);
    rp_mat bm = flags & 2 ? rp_mat_transposed(rp_mat_plain(b.buffer, 0, n, k))
                          : rp_mat_plain(b.buffer, 0, k, n);
    rp_mat cm = rp_mat_plain(c.buffer, 3, m, n);
    check_product(&cm, c, &am, a, &bm, b, &(rp_epilogue){.accumulate = (flags & 4) != 0},
                  (data){0});
    end_case();
}

static void sizes_and_transposes(void **state) {
    (void)state;
    static const uint32_t sizes[] = {1, 31, 32, 33, 65};
    for (int i = 0; i < 125; i++) {
        check_plain(sizes[i % 5], sizes[i / 5 % 5], sizes[i / 25], i % 8);
    }
    check_plain(200, 300, 150, 0);
    check_plain(129, 513, 80, 7);
}

static void long_sums(void **state) {
    (void)state;
    check_plain(1, 1, 20000, 0);
    check_plain(7, 13, 5001, 1);
    check_plain(33, 40, 4096, 6);
    check_plain(64, 27, 9000, 2);
}

static void epilogues(void **state) {
    (void)state;
    for (int i = 0; i < 16; i++) {
        const uint32_t m = i % 2 ? 37 : 70; /* 70: the long sums are done the other way round */
        const uint32_t n = i % 2 ? 64 : 45;
        const uint32_t k = i < 8 ? 50 : 2500; /* the long sum is cut into parts */
        begin_case();
        data a = make_data((size_t)m * k);
        data b = make_data((size_t)k * n);
        data c = make_data((size_t)m * n);
        data bias = make_data(100);
        rp_mat am = rp_mat_plain(a.buffer, 0, m, k);
        rp_mat bm = rp_mat_plain(b.buffer, 0, k, n);
        rp_mat cm = rp_mat_plain(c.buffer, 0, m, n);
        rp_epilogue how = {.bias_axis = i & 2 ? RP_BIAS_ROW : RP_BIAS_COL,
                           .bias = bias.buffer,
                           .bias_offset = 9,
                           .relu = (i & 4) != 0,
                           .accumulate = (i & 4) == 0};
        check_product(&cm, c, &am, a, &bm, b, &how, bias);
        end_case();
    }
}

/* Rows and columns with gaps: the parts of one head, say, of a [tokens, heads, width] tensor. */
static void strides(void **state) {
    (void)state;
    begin_case();
    data a = make_data(4000);
    data b = make_data(4000);
    data c = make_data(4000);
    rp_mat am = {.buffer = a.buffer,
                 .rows = 20,
                 .cols = 24,
                 .offset = 7,
                 .row_stride = 100,
                 .inner = 8,
                 .inner_stride = 1,
                 .outer_stride = 30};
    rp_mat bm = {.buffer = b.buffer,
                 .rows = 24,
                 .cols = 33,
                 .offset = 1,
                 .row_stride = 3,
                 .inner = 33,
                 .inner_stride = 90};
    rp_mat cm = {.buffer = c.buffer,
                 .rows = 20,
                 .cols = 33,
                 .offset = 2,
                 .row_stride = 150,
                 .inner = 11,
                 .inner_stride = 2,
                 .outer_stride = 40};
    check_product(&cm, c, &am, a, &bm, b, &(rp_epilogue){.relu = true}, (data){0});
    check_product(&cm, c, &am, a, &bm, b, NULL, (data){0});
    end_case();
}

typedef struct {
    uint32_t n, channels, groups, out, size, kernel, stride, pad, dilation;
} conv;

/* Forward, gradient of the input and of the weights of group g, as a convolution layer asks for. */
static void check_conv(const conv *v, uint32_t g) {
    const uint32_t p = (v->size + 2 * v->pad - v->dilation * (v->kernel - 1) - 1) / v->stride + 1;
    const uint32_t rs = v->kernel * v->kernel;
    const uint32_t cg = v->channels / v->groups;
    const uint32_t kg = v->out / v->groups;
    begin_case();
    data x = make_data((size_t)v->n * v->channels * v->size * v->size);
    data y = make_data((size_t)v->n * v->out * p * p);
    data w = make_data((size_t)v->out * cg * rs);
    data bias = make_data(v->out);
    rp_mat patches = {
        .kind = RP_MAT_PATCHES, .buffer = x.buffer, .rows = cg * rs, .cols = v->n * p * p};
    patches.patches =
        (rp_patches){.channels_total = v->channels,
                     .channel_first = g * cg,
                     .channels = cg,
                     .h = v->size,
                     .w = v->size,
                     .r = v->kernel,
                     .s = v->kernel,
                     .p = p,
                     .q = p,
                     .y = {(int32_t)v->stride, (int32_t)v->dilation, -(int32_t)v->pad},
                     .x = {(int32_t)v->stride, (int32_t)v->dilation, -(int32_t)v->pad},
                     .div = 1};
    rp_mat weights = rp_mat_plain(w.buffer, (uint64_t)g * kg * cg * rs, kg, cg * rs);
    rp_mat output = rp_mat_channels(y.buffer, v->n, v->out, g * kg, kg, p * p);
    rp_mat turned = rp_mat_transposed(patches);
    rp_epilogue with_bias = {
        .bias_axis = RP_BIAS_ROW, .bias = bias.buffer, .bias_offset = g * kg, .relu = true};
    data before = y;
    check_product(&output, y, &weights, w, &patches, x, &with_bias, bias);
    expect_ok(rp_buffer_write_now(device, y.buffer, 0, before.host, y.count * sizeof(float)));
    rp_mat dw = weights;
    check_product(&dw, w, &output, y, &turned, x, &(rp_epilogue){.accumulate = true}, (data){0});
    expect_ok(rp_buffer_write_now(device, w.buffer, 0, w.host, w.count * sizeof(float)));
    rp_mat wide = {.buffer = w.buffer,
                   .rows = cg,
                   .cols = kg * rs,
                   .offset = weights.offset,
                   .row_stride = rs,
                   .inner = rs,
                   .inner_stride = 1,
                   .outer_stride = cg * rs};
    rp_mat back = {.kind = RP_MAT_PATCHES,
                   .buffer = y.buffer,
                   .rows = kg * rs,
                   .cols = v->n * v->size * v->size};
    back.patches = (rp_patches){.channels_total = v->out,
                                .channel_first = g * kg,
                                .channels = kg,
                                .h = p,
                                .w = p,
                                .r = v->kernel,
                                .s = v->kernel,
                                .p = v->size,
                                .q = v->size,
                                .y = {1, -(int32_t)v->dilation, (int32_t)v->pad},
                                .x = {1, -(int32_t)v->dilation, (int32_t)v->pad},
                                .div = (int32_t)v->stride};
    rp_mat dx = rp_mat_channels(x.buffer, v->n, v->channels, g * cg, cg, v->size * v->size);
    check_product(&dx, x, &wide, w, &back, y, NULL, (data){0});
    end_case();
}

static void convolutions(void **state) {
    (void)state;
    static const conv cases[] = {
        {2, 3, 1, 8, 32, 3, 1, 1, 1}, {3, 4, 1, 6, 16, 3, 1, 1, 1}, {3, 5, 1, 9, 8, 3, 1, 1, 1},
        {9, 6, 1, 5, 4, 3, 1, 1, 1},  {17, 6, 1, 9, 2, 3, 1, 1, 1}, {5, 3, 1, 4, 7, 3, 2, 1, 1},
        {2, 4, 1, 5, 16, 3, 2, 1, 1}, {2, 4, 1, 5, 16, 1, 2, 0, 1}, {2, 4, 1, 8, 9, 1, 1, 0, 1},
        {2, 4, 2, 6, 10, 3, 1, 1, 1}, {2, 3, 3, 6, 12, 5, 3, 2, 1}, {2, 3, 1, 4, 12, 3, 1, 2, 2},
        {4, 2, 1, 3, 5, 5, 1, 0, 1},  {1, 2, 1, 3, 32, 3, 2, 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t g = 0; g < cases[i].groups; g++) {
            check_conv(&cases[i], g);
        }
    }
}

/* Height and width differ in kernel, stride, dilation and pad. */
static const rp_patches rectangle_cases[] = {
    {.channels_total = 5,
     .channel_first = 1,
     .channels = 3,
     .h = 9,
     .w = 11,
     .r = 1,
     .s = 7,
     .p = 9,
     .q = 11,
     .y = {1, 1, 0},
     .x = {1, 1, -3},
     .div = 1},
    {.channels_total = 2,
     .channels = 2,
     .h = 11,
     .w = 6,
     .r = 3,
     .s = 2,
     .p = 5,
     .q = 3,
     .y = {2, 2, -1},
     .x = {3, 1, -1},
     .div = 1},
    {.channels_total = 3,
     .channels = 3,
     .h = 9,
     .w = 7,
     .r = 4,
     .s = 1,
     .p = 9,
     .q = 7,
     .y = {1, -1, 2},
     .x = {1, -3, 0},
     .div = 1},
    {.channels_total = 4,
     .channels = 4,
     .h = 5,
     .w = 4,
     .r = 2,
     .s = 3,
     .p = 9,
     .q = 8,
     .y = {1, -1, 1},
     .x = {1, -2, 2},
     .div = 2},
};

static void rectangles(void **state) {
    (void)state;
    enum { IMAGES = 3, OUTS = 9 };
    for (size_t i = 0; i < sizeof rectangle_cases / sizeof *rectangle_cases; i++) {
        const rp_patches *x = &rectangle_cases[i];
        const uint32_t rows = x->channels * x->r * x->s;
        const uint32_t cols = IMAGES * x->p * x->q;
        begin_case();
        data images = make_data((size_t)IMAGES * x->channels_total * x->h * x->w);
        data a = make_data((size_t)OUTS * rows);
        data c = make_data((size_t)OUTS * cols);
        rp_mat patches = {.kind = RP_MAT_PATCHES,
                          .buffer = images.buffer,
                          .rows = rows,
                          .cols = cols,
                          .patches = *x};
        rp_mat am = rp_mat_plain(a.buffer, 0, OUTS, rows);
        rp_mat cm = rp_mat_plain(c.buffer, 0, OUTS, cols);
        check_product(&cm, c, &am, a, &patches, images, NULL, (data){0});
        rp_mat turned = rp_mat_transposed(patches);
        expect_ok(rp_buffer_write_now(device, c.buffer, 0, c.host, c.count * sizeof(float)));
        check_product(&am, a, &cm, c, &turned, images, NULL, (data){0});
        end_case();
    }
}

/* The panels' other height, and blocks of another depth than the default. */
static void tiles_of_twelve_rows(void **state) {
    (void)state;
    char path[] = "/tmp/rp-test-gemm-XXXXXX";
    const char text[] = "{\"panel\": {\"rows\": 12, \"depth\": 64, \"columns\": 96}}";
    rp_arena arena;
    rp_device *const before = device;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(close(fd), 0);
    rp_arena_init(&arena, "twelve", 0);
    expect_ok(rp_device_open(&arena, &(rp_device_options){.tuning_path = path}, &device));
    assert_int_equal(unlink(path), 0);
    rp_device_choose_gemm(device, RP_GEMM_PANEL);
    for (int i = 0; i < 8; i++) {
        check_plain(13 + 4 * (uint32_t)i, 33, 65, i); /* 13 .. 41: every remainder of 12 by fours */
    }
    check_plain(12, 40, 3000, 0);
    check_conv(&(conv){2, 3, 1, 8, 13, 3, 1, 1, 1}, 0);
    check_conv(&(conv){3, 4, 2, 6, 10, 3, 2, 1, 1}, 1);
    rp_device_close(&device);
    rp_arena_finish(&arena);
    device = before;
}

static void a_broken_product_rings(void **state) {
    (void)state;
    rp_arena arena;
    rp_device *broken;
    expect_ok(rp_device_selftest(device));
    rp_arena_init(&arena, "broken", 0);
    assert_int_equal(setenv("RP_TEST_BREAK_GEMM", "1", 1), 0);
    expect_ok(rp_device_open(&arena, &(rp_device_options){0}, &broken));
    assert_int_equal(unsetenv("RP_TEST_BREAK_GEMM"), 0);
    rp_device_choose_gemm(broken, rp_device_gemm(device));
    expect_err(rp_device_selftest(broken), RP_ERR_NUMERIC);
    assert_non_null(strstr(rp_err_message(), "1 x 1 x 1"));
    rp_device_close(&broken);
    rp_arena_finish(&arena);
}

static void bad_calls_are_refused(void **state) {
    (void)state;
    begin_case();
    data x = make_data(100);
    rp_mat a = rp_mat_plain(x.buffer, 0, 5, 6);
    rp_mat b = rp_mat_plain(x.buffer, 0, 7, 5);
    rp_mat c = rp_mat_plain(x.buffer, 0, 5, 5);
    expect_err(rp_gemm_run(device, &c, &a, &b, NULL, x.buffer), RP_ERR_SHAPE);
    b.rows = 6;
    rp_mat apart = rp_mat_plain(x.buffer, 0, 5, 6); /* is packed */
    apart.row_stride = 12;
    apart.inner_stride = 2;
    expect_err(rp_gemm_run(device, &c, &apart, &b, NULL, x.buffer), RP_ERR_MEMORY);
    expect_err(rp_gemm_run(device, &c, &apart, &b, NULL, NULL), RP_ERR_MEMORY);
    rp_mat turned = rp_mat_transposed(c);
    expect_err(rp_gemm_run(device, &turned, &a, &b, NULL, x.buffer), RP_ERR_SHAPE);
    a.offset = 71;
    expect_err(rp_gemm_run(device, &c, &a, &b, NULL, x.buffer), RP_ERR_SHAPE);
    end_case();
}

/* "bits N": the sum over all results with N threads. */
static int print_bits(const char *threads) {
    rp_arena_init(&boot, "boot", 0);
    rp_device_options options = {.threads = (uint32_t)strtoul(threads, NULL, 10)};
    if (rp_device_open(&boot, &options, &device) != RP_OK) {
        return 1;
    }
    for (int choice = RP_GEMM_CLBLAST; choice <= RP_GEMM_PANEL; choice++) {
        rp_device_choose_gemm(device, (rp_gemm_choice)choice);
        rng = rp_rng_named(1, "bits");
        check_plain(200, 300, 150, 0);
        check_plain(64, 27, 9000, 4);
        check_conv(&(conv){2, 4, 1, 6, 16, 3, 1, 1, 1}, 0);
        check_conv(&(conv){17, 6, 1, 9, 2, 3, 1, 1, 1}, 0);
    }
    printf("%016llx\n", (unsigned long long)sum);
    close_device();
    return 0;
}

/* PoCL reads its thread count once a process. */
static void read_bits(char *threads, char out[64]) {
    char program[] = "tests_device";
    char name[] = "test_gemm";
    char verb[] = "bits";
    char *const arguments[] = {program, name, verb, threads, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    int status = -1;
    pid_t child;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), 0);
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    (void)close(ends[1]);
    FILE *answer = fdopen(ends[0], "r");
    assert_non_null(answer);
    assert_non_null(fgets(out, 64, answer));
    (void)fclose(answer);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    (void)posix_spawn_file_actions_destroy(&actions);
}

static void threads_do_not_change_a_bit(void **state) {
    (void)state;
    char one[64];
    char two[64];
    read_bits((char[]){"1"}, one);
    read_bits((char[]){"2"}, two);
    assert_string_equal(one, two);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_transposes),
        cmocka_unit_test(long_sums),
        cmocka_unit_test(epilogues),
        cmocka_unit_test(strides),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(rectangles),
        cmocka_unit_test(tiles_of_twelve_rows),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(a_broken_product_rings),
    };
    const struct CMUnitTest once[] = {cmocka_unit_test(threads_do_not_change_a_bit)};
    if (argc == 3 && strcmp(argv[1], "bits") == 0) {
        return print_bits(argv[2]);
    }
    open_device();
    rng = rp_rng_named(1, "test_gemm");
    int failed = 0;
    /* CLBlast's kernels are not ours to check; those around them run under tests/nn. */
    const int first = expect_small() ? RP_GEMM_PANEL : RP_GEMM_CLBLAST;
    for (int choice = first; choice <= RP_GEMM_PANEL; choice++) {
        if (argc < 2 || strcmp(argv[1], rp_gemm_choice_name((rp_gemm_choice)choice)) == 0) {
            rp_device_choose_gemm(device, (rp_gemm_choice)choice);
            failed += cmocka_run_group_tests_name(rp_gemm_choice_name((rp_gemm_choice)choice),
                                                  tests, NULL, NULL);
        }
    }
    close_device();
    if (argc < 2 && !expect_small()) {
        failed += cmocka_run_group_tests_name("threads", once, NULL, NULL);
    }
    return failed;
}
