/* Traces of lines from files: CSV and Mahimahi, and what is wrong with others. */
#include "folder.h"

#include "base/log.h"
#include "run/tracefile.h"

/* As text: see rp_link_trace_text(). */
static void check_file(const char *text, const char *want) {
    const rp_link_trace *trace;
    char *got;
    expect_ok(rp_tracefile_read(&arena, write_file("line.trace", text, strlen(text)), &trace));
    expect_ok(rp_link_trace_text(trace, &arena, &got));
    assert_string_equal(got, want);
}

static void csv_with_and_without_names(void **state) {
    (void)state;
    check_file("0,10\n5,2.5\n", "10 r 0,10 5,2.5");
    check_file("0,10,20\n5,2.5,30\n8,1,40\n", "11 rd 0,10,20 5,2.5,30 8,1,40");
    check_file("0,10,20,0.1\n", "1 rdl 0,10,20,0.1");
    check_file("\xef\xbb\xbf"
               "time_s,rate_mbit\n0,10\n",
               "1 r 0,10");
    check_file("# a walk\n\ntime_s, delay_ms\r\n100, 20\r\n 103 ,\t30 \r\n", "6 d 0,20 3,30");
    check_file("loss,time_s,rate_mbit\n0.5,0,10\n0.25,4,20", "8 rl 0,10,0.5 4,20,0.25");
}

/* 50 packets of 12,000 bits in 20 ms are 30 Mbit/s; the last slot ends with the trace. */
static void mahimahi_counts_packets(void **state) {
    (void)state;
    char text[4096];
    size_t used = 0;
    for (int i = 0; i < 50; i++) { /* .. from 0 on */
        used += (size_t)snprintf(text + used, sizeof text - used, "%d\n", i * 2 / 5);
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "60\n61\n70\n");
    text[used] = '\0';
    check_file(text, "0.07 r 0,30 0.02,0 0.06,3.6");
    check_file("1\n", "0.001 r 0,12");
}

/* One packet a millisecond for 400 s: slots become longer, the rate stays. */
static void long_traces_fit(void **state) {
    (void)state;
    enum { LINES = 400000, EACH = 8 };
    const rp_link_trace *trace;
    char *text;
    size_t used = 0;
    expect_ok(RP_ARENA_NEW(&arena, (size_t)LINES * EACH, &text));
    for (int i = 1; i <= LINES; i++) {
        const int at = i % 40 < 20 ? i : i / 40 * 40 + 20; /* not all slots are the same */
        used += (size_t)snprintf(text + used, (size_t)LINES * EACH - used, "%d\n", at);
    }
    expect_ok(rp_tracefile_read(&arena, write_file("line.trace", text, used), &trace));
    assert_in_range(trace->count, 8000, RP_TRACE_POINTS_MAX);
    expect_close(trace->period_s, LINES * 1e-3, 1e-9, 0);
    expect_close(rp_link_trace_mean_mbit(trace), 12, 1e-9, 0);
}

static void check_wrong(const char *text, size_t bytes, const char *says) {
    const rp_link_trace *trace = NULL;
    const rp_err err = rp_tracefile_read(&arena, write_file("line.trace", text, bytes), &trace);
    if (err != RP_ERR_USAGE || trace || !strstr(rp_err_message(), says)) {
        fail_msg("'%.40s': %d '%s' does not say '%s'", text, (int)err, rp_err_message(), says);
    }
}

static void what_is_wrong_has_its_line(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "the trace is empty; expected times"},
        {"# nothing\n", "the trace is empty; expected times"},
        {"0,10\n5,-3\n", ":2: the rate is not from 0"},
        {"0,10\n5,nan\n", ":2: expected 2 numbers"},
        {"0,10\n\n5\n", ":3: expected 2 numbers with commas between them, found '5'"},
        {"0,10\n5,1,\n", ":2: expected 2 numbers"},
        {"0,10\n5,1,2\n", ":2: expected 2 numbers"},
        {"0,10\n5,ten\n", ":2: expected 2 numbers"},
        {"0,1,2,3,4,5\n", ":1: expected 4 numbers"},
        {"0,10\n5,1\n4,1\n", ":3: expected times that ascend, found '4,1'"},
        {"0,10\n5,1\n5,1\n", ":3: expected times that ascend"},
        {"0,10\n0.0001,1\n", ":1: the times do not ascend by 0.001 s at least"},
        {"0,10\n100000,1\n", ":2: expected a trace of at most a day"},
        {"0,0\n5,0\n", "its rate is never above 0"},
        {"0,1,-1\n", ":1: the delay is not from 0 to 60000 ms"},
        {"time_s,rate_mbit,delay_ms,loss\n0,1,1,1\n", ":2: the loss is not from 0 to 0.9"},
        {"time_s,rate\n0,1\n", ":1: expected names of columns: time_s and some of rate_mbit"},
        {"time_s,rate_mbit,rate_mbit\n", ":1: expected names of columns"},
        {"rate_mbit\n5\n", ":1: expected names of columns"},
        {"time_s,rate_mbit\n", ":1: expected a line of numbers after the names"},
        {"5\n4\n", ":2: expected times that do not go back, found '4'"},
        {"5\n4.5\n", ":2: expected a whole number of milliseconds, found '4.5'"},
        {"5\n-7\n", ":2: expected a whole number of milliseconds"},
        {"0\n0\n", ":2: expected a last time above 0"},
        {"5\n99999999\n", ":2: expected a trace of at most a day"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_wrong(cases[i][0], strlen(cases[i][0]), cases[i][1]);
    }
    check_wrong("0,1\n\0,2\n", 8, ":2: ");
    char line[600];
    memset(line, '1', sizeof line);
    check_wrong(line, sizeof line, ":1: expected lines of at most 254 bytes");
}

/* A file that is no trace is not read through. */
static void huge_files_are_refused(void **state) {
    (void)state;
    const rp_link_trace *trace;
    const char *path = write_file("line.trace", "1\n", 2);
    assert_int_equal(truncate(path, (off_t)RP_TRACEFILE_BYTES_MAX + 1), 0);
    expect_err(rp_tracefile_read(&arena, path, &trace), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "has 67108865 bytes, expected a trace of at most"));
    expect_err(rp_tracefile_read(&arena, folder, &trace), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "expected a regular file"));
    expect_err(rp_tracefile_read(&arena, in_folder("nothing"), &trace), RP_ERR_USAGE);
    assert_non_null(strstr(rp_err_message(), "No such file"));
}

int main(void) {
    rp_log_setup(RP_LOG_ERROR, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(csv_with_and_without_names, setup, teardown),
        cmocka_unit_test_setup_teardown(mahimahi_counts_packets, setup, teardown),
        cmocka_unit_test_setup_teardown(long_traces_fit, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_has_its_line, setup, teardown),
        cmocka_unit_test_setup_teardown(huge_files_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
