#include "folder.h"

#include <math.h>

#include "record/sink.h"
#include "record/sink_tensorboard.h"

/* What TensorBoard 2.21's own writer and messages make of the same four records: file version at
 * 1000.5 s, train/loss 2.25 at step 0, train/loss 0.5 at step 300, eval/accuracy 0.875 at step 5e9
 * (times: 1001.25 s + step). */
extern const rp_sink_kind rp_sink_tensorboard; /* of the registry */

static const char official[] =
    "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x09\x00\x00\x00\x00\x00\x44\x8f\x40\x1a"
    "\x0d\x62\x72\x61\x69\x6e\x2e\x45\x76\x65\x6e\x74\x3a\x32\xab\xa3\x33\x45"
    "\x1e\x00\x00\x00\x00\x00\x00\x00\xd9\xdc\x12\x32\x09\x00\x00\x00\x00\x00\x4a\x8f\x40\x2a"
    "\x13\x0a\x11\x0a\x0a\x74\x72\x61\x69\x6e\x2f\x6c\x6f\x73\x73\x15\x00\x00\x10\x40\xf2\xb1"
    "\x67\x6b"
    "\x21\x00\x00\x00\x00\x00\x00\x00\x01\x7b\xec\xf6\x09\x00\x00\x00\x00\x00\x55\x94\x40\x10"
    "\xac\x02\x2a\x13\x0a\x11\x0a\x0a\x74\x72\x61\x69\x6e\x2f\x6c\x6f\x73\x73\x15\x00\x00\x00"
    "\x3f\x50\x5b\x40\x0e"
    "\x27\x00\x00\x00\x00\x00\x00\x00\xbb\xe1\xb1\x46\x09\x00\x00\x94\x5e\x5f\xa0\xf2\x41\x10"
    "\x80\xe4\x97\xd0\x12\x2a\x16\x0a\x14\x0a\x0d\x65\x76\x61\x6c\x2f\x61\x63\x63\x75\x72\x61"
    "\x63\x79\x15\x00\x00\x60\x3f\x14\xe6\x91\xea";
enum { OFFICIAL = sizeof official - 1, RECORD_0 = 40, RECORD_1 = 46, RECORD_2 = 49 };

/* And of this histogram at step 300: -0.5, 0, 1, 1, 2.5. */
static const char official_histogram[] =
    "\xda\x00\x00\x00\x00\x00\x00\x00\x10\xd7\x7c\xd4\x09\x00\x00\x00\x00\x00\x55\x94\x40\x10"
    "\xac\x02\x2a\xcb\x01\x0a\xc8\x01\x0a\x12\x77\x65\x69\x67\x68\x74\x73\x2f\x66\x63\x31\x2e"
    "\x77\x65\x69\x67\x68\x74\x2a\xb1\x01\x09\x00\x00\x00\x00\x00\x00\xe0\xbf\x11\x00\x00\x00"
    "\x00\x00\x00\x04\x40\x19\x00\x00\x00\x00\x00\x00\x14\x40\x21\x00\x00\x00\x00\x00\x00\x10"
    "\x40\x29\x00\x00\x00\x00\x00\x00\x21\x40\x32\x40\xb0\x31\x25\xee\x80\x91\xe0\xbf\xfa\xe5"
    "\x5a\x25\xd3\x1f\xde\xbf\x00\x00\x00\x00\x00\x00\x00\x00\x11\xea\x2d\x81\x99\x97\x71\x3d"
    "\x08\x99\x69\x19\x15\x5a\xed\x3f\x2b\x14\xfa\xcd\xbe\x24\xf0\x3f\x77\x60\x3c\x0e\x66\x08"
    "\x03\x40\xea\x36\x0f\x76\xa3\xef\x04\x40\x3a\x40\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f"
    "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f\xaa\xe5\x63\xf6";

static const char file_name[] = "events.out.tfevents.ringpipe";

static void expect_official(size_t count) {
    size_t bytes;
    const char *text = slurp(file_name, &bytes);
    assert_int_equal(bytes, count);
    assert_memory_equal(text, official, count);
}

static void bytes_are_the_official_ones(void **state) {
    (void)state;
    rp_tensorboard *board = NULL;
    expect_ok(rp_tensorboard_open(&arena, folder, 0, 1000.5, &board));
    expect_ok(rp_tensorboard_scalar(board, "train/loss", 2.25, 0, 1001.25));
    expect_ok(rp_tensorboard_scalar(board, "train/loss", 0.5, 300, 1301.25));
    expect_ok(rp_tensorboard_scalar(board, "eval/accuracy", 0.875, 5000000000, 5000001001.25));
    expect_official(OFFICIAL); /* before close */
    expect_ok(rp_sink_tensorboard.close(board, NULL));
}

static void resuming_cuts_later_steps(void **state) {
    (void)state;
    rp_tensorboard *board = NULL;
    append(file_name, official, OFFICIAL);
    append(file_name, "torn", 4);
    expect_ok(rp_tensorboard_open(&arena, folder, 5000000001, 7, &board));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    expect_official(OFFICIAL);
    expect_ok(rp_tensorboard_open(&arena, folder, 300, 7, &board));
    expect_official(RECORD_0 + RECORD_1);
    expect_ok(rp_tensorboard_scalar(board, "train/loss", 0.5, 300, 1301.25));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    expect_official(RECORD_0 + RECORD_1 + RECORD_2);
    expect_ok(rp_tensorboard_open(&arena, folder, 1, 7, &board));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    expect_official(RECORD_0 + RECORD_1);
    /* Nothing to go on with, or nothing that can be read: begins. */
    assert_int_equal(unlink(in_folder(file_name)), 0);
    expect_ok(rp_tensorboard_open(&arena, folder, 300, 1000.5, &board));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    expect_official(RECORD_0);
    assert_int_equal(unlink(in_folder(file_name)), 0);
    append(file_name, "something else that is longer than a frame", 42);
    expect_ok(rp_tensorboard_open(&arena, folder, 300, 1000.5, &board));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    expect_official(RECORD_0);
}

static void histograms_are_the_official_ones(void **state) {
    (void)state;
    static const float values[] = {-0.5f, 0, 1, 1, 2.5f};
    rp_tensorboard *board = NULL;
    double limit[RP_HISTOGRAM_BUCKETS];
    rp_histogram histogram = {0};
    size_t bytes;
    rp_histogram_limits(limit);
    rp_histogram_add(&histogram, limit, values, 5);
    expect_ok(rp_tensorboard_open(&arena, folder, 0, 1000.5, &board));
    expect_ok(rp_tensorboard_histogram(board, "weights/fc1.weight", &histogram, 300, 1301.25));
    const char *text = slurp(file_name, &bytes);
    assert_int_equal(bytes, RECORD_0 + sizeof official_histogram - 1);
    assert_memory_equal(text + RECORD_0, official_histogram, sizeof official_histogram - 1);
    expect_ok(rp_sink_tensorboard.close(board, NULL));
}

/* The longest record: all buckets, none empty, the longest tag. A resumed run reads it, too. */
static void a_full_histogram_is_read_again(void **state) {
    (void)state;
    rp_tensorboard *board = NULL;
    char tag[RP_TENSORBOARD_TAG_MAX + 1];
    rp_histogram histogram = {.count = UINT64_MAX, .min = -1, .max = 1, .sum = 1, .sum_squares = 1};
    const rp_histogram none = {.nan = 3};
    size_t bytes;
    size_t again;
    memset(tag, 'x', sizeof tag - 1);
    tag[sizeof tag - 1] = '\0';
    for (uint32_t i = 0; i < RP_HISTOGRAM_BUCKETS; i++) {
        histogram.bucket[i] = UINT64_MAX;
    }
    expect_ok(rp_tensorboard_open(&arena, folder, 0, 1000.5, &board));
    expect_ok(rp_tensorboard_histogram(board, tag, &histogram, UINT64_MAX - 1, 1301.25));
    (void)slurp(file_name, &bytes);
    assert_in_range(bytes, 16 * RP_HISTOGRAM_BUCKETS, 32768);
    expect_ok(rp_tensorboard_histogram(board, "of nothing finite", &none, 7, 1301.25));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    (void)slurp(file_name, &again);
    assert_int_equal(again, bytes);
    expect_ok(rp_tensorboard_open(&arena, folder, UINT64_MAX, 7, &board));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    (void)slurp(file_name, &again);
    assert_int_equal(again, bytes);
    expect_ok(rp_tensorboard_open(&arena, folder, UINT64_MAX - 1, 7, &board));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    expect_official(RECORD_0);
}

static void going_back_cuts_later_steps(void **state) {
    (void)state;
    rp_tensorboard *board = NULL;
    expect_ok(rp_tensorboard_open(&arena, folder, 0, 1000.5, &board));
    expect_ok(rp_tensorboard_scalar(board, "train/loss", 2.25, 0, 1001.25));
    expect_ok(rp_tensorboard_scalar(board, "train/loss", 7, 300, 1301.25));
    expect_ok(rp_tensorboard_scalar(board, "train/loss", 7, 301, 1302.25));
    expect_ok(rp_sink_tensorboard.rewind(board, 300));
    expect_official(RECORD_0 + RECORD_1);
    expect_ok(rp_tensorboard_scalar(board, "train/loss", 0.5, 300, 1301.25));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    expect_official(RECORD_0 + RECORD_1 + RECORD_2);
}

static void odd_values(void **state) {
    (void)state;
    rp_tensorboard *board = NULL;
    char tag[1000];
    memset(tag, 'x', sizeof tag - 1);
    tag[sizeof tag - 1] = '\0';
    expect_ok(rp_tensorboard_open(&arena, folder, 0, 1000.5, &board));
    expect_ok(rp_tensorboard_scalar(board, tag, NAN, UINT64_MAX, INFINITY));
    expect_ok(rp_sink_tensorboard.close(board, NULL));
    board = NULL;
    expect_err(rp_tensorboard_open(&arena, in_folder("none"), 0, 1, &board), RP_ERR_IO);
    expect_err(rp_tensorboard_open(&arena, in_folder("none"), 1, 1, &board), RP_ERR_IO);
    assert_null(board);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_the_official_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(resuming_cuts_later_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(histograms_are_the_official_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_histogram_is_read_again, setup, teardown),
        cmocka_unit_test_setup_teardown(going_back_cuts_later_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(odd_values, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
