/* What acks say of a wire. */
#include "link/pace.h"

#include "base/clock.h"
#include "expect.h"

#define MS RP_NS_PER_MS

/* 10 kB each 10 ms arrive, however far it is, when the wire is full: 1 MB/s. */
static void a_full_wire_shows_its_rate(void **state) {
    (void)state;
    for (int64_t far_ms = 0; far_ms <= 200; far_ms += 100) {
        enum { WINDOW = 40, ALL = 400 };
        rp_pace pace = {0};
        rp_pace_mark mark[ALL];
        int acked = 0;
        for (int i = 0; i < WINDOW; i++) { /* a burst: no speed */
            rp_pace_sent(&pace, &mark[i], i == 0, 0);
        }
        for (int i = WINDOW; acked < ALL; i++) {
            const int64_t now = (acked + 1) * 10 * MS + far_ms * MS;
            rp_pace_acked(&pace, &mark[acked++], 10000, true, now);
            if (i < ALL) {
                rp_pace_sent(&pace, &mark[i], false, now);
            }
        }
        expect_close(rp_pace_rate(&pace), 1e6, 0.08, 0);
    }
}

/* Acks that a receiver held back come at once: no speed either. */
static void acks_in_a_burst_are_no_speed(void **state) {
    (void)state;
    rp_pace pace = {0};
    rp_pace_mark mark[8];
    for (int i = 0; i < 8; i++) {
        rp_pace_sent(&pace, &mark[i], i == 0, i * 100 * MS);
    }
    for (int i = 0; i < 8; i++) {
        rp_pace_acked(&pace, &mark[i], 10000, true, 1000 * MS);
    }
    assert_true(rp_pace_rate(&pace) > 0 && rp_pace_rate(&pace) <= 80e3); /* 80 kB in a second */
}

static void what_says_nothing_is_not_known(void **state) {
    (void)state;
    rp_pace pace = {0};
    rp_pace_mark mark;
    assert_int_equal(rp_pace_delay_ns(&pace, 0.5), 0);
    for (int i = 0; i < 9; i++) {
        const bool alone = i >= 6;                        /* of which time is the ack? */
        const int64_t took = i % 3 == 0 ? 10 : 500 * MS;  /* too short a time */
        const uint64_t bytes = i % 3 == 1 ? 10 : 1000000; /* too few */
        rp_pace_sent(&pace, &mark, true, 0);
        rp_pace_acked(&pace, &mark, bytes, alone, took);
    }
    expect_close(rp_pace_rate(&pace), 0, 0, 0); /* one sample is left */
    assert_int_equal(pace.delays, 3);
}

/* A wire that has become slow, or fast, shows in the samples since then. */
static void late_samples_are_those_since_the_begin(void **state) {
    (void)state;
    rp_pace pace = {0};
    int64_t now = 0;
    for (int i = 0; i < 60; i++) {
        rp_pace_mark mark;
        if (i == 30) {
            expect_close(rp_pace_late_rate(&pace), 1e6, 1e-9, 0);
            rp_pace_begin(&pace);
            expect_close(rp_pace_late_rate(&pace), 0, 0, 0);
        }
        rp_pace_sent(&pace, &mark, true, now);
        now += i < 30 ? 100 * MS : 1000 * MS;
        rp_pace_acked(&pace, &mark, 100000, true, now);
    }
    expect_close(rp_pace_rate(&pace), 1e6, 1e-9, 0);
    expect_close(rp_pace_late_rate(&pace), 1e5, 1e-9, 0);
}

static void delays_have_their_shares(void **state) {
    (void)state;
    rp_pace pace = {0};
    for (int64_t i = 1; i <= 100; i++) {
        rp_pace_mark mark;
        rp_pace_sent(&pace, &mark, true, 0);
        rp_pace_acked(&pace, &mark, 1, true, i * MS);
    }
    assert_in_range(rp_pace_delay_ns(&pace, 0.5), 50 * MS, 60 * MS);
    assert_in_range(rp_pace_delay_ns(&pace, 0.95), 95 * MS, 114 * MS);
    rp_pace_mark mark;
    rp_pace_sent(&pace, &mark, true, 0);
    rp_pace_acked(&pace, &mark, 1, true, INT64_MAX); /* it has an end */
    assert_true(rp_pace_delay_ns(&pace, 1) > 60 * RP_NS_PER_S);
    assert_int_equal(rp_pace_delay_ns(&pace, 0), 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_wire_shows_its_rate),
        cmocka_unit_test(acks_in_a_burst_are_no_speed),
        cmocka_unit_test(what_says_nothing_is_not_known),
        cmocka_unit_test(late_samples_are_those_since_the_begin),
        cmocka_unit_test(delays_have_their_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
