#include "folder.h"

#include <jansson.h>
#include <sys/stat.h>

#include "record/sink_trace.h"

enum { BOUND = 64 << 20 };

static const char head[] =
    "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":"
    "{\"name\":\"stage 1\"}},\n"
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":"
    "{\"name\":\"send\\\"\"}},\n";
static const char forward_0[] =
    "{\"ph\":\"X\",\"name\":\"F\",\"cat\":\"op\",\"pid\":1,\"tid\":0,\"ts\":1.500,\"dur\":2000.001,"
    "\"args\":{\"step\":0,\"first\":32,\"count\":16}},\n";
static const char forward_1[] = "{\"ph\":\"X\",\"name\":\"F\",\"cat\":\"op\",\"pid\":1,\"tid\":0,"
                                "\"ts\":3000.000,\"dur\":10.000,"
                                "\"args\":{\"step\":1,\"first\":0,\"count\":16}},\n";
static const char end[] = "{\"ph\":\"M\",\"name\":\"trace_end\",\"pid\":0,\"tid\":0}\n]\n";

static rp_trace *write_some(void) {
    rp_trace *trace = NULL;
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 1000000, 0, BOUND, &trace));
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
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 50000000000, 1, BOUND, &trace));
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
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 0, BOUND, &trace));
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
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 0, BOUND, &trace));
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
    assert_non_null(strstr(text,
                           "{\"ph\":\"s\",\"name\":\"gradient\\\" 0 to 1\",\"pid\":0,\"tid\":0,"
                           "\"ts\":4.999,\"step\":0,\"cat\":\"flow\","));
    assert_non_null(strstr(text,
                           "{\"ph\":\"f\",\"name\":\"gradient\\\" 0 to 1\",\"pid\":1,\"tid\":0,"
                           "\"ts\":7.000,\"step\":1,\"bp\":\"e\","));
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 1, BOUND, &trace));
    expect_ok(rp_trace_close(&trace));
    expect_json(6 + 1);
}

static uint64_t size_of_trace(void) {
    struct stat facts;
    assert_int_equal(stat(in_folder("trace.json"), &facts), 0);
    return (uint64_t)facts.st_size;
}

static rp_err add_op(rp_trace *trace, uint64_t step) {
    const rp_trace_event event = {.stage = 1,
                                  .name = "forward",
                                  .category = "training",
                                  .start_ns = (int64_t)step * 1000,
                                  .duration_ns = 500,
                                  .step = step,
                                  .count = 16};
    return rp_trace_add(trace, &event);
}

/* The step that a line of the picture belongs to. */
static uint64_t step_of(const json_t *event) {
    const json_t *step = json_object_get(event, "step");
    step = step ? step : json_object_get(json_object_get(event, "args"), "step");
    assert_true(json_is_integer(step));
    return (uint64_t)json_integer_value(step);
}

/* Names first, the mark, then one op a step up to the newest; returns the first that is there. */
static uint64_t expect_newest(uint64_t last) {
    size_t bytes;
    const char *text = slurp("trace.json", &bytes);
    json_t *array = json_loadb(text, bytes, 0, NULL);
    assert_non_null(array);
    const size_t count = json_array_size(array);
    assert_true(count > 100);
    assert_string_equal(json_string_value(json_object_get(json_array_get(array, 0), "name")),
                        "process_name");
    const json_t *mark = json_array_get(array, 2);
    assert_string_equal(json_string_value(json_object_get(mark, "name")),
                        "earlier events are left out");
    const uint64_t first = step_of(mark);
    assert_int_equal(json_real_value(json_object_get(mark, "ts")), first);
    for (size_t i = 3; i + 1 < count; i++) {
        assert_int_equal(step_of(json_array_get(array, i)), first + i - 3);
    }
    assert_int_equal(first + count - 5, last);
    json_decref(array);
    return first;
}

enum { MANY = 20000 }; /* some 2.5 MB of lines */

static void at_the_bound_the_newest_stay(void **state) {
    (void)state;
    rp_trace *trace = NULL;
    uint64_t largest = 0;
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 0, 1, &trace));
    expect_ok(rp_trace_name_stage(trace, 1, "board 1"));
    expect_ok(rp_trace_name_lane(trace, 1, 0, "device"));
    for (uint64_t step = 0; step < MANY; step++) {
        expect_ok(add_op(trace, step));
        const uint64_t now = size_of_trace();
        largest = now > largest ? now : largest;
    }
    expect_ok(rp_trace_close(&trace));
    assert_true(largest <= RP_TRACE_BYTES_MIN);
    assert_true(largest > RP_TRACE_BYTES_MIN * 9 / 10); /* what is allowed is used */
    assert_true(size_of_trace() <= RP_TRACE_BYTES_MIN);
    assert_true(size_of_trace() > RP_TRACE_BYTES_MIN / 3);
    const uint64_t first = expect_newest(MANY - 1);
    assert_true(first > MANY / 2);
    assert_int_equal(access(in_folder("trace.json.tmp"), F_OK), -1);
    /* A resumed run takes events back as ever. */
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, first + 10, BOUND, &trace));
    expect_ok(rp_trace_close(&trace));
    expect_json(1 + 10 + 1);
}

/* Of a run that had a higher bound, or none. */
static void a_longer_file_is_made_shorter(void **state) {
    (void)state;
    rp_trace *trace = NULL;
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 0, BOUND, &trace));
    for (uint64_t step = 0; step < MANY; step++) {
        expect_ok(add_op(trace, step));
    }
    expect_ok(rp_trace_close(&trace));
    assert_true(size_of_trace() > 2 * RP_TRACE_BYTES_MIN);
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, MANY, 1, &trace));
    expect_ok(rp_trace_name_stage(trace, 1, "board 1"));
    expect_ok(rp_trace_close(&trace));
    assert_true(size_of_trace() <= RP_TRACE_BYTES_MIN);
    assert_non_null(strstr(slurp("trace.json", NULL), "board 1"));
}

/* No room for the newest part: the file begins anew, the bound holds, and later lines follow. */
static void without_room_it_begins_anew(void **state) {
    (void)state;
    rp_trace *trace = NULL;
    uint32_t errors = 0;
    expect_ok(rp_trace_open(&arena, in_folder("trace.json"), 0, 0, 1, &trace));
    assert_int_equal(symlink("/dev/full", in_folder("trace.json.tmp")), 0);
    for (uint64_t step = 0; step < MANY; step++) {
        const rp_err err = add_op(trace, step);
        assert_true(err == RP_OK || err == RP_ERR_IO);
        errors += err != RP_OK;
        assert_true(size_of_trace() <= RP_TRACE_BYTES_MIN);
    }
    assert_int_equal(errors, 2);
    assert_int_equal(unlink(in_folder("trace.json.tmp")), 0);
    expect_ok(add_op(trace, MANY));
    expect_ok(rp_trace_close(&trace));
    size_t bytes;
    const char *text = slurp("trace.json", &bytes);
    json_t *array = json_loadb(text, bytes, 0, NULL);
    assert_non_null(array);
    assert_int_equal(step_of(json_array_get(array, json_array_size(array) - 2)), MANY);
    json_decref(array);
}

static void bad_targets(void **state) {
    (void)state;
    rp_trace *trace = NULL;
    expect_err(rp_trace_open(&arena, in_folder("none/trace.json"), 0, 0, BOUND, &trace), RP_ERR_IO);
    assert_null(trace);
    if (access("/dev/full", W_OK) == 0) {
        expect_ok(rp_trace_open(&arena, "/dev/full", 0, 0, BOUND, &trace));
        expect_err(rp_trace_close(&trace), RP_ERR_IO);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(closed_file_is_json, setup, teardown),
        cmocka_unit_test_setup_teardown(resuming_goes_on_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(many_events_in_whole_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(other_events_know_their_step, setup, teardown),
        cmocka_unit_test_setup_teardown(at_the_bound_the_newest_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(a_longer_file_is_made_shorter, setup, teardown),
        cmocka_unit_test_setup_teardown(without_room_it_begins_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_targets, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
