#include "run_folder.h"

#include "base/clock.h"
#include "view/stream.h"

static rp_view_feed feed;
static char sent[1 << 20];

static void begin_feed(void) {
    (void)unlink(in_folder("log.jsonl"));
    feed = (rp_view_feed){.run = run_here()};
    rp_arena_init(&feed.arena, "run", 0);
    write_plan();
}

/* All that the stream has now, in pieces of `most` bytes. */
static const char *take_all(rp_view_stream *stream, int64_t now_ns, size_t most) {
    size_t used = 0;
    size_t got;
    rp_view_feed_follow(&feed);
    while ((got = rp_view_stream_take(stream, now_ns, sent + used, most)) > 0) {
        used += got;
        assert_true(used + most < sizeof sent);
    }
    sent[used] = '\0';
    return sent;
}

static uint32_t count_of(const char *text, const char *what) {
    uint32_t count = 0;
    for (; (text = strstr(text, what)); text++) {
        count++;
    }
    return count;
}

static rp_view_stream *open_stream(uint64_t last_id) {
    rp_view_stream *stream;
    expect_ok(rp_view_stream_open(&feed, last_id, 1, &stream));
    return stream;
}

static void a_reader_gets_all_lines_once(void **state) {
    (void)state;
    begin_feed();
    add_steps(1, 10);
    rp_view_feed_update(&feed, 1);
    rp_view_stream *stream = open_stream(0);
    assert_int_equal(feed.readers, 1);
    assert_true(rp_view_stream_has_news(stream, 1));
    const char *text = take_all(stream, 1, 7); /* a reader that takes little at a time */
    assert_int_equal(count_of(text, "event: hello\ndata: {\"generation\":"), 1);
    assert_int_equal(count_of(text, "event: state\ndata: {\"run\":\"a run\","), 1);
    assert_int_equal(count_of(text, "id: "), 10);
    assert_non_null(strstr(text, "id: 10\ndata: {\"step\":10,"));
    assert_false(rp_view_stream_has_news(stream, 2));
    assert_string_equal(take_all(stream, 2, 4096), "");
    add_steps(11, 12);
    rp_view_feed_follow(&feed);
    assert_true(rp_view_stream_has_news(stream, 3));
    text = take_all(stream, 3, 4096);
    assert_int_equal(count_of(text, "id: "), 2);
    assert_ptr_equal(strstr(text, "id: 11\ndata: {\"step\":11,"), text);
    rp_view_stream_close(stream);
    assert_int_equal(feed.readers, 0);
    rp_arena_finish(&feed.arena);
}

static void a_reader_continues_after_its_last_line(void **state) {
    (void)state;
    begin_feed();
    add_steps(1, 300);
    rp_view_feed_update(&feed, 1);
    rp_view_stream *stream = open_stream(120);
    const char *text = take_all(stream, 1, 4096);
    assert_int_equal(count_of(text, "id: "), 180);
    assert_null(strstr(text, "id: 120\n"));
    assert_non_null(strstr(text, "id: 121\ndata: {\"step\":121,"));
    rp_view_stream_close(stream);
    stream = open_stream(301); /* the log was rewritten since: everything again */
    assert_int_equal(count_of(take_all(stream, 1, 4096), "id: "), 300);
    rp_view_stream_close(stream);
    rp_arena_finish(&feed.arena);
}

static void a_log_that_is_rewritten_is_sent_again(void **state) {
    (void)state;
    begin_feed();
    add_steps(1, 30);
    rp_view_feed_update(&feed, 1);
    rp_view_stream *stream = open_stream(0);
    assert_int_equal(count_of(take_all(stream, 1, 4096), "id: "), 30);
    assert_int_equal(rename(in_folder("log.jsonl"), in_folder("old")), 0);
    add_steps(1, 20);
    const char *text = take_all(stream, 2, 4096);
    assert_int_equal(count_of(text, "event: hello\n"), 1);
    assert_int_equal(count_of(text, "id: "), 20);
    rp_view_stream_close(stream);
    rp_arena_finish(&feed.arena);
}

static void a_long_log_is_thinned_but_has_all_events(void **state) {
    static const char event[] = "{\"event\":\"hint\",\"step\":1,\"time_s\":1,\"text\":\"x\"}\n";
    (void)state;
    begin_feed();
    for (uint32_t i = 0; i < 10; i++) {
        append("log.jsonl", event, sizeof event - 1);
        add_steps(1000 * i + 1, 1000 * i + 1000);
    }
    rp_view_feed_update(&feed, 1);
    rp_view_stream *stream = open_stream(0);
    const char *text = take_all(stream, 1, 4096);
    assert_int_equal(count_of(text, "\"event\":\"hint\""), 10);
    assert_in_range(count_of(text, "\ndata: {\"step\""), 1500, 3500);
    assert_non_null(strstr(text, "{\"step\":10000,"));
    assert_non_null(strstr(text, "{\"step\":9999,"));
    rp_view_stream_close(stream);
    rp_arena_finish(&feed.arena);
}

static void silence_and_invalid_lines(void **state) {
    static const char bad[] = "{\"step\":1,\"x\":\"a\rb\"}\n[]\n\n{\"step\":4}\n";
    (void)state;
    begin_feed();
    append("log.jsonl", bad, sizeof bad - 1);
    rp_view_feed_update(&feed, 1);
    rp_view_stream *stream = open_stream(0);
    const char *text = take_all(stream, 1, 4096);
    assert_int_equal(count_of(text, "id: "), 1);
    assert_non_null(strstr(text, "id: 4\ndata: {\"step\":4}\n\n"));
    assert_null(strchr(text, '\r'));
    const int64_t later_ns = 16 * RP_NS_PER_S;
    assert_true(rp_view_stream_has_news(stream, later_ns));
    assert_string_equal(take_all(stream, later_ns, 4096), ":\n\n");
    assert_false(rp_view_stream_has_news(stream, later_ns));
    rp_view_stream_close(stream);
    rp_arena_finish(&feed.arena);
}

/* A reader that takes nothing gets the newest state when it reads again, not those in between. */
static void a_slow_reader_misses_states(void **state) {
    (void)state;
    begin_feed();
    add_steps(1, 1);
    rp_view_feed_update(&feed, 1);
    rp_view_stream *stream = open_stream(0);
    (void)take_all(stream, 1, 4096);
    for (uint32_t step = 2; step <= 6; step++) {
        add_steps(step, step);
        rp_view_feed_update(&feed, step * RP_NS_PER_S);
    }
    const char *text = take_all(stream, 7 * RP_NS_PER_S, 4096);
    assert_int_equal(count_of(text, "event: state\n"), 1);
    assert_non_null(strstr(text, "\"step\":6,"));
    assert_int_equal(count_of(text, "id: "), 5);
    rp_view_stream_close(stream);
    rp_arena_finish(&feed.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_gets_all_lines_once),
        cmocka_unit_test(a_reader_continues_after_its_last_line),
        cmocka_unit_test(a_log_that_is_rewritten_is_sent_again),
        cmocka_unit_test(a_long_log_is_thinned_but_has_all_events),
        cmocka_unit_test(silence_and_invalid_lines),
        cmocka_unit_test(a_slow_reader_misses_states),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
