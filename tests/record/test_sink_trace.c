#include "folder.h"

#include <jansson.h>

#include "record/sink_trace.h"

static const char head[] =
    "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":"
    "{\"name\":\"stage 1\"}},\n"
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":"
    "{\"name\":\"send_\"}},\n";
static const char forward_0[] =
    "{\"ph\":\"X\",\"name\":\"F\",\"cat\":\"op\",\"pid\":1,\"tid\":0,\"ts\":1.500,\"dur\":2000.001,"
    "\"args\":{\"step\":0,\"first\":32,\"count\":16}},\n";
static const char forward_1[] = "{\"ph\":\"X\",\"name\":\"F\",\"cat\":\"op\",\"pid\":1,\"tid\":0,"
                                "\"ts\":3000.000,\"dur\":10.000,"
                                "\"args\":{\"step\":1,\"first\":0,\"count\":16}},\n";
static const char end[] = "{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"tid\":0}\n]\n";

static rp_trace *write_some(void) {
    rp_trace *trace = NULL;
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 1000000, 0, &trace));
    expect_ok(rp_trace_name_stage(trace, 1, "stage 1"));
    expect_ok(rp_trace_name_lane(trace, 1, 2, "send\""));
    rp_trace_event event = {.stage = 1,
                            .name = "F",
                            .category = "op",
                            .start_ns = 1001500,
                            .duration_ns = 2000001,
                            .step = 0,
                            .first = 32,
                            .count = 16};
    expect_ok(rp_trace_add(trace, &event));
    event.step = 1;
    event.first = 0;
    event.start_ns = 4000000;
    event.duration_ns = 10000;
    expect_ok(rp_trace_add(trace, &event));
    return trace;
}

static void expect_text(const char *a, const char *b, const char *c, const char *d) {
    char want[4096];
    (void)snprintf(want, sizeof want, "%s%s%s%s", a, b, c, d);
    assert_string_equal(slurp("trace.json", NULL), want);
}

static void expect_json(size_t events) {
    size_t bytes;
    const char *text = slurp("trace.json", &bytes);
    json_t *array = json_loadb(text, bytes, 0, NULL);
    assert_non_null(array);
    assert_int_equal(json_array_size(array), events);
    json_decref(array);
}

static void closed_file_is_json(void **state) {
    (void)state;
    rp_trace *trace = write_some();
    expect_ok(rp_trace_flush(trace));
    expect_text(head, forward_0, forward_1, ""); /* what a killed run leaves */
    expect_ok(rp_trace_close(&trace));
    expect_ok(rp_trace_close(&trace));
    expect_text(head, forward_0, forward_1, end);
    expect_json(5);
}

static void resuming_goes_on_behind(void **state) {
    (void)state;
    rp_trace *trace = write_some();
    expect_ok(rp_trace_close(&trace));
    append("trace.json", "{\"ph\":\"X\",\"args\":{\"step\":0,\"ts\":1,\"dur\":1}", 40); /* torn */
    /* The end of step 0 is at 2001.501 us; a new clock begins at 50 s. */
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 50000000000, 1, &trace));
    const rp_trace_event event = {.stage = 1,
                                  .name = "F",
                                  .category = "op",
                                  .start_ns = 50000998499,
                                  .duration_ns = 10000,
                                  .step = 1,
                                  .count = 16};
    expect_ok(rp_trace_add(trace, &event));
    expect_ok(rp_trace_close(&trace));
    const char *text = slurp("trace.json", NULL);
    assert_non_null(strstr(text, forward_0));
    assert_non_null(strstr(text, forward_1));
    expect_json(3);
    assert_int_equal(access(in_folder("trace.json.tmp"), F_OK), -1);
}

static void many_events_in_whole_lines(void **state) {
    (void)state;
    rp_trace *trace = NULL;
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 0, &trace));
    char name[300];
    memset(name, '"', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (uint64_t i = 0; i < 2000; i++) {
        const rp_trace_event event = {.stage = UINT32_MAX,
                                      .lane = UINT32_MAX,
                                      .name = name,
                                      .category = name,
                                      .start_ns = i % 2 ? -5 : INT64_MAX,
                                      .duration_ns = i % 2 ? -5 : INT64_MAX,
                                      .step = INT64_MAX,
                                      .first = UINT32_MAX,
                                      .count = UINT32_MAX};
        expect_ok(rp_trace_add(trace, &event));
    }
    size_t bytes;
    const char *text = slurp("trace.json", &bytes); /* without flush: some, but whole lines */
    assert_true(bytes > 100000);
    assert_int_equal(text[bytes - 1], '\n');
    expect_ok(rp_trace_close(&trace));
    expect_json(2001);
}

/* Arrows, counters and marks are taken back with their steps, too. */
static void other_events_know_their_step(void **state) {
    (void)state;
    rp_trace *trace = NULL;
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 0, &trace));
    for (uint64_t step = 0; step < 2; step++) {
        const rp_sink_transfer transfer = {.from = 0,
                                           .to = 1,
                                           .carries = "gradient\"",
                                           .step = step,
                                           .samples = {8, 8},
                                           .start_ns = 5000,
                                           .end_ns = 7000};
        expect_ok(rp_trace_transfer(trace, 1, &transfer));
        expect_ok(rp_trace_count(trace, 1, "in flight", "microbatches", 3, 1000, step));
        expect_ok(rp_trace_mark(trace, "step", -5, step));
    }
    expect_ok(rp_trace_close(&trace));
    expect_json(2 * 6 + 1);
    const char *text = slurp("trace.json", NULL);
    assert_non_null(strstr(text, "{\"ph\":\"s\",\"name\":\"gradient_ 0 to 1\",\"pid\":0,\"tid\":0,"
                                 "\"ts\":4.999,\"step\":0,\"cat\":\"flow\","));
    assert_non_null(strstr(text, "{\"ph\":\"f\",\"name\":\"gradient_ 0 to 1\",\"pid\":1,\"tid\":0,"
                                 "\"ts\":7.000,\"step\":1,\"bp\":\"e\","));
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 1, &trace));
    expect_ok(rp_trace_close(&trace));
    expect_json(6 + 1);
}

static void bad_targets(void **state) {
    (void)state;
    rp_trace *trace = NULL;
    expect_err(rp_trace_open(&arena, in_folder("none/trace.json"), 0, 0, &trace), RP_ERR_IO);
    assert_null(trace);
    if (access("/dev/full", W_OK) == 0) {
        expect_ok(rp_trace_open(&arena, "/dev/full", 0, 0, &trace));
        expect_err(rp_trace_close(&trace), RP_ERR_IO);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(closed_file_is_json, setup, teardown),
        cmocka_unit_test_setup_teardown(resuming_goes_on_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(many_events_in_whole_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(other_events_know_their_step, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_targets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
