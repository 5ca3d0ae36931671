/* Batches of samples of one length. */
#include "fixture.h"

enum { TIME = 12, LINES = 101, BATCH = 8 };

static const char plain[] = "{set: tsv, path: %, text: 0, label: 1, tokens: words, time: 12}";
static const char bucketed[] = "{set: tsv, path: %, text: 0, label: 1, tokens: words, time: 12, "
                               "buckets: [3, 5, 8]}";

/* Line i has i mod 13 words, up to one more than fit, and class i mod 2. */
static void write_lines(const char *name, uint32_t lines) {
    static char text[LINES * 200];
    size_t used = 0;
    for (uint32_t i = 0; i < lines; i++) {
        for (uint32_t k = 0; k < i % 13; k++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "w%u ", (i + k) % 7);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "\t%u\n", i % 2);
    }
    write_text(name, text);
}

static uint32_t length_of(const rp_data *data, uint32_t index) {
    return rp_data_length(data, RP_SPLIT_TRAIN, index);
}

static void quartiles_are_rounded_up(void **state) {
    (void)state;
    uint32_t even[] = {40, 10, 30, 20, 5, 6, 7, 8}; /* quartiles 6, 8, 20 */
    uint32_t same[] = {9, 9, 9, 9};
    uint32_t none[] = {0, 0};
    rp_buckets b = rp_buckets_choose(even, 8, 56);
    assert_int_equal(b.count, 2);
    assert_int_equal(b.time[0], 8);
    assert_int_equal(b.time[1], 24);
    b = rp_buckets_choose(same, 4, 56);
    assert_int_equal(b.count, 1);
    assert_int_equal(b.time[0], 16);
    assert_int_equal(rp_buckets_choose(same, 4, 16).count, 0);
    assert_int_equal(rp_buckets_choose(none, 2, 56).time[0], 8);
    assert_int_equal(rp_buckets_choose(none, 0, 56).count, 0);
}

static void a_bucket_holds_up_to_its_length(void **state) {
    (void)state;
    const rp_buckets b = {.count = 2, .time = {4, 8}};
    assert_int_equal(rp_buckets_hold(&b, 0), 4);
    assert_int_equal(rp_buckets_hold(&b, 4), 4);
    assert_int_equal(rp_buckets_hold(&b, 5), 8);
    assert_int_equal(rp_buckets_hold(&b, 9), 0);
    assert_int_equal(rp_buckets_hold(&(rp_buckets){0}, 1), 0);
}

/* Every sample once; batches of one bucket, then what is left, from short to long. */
static void expect_arranged(const rp_data *data, const uint32_t *order) {
    const uint32_t count = data->count[RP_SPLIT_TRAIN];
    bool seen[LINES] = {false};
    uint32_t in[4] = {0};
    uint32_t mixed = 0;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(order[i] < count && !seen[order[i]]);
        seen[order[i]] = true;
    }
    for (uint32_t first = 0; first < count; first += BATCH) {
        const uint32_t n = count - first < BATCH ? count - first : BATCH;
        const uint32_t time = rp_data_batch_time(data, RP_SPLIT_TRAIN, order + first, n);
        bool one = n == BATCH;
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t own = rp_buckets_hold(&data->buckets, length_of(data, order[first + i]));
            one = one && own == time;
            assert_true(time == 0 || own <= time);
        }
        mixed += !one;
        assert_true(one || first >= count / BATCH * BATCH - 3 * BATCH); /* only at the end */
        in[time == 0 ? 3 : time == 8 ? 2 : time == 5] += one;
    }
    assert_true(in[0] > 0 && in[1] > 0 && in[2] > 0 && in[3] > 0 && mixed <= 4);
}

static void arrange_epoch(const rp_data *data, uint32_t epoch, uint32_t *order) {
    uint32_t spare[LINES];
    rp_data_order(data, RP_SPLIT_TRAIN, epoch, order);
    rp_data_arrange(data, RP_SPLIT_TRAIN, BATCH, order, spare);
}

static void every_sample_once(void **state) {
    (void)state;
    uint32_t order[2][LINES];
    rp_data data;
    write_lines("train.tsv", LINES);
    expect_ok(open_data(&data, bucketed, NULL, true));
    assert_int_equal(data.buckets.count, 3);
    for (uint32_t epoch = 0; epoch < 5; epoch++) {
        arrange_epoch(&data, epoch, order[0]);
        arrange_epoch(&data, epoch, order[1]);
        assert_memory_equal(order[0], order[1], sizeof *order);
        expect_arranged(&data, order[0]);
    }
    arrange_epoch(&data, 0, order[0]);
    assert_memory_not_equal(order[0], order[1], sizeof *order);
    data.seed = 8;
    arrange_epoch(&data, 4, order[0]);
    assert_memory_not_equal(order[0], order[1], sizeof *order);
    data.shuffle = false;
    arrange_epoch(&data, 0, order[0]);
    expect_arranged(&data, order[0]);
    assert_int_equal(order[0][0], 0); /* lengths 0 1 2 3, 13 14 15 16 fill the first batch */
    assert_int_equal(order[0][3], 3);
    assert_int_equal(order[0][4], 13);
    rp_data_close(&data);
}

/* A share of several has its own samples, each once. */
static void shares(void **state) {
    (void)state;
    uint32_t order[LINES];
    uint32_t spare[LINES];
    bool seen[LINES] = {false};
    uint32_t all = 0;
    write_lines("train.tsv", LINES);
    for (uint32_t share = 0; share < 2; share++) {
        rp_data data;
        expect_ok(open_data(&data, bucketed, NULL, true));
        expect_ok(rp_data_take_share(&data, share, 2, BATCH));
        rp_data_order(&data, RP_SPLIT_TRAIN, 3, order);
        rp_data_arrange(&data, RP_SPLIT_TRAIN, BATCH, order, spare);
        for (uint32_t i = 0; i < data.count[RP_SPLIT_TRAIN]; i++, all++) {
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
        }
        rp_data_close(&data);
    }
    assert_true(all >= LINES - 1);
}

/* The batch of a feeder is that of a set without buckets, less padding. */
static void expect_batch(const rp_data *data, const rp_data *whole, const rp_batch *batch,
                         const uint32_t *index) {
    const uint32_t time = batch->time > 0 ? batch->time : TIME;
    for (uint32_t i = 0; i < batch->count; i++) {
        const int32_t *got = rp_batch_sample(data, batch, i);
        int32_t want[TIME];
        int32_t label;
        expect_ok(rp_data_batch(whole, RP_SPLIT_TRAIN, batch->epoch, &index[i], 1, true, want,
                                &label, NULL));
        assert_memory_equal(got, want, time * sizeof *want);
        for (uint32_t t = time; t < TIME; t++) {
            assert_int_equal(want[t], RP_TOKEN_PADDING);
        }
        assert_int_equal(batch->labels[i], label);
    }
}

static void feed_from(const rp_data *data, const rp_data *whole, rp_feeder_mode mode,
                      uint64_t first) {
    const uint32_t steps = (LINES - 1) / BATCH + 1;
    uint32_t order[LINES];
    rp_feeder *feeder;
    expect_ok(rp_feeder_open(&arena, data, mode, RP_SPLIT_TRAIN, true, BATCH, first, 2 * steps, 2,
                             &feeder));
    for (uint64_t step = first; step < 2 * steps; step++) {
        const rp_batch *batch = NULL;
        while (!batch) {
            const rp_err err = rp_feeder_take(feeder, &batch);
            assert_true(err == RP_OK || err == RP_ERR_AGAIN);
        }
        const uint32_t at = (uint32_t)(step % steps) * BATCH;
        arrange_epoch(data, batch->epoch, order);
        assert_int_equal(batch->step, step);
        assert_int_equal(batch->count, LINES - at < BATCH ? LINES - at : BATCH);
        expect_batch(data, whole, batch, order + at);
        rp_feeder_return(feeder, batch);
    }
    rp_feeder_close(&feeder);
}

/* From the beginning, and resumed within an epoch. */
static void batches_of_a_feeder(void **state) {
    (void)state;
    rp_data data;
    rp_data whole;
    write_lines("train.tsv", LINES);
    expect_ok(open_data(&data, bucketed, NULL, true));
    expect_ok(open_data(&whole, plain, NULL, true));
    data.workers = 3;
    feed_from(&data, &whole, RP_FEEDER_DIRECT, 0);
    feed_from(&data, &whole, RP_FEEDER_THREAD, 0);
    feed_from(&data, &whole, RP_FEEDER_THREAD, 5);
    feed_from(&data, &whole, RP_FEEDER_DIRECT, 17);
    rp_data_close(&whole);
    rp_data_close(&data);
}

/* Source and target are cut to one length; the last value of a row of labels stays the last. */
static void pairs(void **state) {
    (void)state;
    rp_feeder *feeder;
    const rp_batch *batch;
    rp_data data;
    write_text("a.en", "a b\na b\na b c d e\n");
    write_text("a.de", "x\nx y\nx\n");
    expect_ok(open_data(&data,
                        "{set: pairs, path: %, source: a.en, target: a.de, tokens: words, time: 6, "
                        "shuffle: false, buckets: [2, 3]}",
                        NULL, true));
    data.ignores = true;
    assert_int_equal(length_of(&data, 0), 2); /* a b, x <end> */
    assert_int_equal(length_of(&data, 1), 3); /* a b, x y <end> */
    assert_int_equal(length_of(&data, 2), 5);
    expect_ok(
        rp_feeder_open(&arena, &data, RP_FEEDER_DIRECT, RP_SPLIT_TRAIN, true, 2, 0, 2, 1, &feeder));
    expect_ok(rp_feeder_take(feeder, &batch)); /* nothing is full: what is left, by length */
    assert_int_equal(batch->time, 3);
    assert_int_equal(rp_batch_row_width(&data, batch), 4);
    /* a b x are 4 5 6; ties of count by name: a b x c d e y */
    const int32_t *id = batch->x;
    const int32_t a = id[0];
    const int32_t b = id[1];
    const int32_t x = id[4];
    const int32_t y = id[6 + 5];
    assert_memory_equal(id, ((const int32_t[]){a, b, 0, 2, x, 0, a, b, 0, 2, x, y}),
                        12 * sizeof *id);
    assert_memory_equal(batch->labels, ((const int32_t[]){x, 3, 0, 5, x, y, 3, 5}), 8 * sizeof *id);
    rp_feeder_return(feeder, batch);
    expect_ok(rp_feeder_take(feeder, &batch));
    assert_int_equal(batch->time, 0);
    assert_int_equal(batch->count, 1);
    assert_int_equal(rp_batch_row_width(&data, batch), 7);
    rp_feeder_close(&feeder);
    rp_data_close(&data);
}

static void choices(void **state) {
    (void)state;
    rp_data data;
    write_lines("train.tsv", LINES);
    expect_ok(open_data(&data,
                        "{set: tsv, path: %, text: 0, label: 1, tokens: words, time: 12, buckets: "
                        "auto}",
                        NULL, true));
    assert_int_equal(data.buckets.count, 1); /* quartiles 3, 6 and 9: 8, 8 and 16 */
    assert_int_equal(data.buckets.time[0], 8);
    assert_non_null(
        strstr(data.notes.text[data.notes.count - 1], "buckets of 8 and 12 tokens: an epoch has"));
    rp_data_close(&data);
    expect_ok(open_data(&data,
                        "{set: tsv, path: %, text: 0, label: 1, tokens: words, time: 12, buckets: "
                        "[4, 12]}",
                        NULL, true));
    assert_int_equal(data.buckets.count, 1); /* the longest is always there */
    rp_data_close(&data);
    expect_ok(open_data(&data,
                        "{set: tsv, path: %, text: 0, label: 1, tokens: words, time: 12, buckets: "
                        "none}",
                        NULL, true));
    assert_int_equal(data.buckets.count, 0);
    rp_data_close(&data);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *keys, *why;
    } bad[] = {
        {"[]", "expected auto, none, or a list"},
        {"some", "expected auto, none, or a list"},
        {"{a: 1}", "expected auto, none, or a list"},
        {"[4, 4]", "from 5 to 12"},
        {"[0]", "from 1 to 12"},
        {"[4, 13]", "from 5 to 12"},
        {"[1, 2, 3, 4, 5, 6, 7, 8, 9]", "at most 8 lengths below 12"},
    };
    rp_data data;
    char keys[200];
    write_lines("train.tsv", LINES);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(keys, sizeof keys,
                       "{set: tsv, path: %%, text: 0, label: 1, tokens: words, time: 12, buckets: "
                       "%s}",
                       bad[i].keys);
        expect_err(open_data(&data, keys, NULL, true), RP_ERR_USAGE);
        expect_part("buckets");
        expect_part(bad[i].why);
    }
    write_text("text.txt", "one two three four five six seven eight nine ten eleven twelve "
                           "one two three four five six seven eight nine ten eleven twelve\n");
    expect_err(open_data(&data,
                         "{set: text, path: %/text.txt, tokens: bytes, time: 4, buckets: auto}",
                         NULL, true),
               RP_ERR_USAGE);
    expect_part("the samples of text all have one length");
    expect_err(open_data(&data, "{set: glyphs, train: 10, test: 2, buckets: auto}", NULL, true),
               RP_ERR_USAGE);
    expect_part("buckets");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quartiles_are_rounded_up),
        cmocka_unit_test(a_bucket_holds_up_to_its_length),
        cmocka_unit_test_setup_teardown(every_sample_once, setup, teardown),
        cmocka_unit_test_setup_teardown(shares, setup, teardown),
        cmocka_unit_test_setup_teardown(batches_of_a_feeder, setup, teardown),
        cmocka_unit_test_setup_teardown(pairs, setup, teardown),
        cmocka_unit_test_setup_teardown(choices, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
