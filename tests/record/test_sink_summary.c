#include "folder.h"

#include "record/sink.h"

extern const rp_sink_kind rp_sink_summary;

static const rp_summary failed = {.status = "failed", .model = "m", .schedule = "gpipe"};

static void written_at_the_end(void **state) {
    (void)state;
    const rp_sink_run run = {.folder = folder};
    void *sink = NULL;
    expect_ok(rp_sink_summary.open(&arena, &run, &sink));
    assert_non_null(sink);
    assert_int_equal(access(in_folder("summary.json"), F_OK), -1);
    expect_ok(rp_sink_summary.close(sink, &failed));
    assert_non_null(strstr(slurp("summary.json", NULL), "\"status\": \"failed\""));
}

static void nothing_without_a_run(void **state) {
    (void)state;
    const rp_sink_run run = {.folder = folder};
    const rp_sink_run no_folder = {.folder = NULL};
    void *sink = NULL;
    expect_ok(rp_sink_summary.open(&arena, &no_folder, &sink));
    assert_null(sink);
    expect_ok(rp_sink_summary.open(&arena, &run, &sink));
    expect_ok(rp_sink_summary.close(sink, NULL));
    assert_int_equal(access(in_folder("summary.json"), F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_without_a_run, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
