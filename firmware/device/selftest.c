#include <math.h>

#include "base/log.h"
#include "base/rng.h"
#include "device/device_own.h"
#include "device/gemm.h"

/* Cases that have failed elsewhere: tails of tiles, transposes, one row, long sums, the direct and
 * the padded path of CLBlast, borders of images. */
typedef struct {
    uint32_t m, n, k;
    bool a_transposed, b_transposed, accumulate;
} plain_case;

static const plain_case plain_cases[] = {
    {1, 1, 1, false, false, false},      {8, 32, 64, false, false, false},
    {33, 65, 31, false, false, true},    {65, 10, 129, false, true, false},
    {10, 64, 100, true, false, false},   {128, 128, 128, true, true, true},
    {257, 191, 67, false, false, false}, {1, 300, 1025, false, true, false},
    {64, 27, 4100, false, true, true},   {448, 416, 96, false, false, false},
};

static const rp_patches patch_cases[] = {
    {.channels_total = 5,
     .channel_first = 1,
     .channels = 3,
     .h = 7,
     .w = 6,
     .r = 3,
     .s = 3,
     .p = 7,
     .q = 6,
     .y = {1, 1, -1},
     .x = {1, 1, -1},
     .div = 1},
    {.channels_total = 2,
     .channel_first = 0,
     .channels = 2,
     .h = 9,
     .w = 9,
     .r = 3,
     .s = 3,
     .p = 5,
     .q = 5,
     .y = {2, 1, -1},
     .x = {2, 1, -1},
     .div = 1},
    {.channels_total = 4,
     .channel_first = 0,
     .channels = 4,
     .h = 4,
     .w = 4,
     .r = 3,
     .s = 3,
     .p = 8,
     .q = 8,
     .y = {1, -1, 1},
     .x = {1, -1, 1},
     .div = 2},
};

enum { IMAGES = 3 };

typedef struct {
    rp_device *device;
    rp_arena host;
    rp_darena *memory;
    rp_rng rng;
} bench;

/* Element (i, j) by the definition in gemm.h. */
static float element_of(const rp_mat *mat, const float *data, uint32_t i, uint32_t j) {
    if (mat->transposed) {
        uint32_t swap = i;
        i = j;
        j = swap;
    }
    if (mat->kind == RP_MAT_STRIDED) {
        return data[mat->offset + i * mat->row_stride + (j / mat->inner) * mat->outer_stride +
                    (j % mat->inner) * mat->inner_stride];
    }
    const rp_patches *x = &mat->patches;
    const uint32_t pixel = j % (x->p * x->q);
    const uint32_t window = i % (x->r * x->s);
    const int32_t y =
        (int32_t)(pixel / x->q) * x->y.mul + (int32_t)(window / x->s) * x->y.step + x->y.off;
    const int32_t z =
        (int32_t)(pixel % x->q) * x->x.mul + (int32_t)(window % x->s) * x->x.step + x->x.off;
    if (y < 0 || z < 0 || y % x->div != 0 || z % x->div != 0 || y / x->div >= (int32_t)x->h ||
        z / x->div >= (int32_t)x->w) {
        return 0;
    }
    const uint64_t plane =
        (uint64_t)(j / (x->p * x->q)) * x->channels_total + x->channel_first + i / (x->r * x->s);
    return data[mat->offset + (plane * x->h + (uint32_t)(y / x->div)) * x->w +
                (uint32_t)(z / x->div)];
}

/* Fills the same random numbers on the host and the device. */
static rp_err fill_random(bench *b, size_t count, float **host, rp_buffer **out) {
    rp_err err;
    RP_TRY(RP_ARENA_NEW(&b->host, count, host));
    for (size_t i = 0; i < count; i++) {
        (*host)[i] = 2 * rp_rng_uniform(&b->rng) - 1;
    }
    RP_TRY(rp_darena_take(b->memory, count * sizeof(float), out));
    RP_TRY(rp_buffer_write_now(b->device, *out, 0, *host, count * sizeof(float)));
fail:
    return err;
}

/* All elements, row by row. */
static rp_err unpack_matrix(bench *b, const rp_mat *mat, const float *data, uint32_t rows,
                            uint32_t cols, float **out) {
    rp_err err = RP_ARENA_NEW(&b->host, (size_t)rows * cols, out);
    for (uint32_t i = 0; err == RP_OK && i < rows; i++) {
        for (uint32_t j = 0; j < cols; j++) {
            (*out)[(size_t)i * cols + j] = element_of(mat, data, i, j);
        }
    }
    return err;
}

/* sums[j] += the products of a row of A and column j of B. */
static void add_row(const float *restrict row, const float *restrict b, uint32_t n, uint32_t k,
                    double *restrict sums) {
    for (uint32_t l = 0; l < k; l++) {
        for (uint32_t j = 0; j < n; j++) {
            sums[j] += (double)row[l] * (double)b[(size_t)l * n + j];
        }
    }
}

/* Whether a sum of k products in [-1, 1] is within the error of float32 sums in any order. */
static bool close_enough(double got, double want, uint32_t k) {
    return isfinite(got) && fabs(got - want) <= 2e-6 * (1 + sqrt((double)k)) + 1e-5 * fabs(want);
}

static rp_err run_case(bench *b, rp_mat *am, const float *a, rp_mat *bm, const float *bd,
                       uint32_t m, uint32_t n, uint32_t k, bool accumulate) {
    float *before;
    float *after;
    float *a_rows;
    float *b_rows;
    double *want;
    rp_buffer *c;
    rp_buffer *workspace;
    rp_err err;
    RP_TRY(fill_random(b, (size_t)m * n, &before, &c));
    RP_TRY(RP_ARENA_NEW(&b->host, (size_t)m * n, &after));
    RP_TRY(RP_ARENA_NEW(&b->host, n, &want));
    RP_TRY(unpack_matrix(b, am, a, m, k, &a_rows));
    RP_TRY(unpack_matrix(b, bm, bd, k, n, &b_rows));
    rp_mat cm = rp_mat_plain(c, 0, m, n);
    RP_TRY(rp_darena_take(b->memory, rp_gemm_workspace_bytes(b->device->gemm, &cm, am, bm),
                          &workspace));
    RP_TRY(
        rp_gemm_run(b->device, &cm, am, bm, &(rp_epilogue){.accumulate = accumulate}, workspace));
    RP_TRY(rp_buffer_read_now(b->device, after, c, 0, (size_t)m * n * sizeof(float)));
    for (uint32_t i = 0; i < m; i++) {
        for (uint32_t j = 0; j < n; j++) {
            want[j] = accumulate ? (double)before[i * n + j] : 0;
        }
        add_row(&a_rows[(size_t)i * k], b_rows, n, k, want);
        for (uint32_t j = 0; j < n; j++) {
            if (!close_enough((double)after[i * n + j], want[j], k)) {
                RP_TRY(rp_fail(
                    RP_ERR_NUMERIC,
                    "%s GEMM is wrong on %s: %u x %u x %u%s%s%s%s, element (%u, %u) is "
                    "%.9g, should be %.9g",
                    rp_gemm_choice_name(b->device->gemm), b->device->facts.name, m, n, k,
                    am->transposed ? ", A transposed" : "", bm->transposed ? ", B transposed" : "",
                    bm->kind == RP_MAT_PATCHES ? ", B patches" : "", accumulate ? ", adding" : "",
                    i, j, (double)after[i * n + j], want[j]));
            }
        }
    }
fail:
    return err;
}

static rp_err run_plain(bench *b, const plain_case *x) {
    float *a_host;
    float *b_host;
    rp_buffer *a;
    rp_buffer *bb;
    rp_err err;
    RP_TRY(fill_random(b, (size_t)x->m * x->k, &a_host, &a));
    RP_TRY(fill_random(b, (size_t)x->k * x->n, &b_host, &bb));
    rp_mat am = x->a_transposed ? rp_mat_transposed(rp_mat_plain(a, 0, x->k, x->m))
                                : rp_mat_plain(a, 0, x->m, x->k);
    rp_mat bm = x->b_transposed ? rp_mat_transposed(rp_mat_plain(bb, 0, x->n, x->k))
                                : rp_mat_plain(bb, 0, x->k, x->n);
    RP_TRY(run_case(b, &am, a_host, &bm, b_host, x->m, x->n, x->k, x->accumulate));
fail:
    return err;
}

static rp_err run_patches(bench *b, const rp_patches *x, bool transposed) {
    const uint32_t rows = x->channels * x->r * x->s;
    const uint32_t cols = IMAGES * x->p * x->q;
    const uint32_t m = 20;
    const uint32_t n = transposed ? rows : cols;
    const uint32_t k = transposed ? cols : rows;
    float *a_host;
    float *b_host;
    rp_buffer *a;
    rp_buffer *images;
    rp_err err;
    RP_TRY(fill_random(b, (size_t)m * k, &a_host, &a));
    RP_TRY(fill_random(b, (size_t)IMAGES * x->channels_total * x->h * x->w, &b_host, &images));
    rp_mat am = rp_mat_plain(a, 0, m, k);
    rp_mat bm = {.kind = RP_MAT_PATCHES,
                 .buffer = images,
                 .rows = rows,
                 .cols = cols,
                 .transposed = transposed,
                 .patches = *x};
    RP_TRY(run_case(b, &am, a_host, &bm, b_host, m, n, k, false));
fail:
    return err;
}

rp_err rp_device_selftest(rp_device *device) {
    bench b = {.device = device, .rng = rp_rng_named(1, "selftest")};
    rp_err err;
    rp_arena_init(&b.host, "selftest", 0);
    device->makes_ready = true; /* agents that start together compile each product once */
    RP_TRY(rp_darena_open(&b.host, device, "selftest", 0, 0, &b.memory));
    for (size_t i = 0; i < sizeof plain_cases / sizeof *plain_cases; i++) {
        RP_TRY(run_plain(&b, &plain_cases[i]));
    }
    for (size_t i = 0; i < sizeof patch_cases / sizeof *patch_cases; i++) {
        RP_TRY(run_patches(&b, &patch_cases[i], false));
        RP_TRY(run_patches(&b, &patch_cases[i], true));
    }
fail:
    device->makes_ready = false;
    rp_darena_close(&b.memory);
    rp_arena_finish(&b.host);
    return err;
}
