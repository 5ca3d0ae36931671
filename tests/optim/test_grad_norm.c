#include "nn/golden.h"

#include <math.h>

#include "optim/optim.h"

typedef struct {
    rp_arena arena;
    rp_darena *memory;
    rp_buffer *g, *spans, *out;
    uint32_t count;
} block;

static void open_block(block *b, const float *g, uint32_t count, const uint32_t (*spans)[2],
                       uint32_t span_count) {
    rp_device *device = golden_device();
    *b = (block){.count = span_count};
    rp_arena_init(&b->arena, "norm", 0);
    expect_ok(rp_darena_open(&b->arena, device, "norm", 0, 0, &b->memory));
    expect_ok(rp_darena_take(b->memory, count * sizeof *g, &b->g));
    expect_ok(rp_darena_take(b->memory, span_count * sizeof *spans, &b->spans));
    expect_ok(
        rp_darena_take(b->memory, rp_grad_sumsq_bytes(count * sizeof *g, span_count), &b->out));
    expect_ok(rp_buffer_write_now(device, b->g, 0, g, count * sizeof *g));
    expect_ok(rp_buffer_write_now(device, b->spans, 0, spans, span_count * sizeof *spans));
}

static void run_block(block *b, float *out) {
    rp_device *device = golden_device();
    expect_ok(rp_grad_sumsq(device, b->g, b->spans, b->count, b->out));
    expect_ok(rp_buffer_read_now(device, out, b->out, 0, b->count * sizeof *out));
}

static void close_block(block *b) {
    rp_darena_close(&b->memory);
    rp_arena_finish(&b->arena);
}

enum { COUNT = 200000, SPANS = 9 };
static float g[COUNT];
static const uint32_t spans[SPANS][2] = {{0, 1},         {16, 31},        {48, 32},
                                         {80, 33},       {128, 65},       {208, 16384},
                                         {16592, 16385}, {33000, 100001}, {199999, 1}};

static void equals_double(void **state) {
    (void)state;
    float out[SPANS];
    block b;
    golden_values("g", COUNT, g);
    open_block(&b, g, COUNT, spans, SPANS);
    run_block(&b, out);
    for (size_t s = 0; s < SPANS; s++) {
        double want = 0;
        for (uint32_t i = 0; i < spans[s][1]; i++) {
            want += (double)g[spans[s][0] + i] * (double)g[spans[s][0] + i];
        }
        expect_close(out[s], want, 2e-6, 0);
    }
    float again[SPANS];
    run_block(&b, again);
    assert_memory_equal(out, again, sizeof out);
    close_block(&b);
}

/* Sixteen sums of a chunk's elements, element i in sum i % 16, then added in pairs. */
static float sum_of_chunk(const float *from, uint32_t count, bool fused) {
    float sums[16] = {0};
    for (uint32_t i = 0; i < count; i++) {
        float *sum = &sums[i % 16];
        *sum = fused ? fmaf(from[i], from[i], *sum) : *sum + from[i] * from[i];
    }
    for (uint32_t half = 8; half > 0; half /= 2) {
        for (uint32_t lane = 0; lane < half; lane++) {
            sums[lane] += sums[lane + half];
        }
    }
    return sums[0];
}

static void sum_in_order(bool fused, float out[SPANS]) {
    for (size_t s = 0; s < SPANS; s++) {
        out[s] = 0;
        for (uint32_t i = 0; i < spans[s][1]; i += 16384) {
            const uint32_t left = spans[s][1] - i;
            out[s] += sum_of_chunk(g + spans[s][0] + i, left < 16384 ? left : 16384, fused);
        }
    }
}

/* A driver may fuse all products with their sums, or none. */
static void order_is_fixed(void **state) {
    (void)state;
    float out[SPANS];
    float want[SPANS];
    float want_fused[SPANS];
    block b;
    golden_values("g", COUNT, g);
    open_block(&b, g, COUNT, spans, SPANS);
    run_block(&b, out);
    close_block(&b);
    sum_in_order(false, want);
    sum_in_order(true, want_fused);
    assert_true(memcmp(out, want, sizeof out) == 0 || memcmp(out, want_fused, sizeof out) == 0);
}

/* The same tensor elsewhere in another block: the same bits, so the norm is independent of the cut.
 */
static void place_does_not_matter(void **state) {
    (void)state;
    float out[SPANS];
    float alone[1];
    block b;
    golden_values("g", COUNT, g);
    open_block(&b, g, COUNT, spans, SPANS);
    run_block(&b, out);
    close_block(&b);
    for (size_t s = 0; s < SPANS; s++) {
        const uint32_t span[1][2] = {{0, spans[s][1]}};
        open_block(&b, g + spans[s][0], spans[s][1], span, 1);
        run_block(&b, alone);
        close_block(&b);
        assert_memory_equal(alone, out + s, sizeof(float));
    }
}

static void non_finite_shows(void **state) {
    (void)state;
    float out[SPANS];
    block b;
    for (int k = 0; k < 2; k++) {
        golden_values("g", COUNT, g);
        g[20000] = k ? INFINITY : NAN;
        open_block(&b, g, COUNT, spans, SPANS);
        run_block(&b, out);
        close_block(&b);
        for (size_t s = 0; s < SPANS; s++) {
            assert_int_equal(expect_finite_bits((double)out[s]), s != 6);
        }
    }
}

static void too_small_a_buffer(void **state) {
    (void)state;
    block b;
    open_block(&b, g, COUNT, spans, SPANS);
    expect_err(rp_grad_sumsq(golden_device(), b.g, b.spans, SPANS, b.spans), RP_ERR_LIMIT);
    close_block(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_double),         cmocka_unit_test(order_is_fixed),
        cmocka_unit_test(place_does_not_matter), cmocka_unit_test(non_finite_shows),
        cmocka_unit_test(too_small_a_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
