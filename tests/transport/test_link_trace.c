/* How a line's rate, delay and loss go with time. */
#include <math.h>

#include "base/clock.h"
#include "base/log.h"
#include "expect.h"
#include "transport/trace.h"

static rp_arena arena;

static int setup(void **state) {
    (void)state;
    rp_arena_init(&arena, "test", 0);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rp_arena_finish(&arena);
    return 0;
}

static const char text[] = "10 rdl 0,8,20,0 2,0,30,0.5 4,16,40,0.25";

static const rp_link_trace *read_trace(void) {
    const rp_link_trace *trace = NULL;
    expect_ok(rp_link_trace_parse(&arena, text, &trace));
    return trace;
}

static int64_t ns_of(double seconds) {
    return (int64_t)(seconds * (double)RP_NS_PER_S);
}

static void points_hold_until_the_next_and_begin_again(void **state) {
    (void)state;
    const rp_link_trace *trace = read_trace();
    const double cases[][2] = {{0, 20},  {1.999, 20}, {2, 30},  {9.999, 40},
                               {10, 20}, {34, 40},    {-5, 20}, {1e6, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rp_trace_point *at = rp_link_trace_at(trace, ns_of(cases[i][0]));
        expect_close_at(at->delay_ms, cases[i][1], 0, 0, "delay", i, __FILE__, __LINE__);
    }
    /* 2 s at 8, 2 s at 0, 6 s at 16 */
    expect_close(rp_link_trace_mean_mbit(trace), 11.2, 1e-12, 0);
    expect_close(rp_link_trace_mean_delay_ms(trace), 34, 1e-12, 0);
    expect_close(rp_link_trace_longest_s(trace, 0), 2, 1e-12, 0);
    expect_close(rp_link_trace_longest_s(trace, 8), 4, 1e-12, 0);
    expect_close(rp_link_trace_longest_s(trace, 16), 10, 1e-12, 0);
}

static void bits_leave_at_the_rate_of_each_moment(void **state) {
    (void)state;
    const rp_link_trace *trace = read_trace();
    const struct {
        double from_s, mbit, end_s;
    } cases[] = {
        {0, 8, 1},               /* within a point */
        {1, 8, 2},               /* to its very end */
        {1, 16, 4.5},            /* over a stop */
        {2.5, 16, 5},            /* begun while nothing leaves */
        {9, 24, 11},             /* over the end of the trace */
        {0, 112, 10},            /* a whole period */
        {3, 1120 + 16, 3 + 102}, /* many periods, the same phase, and 1 s of waiting */
        {21, 11200.0 * 3, 3021}, /* .. */
        {5, 0, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t end =
            rp_link_trace_end_ns(trace, ns_of(cases[i].from_s), cases[i].mbit * 1e6);
        expect_close_at((double)end * 1e-9, cases[i].end_s, 1e-9, 1e-9, "end", i, __FILE__,
                        __LINE__);
    }
}

static void text_reads_back_equal(void **state) {
    (void)state;
    static const char *const texts[] = {text, "1 r 0,5", "3 d 0,0.1 1.5,7", "3 l 0,0.125",
                                        "0.30000000000000004 rl 0,0.1,0 0.2,3,0.9"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const rp_link_trace *trace;
        char *written;
        expect_ok(rp_link_trace_parse(&arena, texts[i], &trace));
        expect_ok(rp_link_trace_text(trace, &arena, &written));
        assert_string_equal(written, texts[i]);
    }
}

/* From a peer: each is refused, and none is believed. */
static void bad_texts_are_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "10",
        "10 ",
        "10 r",
        "10 r ",
        "10 x 0,1",
        "10  0,1",
        "10 dr 0,1,2",
        "10 r 0",
        "10 r 0,1,2",
        "10 rd 0,1",
        "10 r 0,-1",
        "10 r 0,nan",
        "10 r 0,1e7",
        "10 r 0,0",         /* never above 0 */
        "10 r 1,1",         /* begins behind 0 */
        "10 r 0,1 5,1 4,1", /* back */
        "10 r 0,1 10,1",    /* at its end */
        "nan r 0,1",
        "inf r 0,1",
        "1e9 r 0,1",
        "10 d 0,-1",
        "10 d 0,60001",
        "10 l 0,0.95",
        "10 r 0,1;5,1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const rp_link_trace *trace = NULL;
        if (rp_link_trace_parse(&arena, texts[i], &trace) != RP_ERR_FORMAT || trace) {
            fail_msg("'%s' was taken", texts[i]);
        }
    }
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(points_hold_until_the_next_and_begin_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(bits_leave_at_the_rate_of_each_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(text_reads_back_equal, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_texts_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
