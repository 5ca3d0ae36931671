/* bench_gemm [panel|clblast] [threads] [tuning.json] [name]: GFLOP/s of our products beside
 * OpenBLAS on the same shape, in the same run, with as many threads. For convolutions OpenBLAS
 * multiplies columns that already lie in memory, so the ratio charges us alone for making the
 * patches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "device/gemm.h"

/* From OpenBLAS' cblas.h; declared here because its header is not clean under our warnings. */
void openblas_set_num_threads(int threads);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc);

enum { ROW_MAJOR = 101, AS_IS = 111, TURNED = 112 };

typedef enum { PLAIN, FORWARD, BACK_DATA, BACK_WEIGHTS } kind;

typedef struct {
    const char *name;
    kind kind;
    uint32_t m, n, k;                         /* PLAIN */
    bool a_turned, b_turned;                  /* PLAIN */
    uint32_t images, c, out, size, r, stride; /* convolutions, pad r / 2 */
} shape;

static const shape shapes[] = {
    {"plain-256", PLAIN, .m = 256, .n = 256, .k = 256},
    {"plain-512", PLAIN, .m = 512, .n = 512, .k = 512},
    {"plain-1024", PLAIN, .m = 1024, .n = 1024, .k = 1024},
    {"plain-2048", PLAIN, .m = 2048, .n = 2048, .k = 2048},
    {"turned-b-1024", PLAIN, .m = 1024, .n = 1024, .k = 1024, .b_turned = true},
    {"turned-a-1024", PLAIN, .m = 1024, .n = 1024, .k = 1024, .a_turned = true},
    {"dense-64x512x512", PLAIN, .m = 64, .n = 512, .k = 512, .b_turned = true},
    {"dense-64x10x512", PLAIN, .m = 64, .n = 10, .k = 512, .b_turned = true},
    {"gpt-2048x384x128", PLAIN, .m = 2048, .n = 384, .k = 128, .b_turned = true},
    {"gpt-dw-384x128x2048", PLAIN, .m = 384, .n = 128, .k = 2048, .a_turned = true},
    {"odd-333", PLAIN, .m = 333, .n = 333, .k = 333},
/* clang-format off */
#define CONV_OF(tag, what, ci, co, hw, ks, st)                                                     \
    {tag, what, .images = 64, .c = ci, .out = co, .size = hw, .r = ks, .stride = st}
#define CONV(tag, ci, co, hw, ks, st)                                                              \
    CONV_OF(tag "-fwd", FORWARD, ci, co, hw, ks, st),                                              \
    CONV_OF(tag "-dx", BACK_DATA, ci, co, hw, ks, st),                                             \
    CONV_OF(tag "-dw", BACK_WEIGHTS, ci, co, hw, ks, st)
    /* clang-format on */
    CONV("conv-3-64-32", 3, 64, 32, 3, 1),
    CONV("conv-64-64-32", 64, 64, 32, 3, 1),
    CONV("conv-128-128-16", 128, 128, 16, 3, 1),
    CONV("conv-256-256-8", 256, 256, 8, 3, 1),
    CONV("conv-512-512-4", 512, 512, 4, 3, 1),
    CONV("conv-512-512-2", 512, 512, 2, 3, 1),
    CONV("conv-64-128-32-s2", 64, 128, 32, 3, 2),
    CONV("conv-64-128-32-1x1-s2", 64, 128, 32, 1, 2),
};

typedef struct {
    rp_device *device;
    rp_arena host;
    rp_darena *memory;
    rp_rng rng;
    int threads;
} bench;

static void need_ok(rp_err err) {
    if (err != RP_OK) {
        exit(rp_err_exit_code(err));
    }
}

static float *make_host(bench *b, size_t count) {
    float *out;
    need_ok(RP_ARENA_NEW(&b->host, count, &out));
    for (size_t i = 0; i < count; i++) {
        out[i] = 2 * rp_rng_uniform(&b->rng) - 1;
    }
    return out;
}

static rp_buffer *make_device(bench *b, size_t count) {
    rp_buffer *out;
    need_ok(rp_darena_take(b->memory, count * sizeof(float), &out));
    need_ok(rp_buffer_write_now(b->device, out, 0, make_host(b, count), count * sizeof(float)));
    return out;
}

/* With one thread the process's CPU time, which neighbours on a shared machine disturb least. */
static double seconds(const bench *b) {
    struct timespec now;
    clock_gettime(b->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The operands of one call, by the formulas of the convolution layer. */
static void make_call(bench *b, const shape *s, rp_mat *c, rp_mat *a, rp_mat *x) {
    if (s->kind == PLAIN) {
        *a = s->a_turned ? rp_mat_transposed(
                               rp_mat_plain(make_device(b, (size_t)s->m * s->k), 0, s->k, s->m))
                         : rp_mat_plain(make_device(b, (size_t)s->m * s->k), 0, s->m, s->k);
        *x = s->b_turned ? rp_mat_transposed(
                               rp_mat_plain(make_device(b, (size_t)s->n * s->k), 0, s->n, s->k))
                         : rp_mat_plain(make_device(b, (size_t)s->n * s->k), 0, s->k, s->n);
        *c = rp_mat_plain(make_device(b, (size_t)s->m * s->n), 0, s->m, s->n);
        return;
    }
    const uint32_t n = s->images;
    const uint32_t pad = s->r / 2;
    const uint32_t p = (s->size + 2 * pad - s->r) / s->stride + 1;
    const uint32_t rs = s->r * s->r;
    rp_buffer *image = make_device(b, (size_t)n * s->c * s->size * s->size);
    rp_buffer *weights = make_device(b, (size_t)s->out * s->c * rs);
    rp_buffer *output = make_device(b, (size_t)n * s->out * p * p);
    rp_mat patches = {
        .kind = RP_MAT_PATCHES, .buffer = image, .rows = s->c * rs, .cols = n * p * p};
    patches.patches = (rp_patches){.channels_total = s->c,
                                   .channels = s->c,
                                   .h = s->size,
                                   .w = s->size,
                                   .r = s->r,
                                   .s = s->r,
                                   .p = p,
                                   .q = p,
                                   .y = {(int32_t)s->stride, 1, -(int32_t)pad},
                                   .x = {(int32_t)s->stride, 1, -(int32_t)pad},
                                   .div = 1};
    if (s->kind == FORWARD) {
        *a = rp_mat_plain(weights, 0, s->out, s->c * rs);
        *x = patches;
        *c = rp_mat_channels(output, n, s->out, 0, s->out, p * p);
    } else if (s->kind == BACK_WEIGHTS) {
        *a = rp_mat_channels(output, n, s->out, 0, s->out, p * p);
        *x = rp_mat_transposed(patches);
        *c = rp_mat_plain(weights, 0, s->out, s->c * rs);
    } else {
        *a = (rp_mat){.kind = RP_MAT_STRIDED,
                      .buffer = weights,
                      .rows = s->c,
                      .cols = s->out * rs,
                      .row_stride = rs,
                      .inner = rs,
                      .inner_stride = 1,
                      .outer_stride = s->c * rs};
        *x = (rp_mat){.kind = RP_MAT_PATCHES,
                      .buffer = output,
                      .rows = s->out * rs,
                      .cols = n * s->size * s->size};
        x->patches = (rp_patches){.channels_total = s->out,
                                  .channels = s->out,
                                  .h = p,
                                  .w = p,
                                  .r = s->r,
                                  .s = s->r,
                                  .p = s->size,
                                  .q = s->size,
                                  .y = {1, -1, (int32_t)pad},
                                  .x = {1, -1, (int32_t)pad},
                                  .div = (int32_t)s->stride};
        *c = rp_mat_channels(image, n, s->c, 0, s->c, s->size * s->size);
    }
}

static uint32_t rows_of(const rp_mat *mat) {
    return mat->transposed ? mat->cols : mat->rows;
}

static uint32_t cols_of(const rp_mat *mat) {
    return mat->transposed ? mat->rows : mat->cols;
}

static double time_blas(const bench *b, const shape *s, float *c, const float *a, const float *x,
                        int m, int n, int k) {
    const int ta = s->a_turned ? TURNED : AS_IS;
    const int tb = s->b_turned || s->kind == BACK_WEIGHTS ? TURNED : AS_IS;
    double start = seconds(b);
    cblas_sgemm(ROW_MAJOR, ta, tb, m, n, k, 1, a, ta == TURNED ? m : k, x, tb == TURNED ? k : n, 0,
                c, n);
    return seconds(b) - start;
}

static void run(bench *b, const shape *s) {
    rp_mat c, a, x;
    rp_buffer *workspace;
    rp_arena_init(&b->host, "bench", 0);
    need_ok(rp_darena_open(&b->host, b->device, "bench", 0, 0, &b->memory));
    make_call(b, s, &c, &a, &x);
    const uint32_t m = rows_of(&c);
    const uint32_t n = cols_of(&c);
    const uint32_t k = cols_of(&a);
    need_ok(rp_darena_take(
        b->memory, rp_gemm_workspace_bytes(rp_device_gemm(b->device), &c, &a, &x), &workspace));
    float *hc = make_host(b, (size_t)m * n);
    float *ha = make_host(b, (size_t)m * k);
    float *hx = make_host(b, (size_t)n * k);
    double ours = 1e9;
    double blas = 1e9;
    const double flop = 2.0 * m * n * k;
    const int rounds = flop > 4e9 ? 5 : 10;
    for (int round = 0; round < rounds + 1; round++) {
        double start = seconds(b);
        need_ok(rp_gemm_run(b->device, &c, &a, &x, NULL, workspace));
        need_ok(rp_device_drain(b->device));
        double took = seconds(b) - start;
        double other = time_blas(b, s, hc, ha, hx, (int)m, (int)n, (int)k);
        if (round > 0) {
            ours = took < ours ? took : ours;
            blas = other < blas ? other : blas;
        }
    }
    printf("%-26s %5u x %5u x %5u  %7.1f GFLOP/s  OpenBLAS %7.1f  ratio %.2f\n", s->name, m, n, k,
           flop / ours * 1e-9, flop / blas * 1e-9, blas / ours);
    (void)fflush(stdout);
    rp_darena_close(&b->memory);
    rp_arena_finish(&b->host);
}

int main(int argc, char **argv) {
    bench b = {.rng = rp_rng_named(1, "bench"),
               .threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 2};
    rp_arena boot;
    rp_arena_init(&boot, "boot", 0);
    rp_device_options options = {.threads = (uint32_t)b.threads,
                                 .tuning_path = argc > 3 && argv[3][0] ? argv[3] : NULL};
    need_ok(rp_device_open(&boot, &options, &b.device));
    if (argc > 1) {
        rp_device_choose_gemm(b.device,
                              strcmp(argv[1], "panel") == 0 ? RP_GEMM_PANEL : RP_GEMM_CLBLAST);
    }
    openblas_set_num_threads(b.threads);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (argc < 5 || strstr(shapes[i].name, argv[4])) {
            run(&b, &shapes[i]);
        }
    }
    rp_device_close(&b.device);
    rp_arena_finish(&boot);
    return 0;
}
