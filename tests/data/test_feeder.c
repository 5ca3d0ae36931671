#include "fixture.h"

#include <poll.h>

enum { PIXELS = 12 * 12, COUNT = 25 };

static rp_data data;

static int setup_glyphs(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    return open_data(&data, "{set: glyphs, train: 25, test: 7, size: 12, augment: crop-flip}", NULL,
                     true) == RP_OK
               ? 0
               : -1;
}

static int teardown_glyphs(void **state) {
    rp_data_close(&data);
    return teardown(state);
}

static bool is_ready(const rp_feeder *feeder, int wait_ms) {
    struct pollfd watch = {.fd = rp_feeder_eventfd(feeder), .events = POLLIN};
    if (watch.fd < 0) {
        return true; /* direct: a batch is made when it is taken */
    }
    return poll(&watch, 1, wait_ms) == 1;
}

static const rp_batch *take_batch(rp_feeder *feeder) {
    const rp_batch *batch = NULL;
    assert_true(is_ready(feeder, 10000));
    expect_ok(rp_feeder_take(feeder, &batch));
    return batch;
}

/* The batch of `step`, made here. */
static void expect_batch(const rp_batch *batch, uint64_t step, uint32_t size) {
    static float x[COUNT * PIXELS];
    int32_t labels[COUNT];
    uint32_t order[COUNT];
    const uint32_t steps = (COUNT + size - 1) / size;
    const uint32_t first = (uint32_t)(step % steps) * size;
    const uint32_t count = COUNT - first < size ? COUNT - first : size;
    const uint32_t epoch = (uint32_t)(step / steps);
    assert_int_equal(batch->step, step);
    assert_int_equal(batch->epoch, epoch);
    assert_int_equal(batch->count, count);
    assert_null(batch->rows);
    rp_data_order(&data, RP_SPLIT_TRAIN, epoch, order);
    expect_ok(
        rp_data_batch(&data, RP_SPLIT_TRAIN, epoch, order + first, count, true, x, labels, NULL));
    assert_memory_equal(batch->x, x, count * PIXELS * sizeof *x);
    assert_memory_equal(batch->labels, labels, count * sizeof *labels);
}

static void expect_order(rp_feeder_mode mode, uint64_t first, uint32_t depth) {
    rp_feeder *feeder = NULL;
    const rp_batch *batch = NULL;
    expect_ok(
        rp_feeder_open(&arena, &data, mode, RP_SPLIT_TRAIN, true, 8, first, 14, depth, &feeder));
    for (uint64_t step = first; step < 14; step++) {
        batch = take_batch(feeder);
        expect_batch(batch, step, 8);
        rp_feeder_return(feeder, batch);
    }
    expect_err(rp_feeder_take(feeder, &batch), RP_ERR_AGAIN);
    assert_false(mode == RP_FEEDER_THREAD && is_ready(feeder, 0));
    rp_feeder_close(&feeder);
    assert_null(feeder);
}

static void batches_come_in_order(void **state) {
    (void)state;
    for (uint32_t depth = 1; depth < 4; depth++) {
        for (uint64_t first = 0; first < 5; first += 3) { /* 3: inside an epoch of 4 steps */
            expect_order(RP_FEEDER_THREAD, first, depth);
            expect_order(RP_FEEDER_DIRECT, first, depth);
        }
    }
}

/* Slots are what bounds it: two for each of `depth`. */
static void direct_batches_are_bounded(void **state) {
    (void)state;
    rp_feeder *feeder = NULL;
    const rp_batch *batch[3];
    expect_ok(rp_feeder_open(&arena, &data, RP_FEEDER_DIRECT, RP_SPLIT_TRAIN, true, 8, 0, 14, 1,
                             &feeder));
    assert_int_equal(rp_feeder_eventfd(feeder), -1);
    expect_ok(rp_feeder_take(feeder, &batch[0]));
    expect_ok(rp_feeder_take(feeder, &batch[1]));
    expect_err(rp_feeder_take(feeder, &batch[2]), RP_ERR_AGAIN);
    rp_feeder_return(feeder, batch[0]);
    expect_ok(rp_feeder_take(feeder, &batch[2]));
    expect_batch(batch[1], 1, 8);
    expect_batch(batch[2], 2, 8);
    rp_feeder_close(&feeder);
}

static void several_are_out(void **state) {
    (void)state;
    rp_feeder *feeder = NULL;
    const rp_batch *out[3];
    expect_ok(rp_feeder_open(&arena, &data, RP_FEEDER_THREAD, RP_SPLIT_TRAIN, true, 5, 0, 30, 3,
                             &feeder));
    for (uint64_t step = 0; step < 30; step += 3) {
        for (int i = 0; i < 3; i++) {
            out[i] = take_batch(feeder);
        }
        expect_batch(out[1], step + 1, 5);
        expect_batch(out[0], step, 5);
        rp_feeder_return(feeder, out[2]);
        rp_feeder_return(feeder, out[0]);
        rp_feeder_return(feeder, out[1]);
    }
    rp_feeder_close(&feeder);
}

static void a_full_house_waits(void **state) {
    (void)state;
    rp_feeder *feeder = NULL;
    const rp_batch *out[2];
    const rp_batch *more = NULL;
    expect_ok(rp_feeder_open(&arena, &data, RP_FEEDER_THREAD, RP_SPLIT_TRAIN, true, 5, 0, 100, 1,
                             &feeder));
    out[0] = take_batch(feeder);
    out[1] = take_batch(feeder);
    assert_false(is_ready(feeder, 50));
    expect_err(rp_feeder_take(feeder, &more), RP_ERR_AGAIN);
    rp_feeder_return(feeder, out[1]);
    more = take_batch(feeder);
    expect_batch(more, 2, 5);
    expect_batch(out[0], 0, 5); /* nobody wrote into it */
    rp_feeder_close(&feeder);
}

static void evaluation_reads_in_order(void **state) {
    (void)state;
    rp_feeder *feeder = NULL;
    expect_ok(
        rp_feeder_open(&arena, &data, RP_FEEDER_THREAD, RP_SPLIT_TEST, false, 4, 0, 2, 2, &feeder));
    for (uint32_t step = 0; step < 2; step++) {
        const rp_batch *batch = take_batch(feeder);
        assert_int_equal(batch->count, step == 0 ? 4 : 3);
        for (uint32_t i = 0; i < batch->count; i++) {
            assert_int_equal(batch->labels[i], 4 * step + i);
        }
        rp_feeder_return(feeder, batch);
    }
    rp_feeder_close(&feeder);
    /* A batch that is larger than the set. */
    expect_ok(rp_feeder_open(&arena, &data, RP_FEEDER_THREAD, RP_SPLIT_TEST, false, 1000, 0, 2, 1,
                             &feeder));
    const rp_batch *batch = take_batch(feeder);
    assert_int_equal(batch->count, 7);
    rp_feeder_close(&feeder);
}

static void closing_at_any_time(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        rp_feeder *feeder = NULL;
        expect_ok(rp_feeder_open(&arena, &data, RP_FEEDER_THREAD, RP_SPLIT_TRAIN, true, 5, 0, 1000,
                                 2, &feeder));
        for (int i = 0; i < round % 4; i++) {
            const rp_batch *batch = take_batch(feeder);
            if (i % 2) {
                rp_feeder_return(feeder, batch);
            }
        }
        if (round % 5 == 0) {
            usleep(200);
        }
        rp_feeder_close(&feeder);
        rp_feeder_close(&feeder);
    }
}

static rp_err fail_to_read(const rp_data *set, rp_split split, uint32_t index, float *x, float *row,
                           int32_t *label) {
    (void)set;
    (void)split;
    (void)x;
    (void)row;
    *label = 0;
    return index == 24 ? rp_fail(RP_ERR_IO, "sample 24 is gone") : RP_OK;
}

static void a_failure_comes_out_at_its_step(void **state) {
    (void)state;
    rp_data_kind kind = *data.kind;
    rp_data broken = data;
    rp_feeder *feeder = NULL;
    const rp_batch *batch = NULL;
    kind.read = fail_to_read;
    broken.kind = &kind;
    broken.shuffle = false;
    expect_ok(rp_feeder_open(&arena, &broken, RP_FEEDER_THREAD, RP_SPLIT_TRAIN, true, 10, 0, 9, 4,
                             &feeder));
    take_batch(feeder);
    take_batch(feeder);
    assert_true(is_ready(feeder, 10000));
    expect_err(rp_feeder_take(feeder, &batch), RP_ERR_IO);
    assert_string_equal(rp_err_message(), "sample 24 is gone");
    expect_err(rp_feeder_take(feeder, &batch), RP_ERR_IO);
    rp_feeder_close(&feeder);
}

/* Takes longer for some samples than for others, so that workers overtake each other. */
static rp_err read_slowly(const rp_data *set, rp_split split, uint32_t index, float *x, float *row,
                          int32_t *label) {
    usleep(index * 7919 % 13 * 300);
    if (index == 24) {
        return rp_fail(RP_ERR_IO, "sample 24 is gone");
    }
    return data.kind->read(set, split, index, x, row, label);
}

/* A batch is only called ready when all before it are; an error comes out at its step. */
static void workers_overtake_each_other(void **state) {
    (void)state;
    rp_data_kind kind = *data.kind;
    rp_data slow = data;
    rp_feeder *feeder = NULL;
    const rp_batch *batch = NULL;
    kind.read = read_slowly;
    slow.kind = &kind;
    slow.shuffle = false;
    slow.workers = 5;
    expect_ok(rp_feeder_open(&arena, &slow, RP_FEEDER_THREAD, RP_SPLIT_TRAIN, true, 1, 0, 30, 4,
                             &feeder));
    for (uint64_t step = 0; step < 24; step++) {
        assert_true(is_ready(feeder, 10000));
        expect_ok(rp_feeder_take(feeder, &batch)); /* never AGAIN */
        assert_int_equal(batch->step, step);
        rp_feeder_return(feeder, batch);
    }
    assert_true(is_ready(feeder, 10000));
    expect_err(rp_feeder_take(feeder, &batch), RP_ERR_IO);
    assert_string_equal(rp_err_message(), "sample 24 is gone");
    rp_feeder_close(&feeder);
    /* Closed in the middle, with all of them at work or waiting. */
    for (int taken = 0; taken < 4; taken++) {
        expect_ok(rp_feeder_open(&arena, &slow, RP_FEEDER_THREAD, RP_SPLIT_TRAIN, true, 3, 0, 10000,
                                 2, &feeder));
        for (int i = 0; i < taken; i++) {
            assert_non_null(take_batch(feeder));
        }
        rp_feeder_close(&feeder);
    }
}

static void an_empty_split(void **state) {
    (void)state;
    rp_feeder *feeder = NULL;
    rp_data empty = data;
    empty.count[RP_SPLIT_TEST] = 0;
    expect_err(
        rp_feeder_open(&arena, &empty, RP_FEEDER_THREAD, RP_SPLIT_TEST, false, 4, 0, 1, 1, &feeder),
        RP_ERR_USAGE);
    assert_null(feeder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(batches_come_in_order, setup_glyphs, teardown_glyphs),
        cmocka_unit_test_setup_teardown(direct_batches_are_bounded, setup_glyphs, teardown_glyphs),
        cmocka_unit_test_setup_teardown(several_are_out, setup_glyphs, teardown_glyphs),
        cmocka_unit_test_setup_teardown(a_full_house_waits, setup_glyphs, teardown_glyphs),
        cmocka_unit_test_setup_teardown(evaluation_reads_in_order, setup_glyphs, teardown_glyphs),
        cmocka_unit_test_setup_teardown(closing_at_any_time, setup_glyphs, teardown_glyphs),
        cmocka_unit_test_setup_teardown(a_failure_comes_out_at_its_step, setup_glyphs,
                                        teardown_glyphs),
        cmocka_unit_test_setup_teardown(workers_overtake_each_other, setup_glyphs, teardown_glyphs),
        cmocka_unit_test_setup_teardown(an_empty_split, setup_glyphs, teardown_glyphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
