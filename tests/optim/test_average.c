#include "nn/golden.h"

#include <math.h>

#include "optim/average.h"

enum { BLOCKS = 3, ROOM = 128 }; /* elements of a block; those behind its count stay as they are */

static const uint32_t counts[] = {1, 15, 16, 17, 33, 100};
static const float alpha = 0.225f;

typedef struct {
    rp_arena arena;
    rp_darena *memory;
    rp_buffer *buffer[BLOCKS];
    float was[BLOCKS][ROOM], is[BLOCKS][ROOM];
    uint32_t count;
} blocks;

static void open_blocks(blocks *b, uint32_t count) {
    static const char *const streams[BLOCKS] = {"first", "second", "third"};
    rp_device *device = golden_device();
    *b = (blocks){.count = count};
    rp_arena_init(&b->arena, "average", 0);
    expect_ok(rp_darena_open(&b->arena, device, "average", 0, 0, &b->memory));
    for (int i = 0; i < BLOCKS; i++) {
        golden_values(streams[i], ROOM, b->was[i]);
        expect_ok(rp_darena_take(b->memory, sizeof b->was[i], &b->buffer[i]));
        expect_ok(rp_buffer_write_now(device, b->buffer[i], 0, b->was[i], sizeof b->was[i]));
    }
}

static void read_blocks(blocks *b) {
    for (int i = 0; i < BLOCKS; i++) {
        expect_ok(rp_buffer_read_now(golden_device(), b->is[i], b->buffer[i], 0, sizeof b->is[i]));
        assert_memory_equal(b->is[i] + b->count, b->was[i] + b->count,
                            (ROOM - b->count) * sizeof(float));
    }
}

static void expect_same(const blocks *b, int block) {
    assert_memory_equal(b->is[block], b->was[block], sizeof b->is[block]);
}

static void close_blocks(blocks *b) {
    rp_darena_close(&b->memory);
    rp_arena_finish(&b->arena);
}

#define FOR_COUNTS(b) for (size_t c = 0; c < sizeof counts / sizeof *counts; close_blocks(b), c++)

static void elastic_moves_both(void **state) {
    (void)state;
    blocks b;
    FOR_COUNTS(&b) {
        open_blocks(&b, counts[c]);
        expect_ok(rp_average_elastic(golden_device(), b.buffer[0], b.buffer[1], b.count, alpha));
        read_blocks(&b);
        for (uint32_t i = 0; i < b.count; i++) {
            const double e = (double)alpha * ((double)b.was[0][i] - (double)b.was[1][i]);
            expect_close(b.is[0][i], (double)b.was[0][i] - e, 1e-6, 1e-6);
            expect_close(b.is[1][i], (double)b.was[1][i] + e, 1e-6, 1e-6);
        }
        expect_same(&b, 2);
    }
}

/* pull and push with nothing between them are elastic, to the bit. */
static void halves_are_the_whole(void **state) {
    (void)state;
    rp_device *device = golden_device();
    blocks b;
    blocks whole;
    FOR_COUNTS(&b) {
        open_blocks(&whole, counts[c]);
        expect_ok(rp_average_elastic(device, whole.buffer[0], whole.buffer[1], whole.count, alpha));
        read_blocks(&whole);
        open_blocks(&b, counts[c]);
        expect_ok(rp_average_pull(device, b.buffer[2], b.buffer[0], b.buffer[1], b.count, alpha));
        read_blocks(&b);
        expect_same(&b, 0);
        expect_ok(rp_average_push(device, b.buffer[0], b.buffer[2], b.count));
        read_blocks(&b);
        assert_memory_equal(b.is[0], whole.is[0], sizeof b.is[0]);
        assert_memory_equal(b.is[1], whole.is[1], sizeof b.is[1]);
        close_blocks(&whole);
    }
}

static void add_may_be_in_place(void **state) {
    (void)state;
    blocks b;
    FOR_COUNTS(&b) {
        open_blocks(&b, counts[c]);
        expect_ok(
            rp_average_add(golden_device(), b.buffer[2], b.buffer[0], b.buffer[1], -0.5f, b.count));
        expect_ok(
            rp_average_add(golden_device(), b.buffer[0], b.buffer[0], b.buffer[1], -0.5f, b.count));
        read_blocks(&b);
        for (uint32_t i = 0; i < b.count; i++) {
            expect_close(b.is[2][i], (double)b.was[0][i] - 0.5 * (double)b.was[1][i], 1e-6, 1e-6);
        }
        assert_memory_equal(b.is[0], b.is[2], b.count * sizeof(float));
        expect_same(&b, 1);
    }
}

static void the_mean_of_equals_is_each(void **state) {
    (void)state;
    rp_device *device = golden_device();
    blocks b;
    FOR_COUNTS(&b) {
        open_blocks(&b, counts[c]);
        expect_ok(rp_average_towards(device, b.buffer[0], b.buffer[1], b.count, 0.5f));
        expect_ok(rp_average_towards(device, b.buffer[0], b.buffer[2], b.count, 1.0f / 3));
        read_blocks(&b);
        for (uint32_t i = 0; i < b.count; i++) {
            const double sum = (double)b.was[0][i] + (double)b.was[1][i] + (double)b.was[2][i];
            expect_close(b.is[0][i], sum / 3, 1e-6, 1e-6);
        }
        expect_same(&b, 1);
        expect_ok(rp_average_towards(device, b.buffer[1], b.buffer[1], b.count, 1.0f / 3));
        read_blocks(&b);
        expect_same(&b, 1);
        expect_same(&b, 2);
    }
}

/* x is mixed with the reference as it was, not with the one that has just moved. */
static void reference_is_the_old_one(void **state) {
    (void)state;
    const float share = 0.25f;
    blocks b;
    FOR_COUNTS(&b) {
        open_blocks(&b, counts[c]);
        expect_ok(rp_average_reference(golden_device(), b.buffer[0], b.buffer[1], b.buffer[2],
                                       b.count, alpha, share));
        read_blocks(&b);
        for (uint32_t i = 0; i < b.count; i++) {
            const double x = (double)b.was[0][i];
            const double old = (double)b.was[1][i];
            const double moved = old + (double)share * (x - (double)b.was[2][i]);
            expect_close(b.is[0][i], (1 - (double)alpha) * x + (double)alpha * old, 1e-6, 1e-6);
            expect_close(b.is[1][i], moved, 1e-6, 1e-6);
        }
        expect_same(&b, 2);
    }
}

/* In x, a NaN shows in both blocks, at its own place only. */
static void nan_stays_at_its_place(void **state) {
    (void)state;
    enum { AT = 20 };
    const float nan_value = NAN;
    blocks b;
    open_blocks(&b, 33);
    expect_ok(rp_buffer_write_now(golden_device(), b.buffer[0], AT * sizeof(float), &nan_value,
                                  sizeof nan_value));
    expect_ok(rp_average_elastic(golden_device(), b.buffer[0], b.buffer[1], b.count, alpha));
    read_blocks(&b);
    for (uint32_t i = 0; i < b.count; i++) {
        assert_int_equal(expect_finite_bits((double)b.is[0][i]), i != AT);
        assert_int_equal(expect_finite_bits((double)b.is[1][i]), i != AT);
    }
    close_blocks(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elastic_moves_both),     cmocka_unit_test(halves_are_the_whole),
        cmocka_unit_test(add_may_be_in_place),    cmocka_unit_test(reference_is_the_old_one),
        cmocka_unit_test(nan_stays_at_its_place), cmocka_unit_test(the_mean_of_equals_is_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
