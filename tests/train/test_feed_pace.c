/* How far ahead a board is fed, against a model of a path and a board. */
#include "expect.h"

#include "train/feed_pace.h"

enum { PARCELS = 4096 };
static const int64_t MS = 1000000;

/* A parcel takes `wire` on the line, one behind the other, and `delay` more each way; the board
 * takes one every `op`. */
typedef struct {
    int64_t delay, wire, op;
    int64_t arrived[PARCELS], taken[PARCELS];
    int64_t line, board; /* free again */
    uint64_t sent;
    rp_feed_pace pace;
} path;

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void send_parcels(path *p, int64_t now) {
    while (p->sent < PARCELS && rp_feed_pace_may_send(&p->pace)) {
        rp_feed_pace_sent(&p->pace, now);
        p->line = later(p->line, now) + p->wire;
        p->arrived[p->sent] = p->line + p->delay;
        p->board = later(p->board, p->arrived[p->sent]) + p->op;
        p->taken[p->sent] = p->board - p->op;
        p->sent++;
    }
}

static uint64_t not_yet(const path *p, const int64_t *at, int64_t now) {
    uint64_t count = 0;
    for (uint64_t i = p->sent; i-- > 0 && at[i] + p->delay > now;) {
        count++;
    }
    return count;
}

/* Parcels that the board takes from `from` to `until`. */
static uint64_t run_path(path *p, int64_t from, int64_t until) {
    uint64_t count = 0;
    for (int64_t now = from; now < until; now += MS / 4) {
        rp_feed_pace_heard(&p->pace, not_yet(p, p->arrived, now), not_yet(p, p->taken, now), now);
        send_parcels(p, now);
    }
    for (uint64_t i = 0; i < p->sent; i++) {
        count += p->taken[i] >= from && p->taken[i] < until;
    }
    return count;
}

static path near, far, slow_line, slow_board; /* large for a stack */

static void start(path *p, int64_t delay, int64_t wire, int64_t op, uint32_t most) {
    *p = (path){.delay = delay, .wire = wire, .op = op};
    rp_feed_pace_start(&p->pace, most, 0);
}

static void a_near_board_gets_no_more_than_before(void **state) {
    (void)state;
    start(&near, MS / 10, MS / 10, 5 * MS, 200);
    assert_true(run_path(&near, 0, 2000 * MS) >= 390); /* of 400 */
    assert_int_equal(near.pace.ahead, RP_FEED_PACE_LEAST);
}

/* 50 ms away, and an op takes 5 ms: 20 parcels travel or are on their way back. */
static void a_far_board_is_kept_busy(void **state) {
    (void)state;
    start(&far, 50 * MS, MS / 10, 5 * MS, 200);
    (void)run_path(&far, 0, 3000 * MS);
    assert_true(run_path(&far, 3000 * MS, 6000 * MS) >= 590); /* of 600 */
    assert_in_range(far.pace.ahead, 12, 60);
}

static void a_far_and_slow_board_is_not_fed_for_minutes(void **state) {
    (void)state;
    start(&slow_board, 50 * MS, MS / 10, 500 * MS, 200);
    assert_true(run_path(&slow_board, 0, 20000 * MS) >= 39); /* of 40 */
    assert_int_equal(slow_board.pace.ahead, RP_FEED_PACE_LEAST);
}

/* The line is full at 12 parcels; more would only wait in front of it. */
static void a_slow_line_is_full_and_no_more(void **state) {
    (void)state;
    start(&slow_line, 50 * MS, 10 * MS, MS, 500);
    (void)run_path(&slow_line, 0, 3000 * MS);
    assert_true(run_path(&slow_line, 3000 * MS, 23000 * MS) >= 1900); /* of 2000 */
    assert_in_range(slow_line.pace.ahead, 8, 30);
}

static void what_the_far_end_takes_is_the_most(void **state) {
    (void)state;
    start(&far, 50 * MS, MS / 10, 5 * MS, 8);
    (void)run_path(&far, 0, 3000 * MS);
    assert_int_equal(far.pace.ahead, 8);
    rp_feed_pace_start(&far.pace, 3, 0);
    assert_int_equal(far.pace.ahead, 3);
    rp_feed_pace_start(&far.pace, 1u << 20, 4);
    assert_int_equal(far.pace.ahead, RP_FEED_PACE_LEAST + 4);
    assert_int_equal(far.pace.most, RP_FEED_PACE_MOST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_near_board_gets_no_more_than_before),
        cmocka_unit_test(a_far_board_is_kept_busy),
        cmocka_unit_test(a_far_and_slow_board_is_not_fed_for_minutes),
        cmocka_unit_test(a_slow_line_is_full_and_no_more),
        cmocka_unit_test(what_the_far_end_takes_is_the_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
