#include "folder.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "record/sink.h"
#include "record/sink_progress.h"

static rp_clock now;
static FILE *out;
extern const rp_sink_kind rp_sink_progress; /* of the registry */
static const double busy[4] = {0.92, 0.5, 0.25, NAN};

static int setup_progress(void **state) {
    if (setup(state) != 0) {
        return -1;
    }
    now = rp_clock_stepped(RP_NS_PER_S);
    out = fopen(in_folder("out"), "w");
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    return out ? 0 : -1;
}

static int teardown_progress(void **state) {
    (void)fclose(out);
    return teardown(state);
}

static void *open_sized(FILE *file, rp_progress_mode mode, uint64_t steps, uint32_t epochs,
                        uint32_t stages) {
    void *progress = NULL;
    const rp_sink_run run = {
        .progress = file, .clock = &now, .step_total = steps, .epochs = epochs, .stages = stages};
    expect_ok(rp_progress_open(&arena, &run, mode, &progress));
    assert_non_null(progress);
    return progress;
}

static void *open_progress(rp_progress_mode mode) {
    return open_sized(out, mode, 200, 2, 4);
}

static void take_step(void *progress, rp_sink_step step) {
    step.step--; /* here from 1, as it is shown */
    expect_ok(rp_sink_progress.on_step(progress, &step));
}

static void take_phase(void *progress, const char *text) {
    expect_ok(rp_sink_progress.on_phase(progress, text));
}

static void take_part(void *progress, const char *text, uint64_t done, uint64_t total,
                      const char *unit) {
    const rp_sink_part part = {.text = text, .done = done, .total = total, .unit = unit};
    expect_ok(rp_sink_progress.on_part(progress, &part));
}

static void take_event(void *progress, const char *text) {
    const rp_run_event event = {.kind = RP_EVENT_HINT, .step = 7};
    expect_ok(rp_sink_progress.on_event(progress, &(rp_sink_event){&event, text, 0}));
}

static void close_progress(void *progress) {
    expect_ok(rp_sink_progress.close(progress, NULL));
}

static rp_sink_step state_at(uint64_t step) {
    return (rp_sink_step){.step = step,
                          .epoch = step > 100,
                          .loss = 1.0 / (double)step,
                          .samples_per_s = 4901,
                          .busy = busy};
}

/* A step takes 50 ms. */
static void run_steps(void *progress, uint64_t first, uint64_t last) {
    for (uint64_t step = first; step <= last; step++) {
        now.stepped_ns += 50 * RP_NS_PER_MS;
        take_step(progress, state_at(step));
    }
}

static void plain_lines(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_AUTO); /* a file is no terminal */
    take_phase(progress, "building kernels");
    run_steps(progress, 1, 200);
    take_event(progress, "accuracy 87.3 %");
    close_progress(progress);
    assert_string_equal(
        slurp("out", NULL),
        "building kernels\n"
        "epoch 1/2  step 1/200  loss 1.0000  4901 samples/s  busy 92% 50% 25% 0%\n"
        "epoch 1/2  step 41/200  loss 0.0244  4901 samples/s  0:08 left  busy 92% 50% 25% 0%\n"
        "epoch 1/2  step 81/200  loss 0.0123  4901 samples/s  0:06 left  busy 92% 50% 25% 0%\n"
        "epoch 1/2  step 100/200  loss 0.0100  4901 samples/s  0:05 left  busy 92% 50% 25% 0%\n"
        "epoch 2/2  step 141/200  loss 0.0071  4901 samples/s  0:03 left  busy 92% 50% 25% 0%\n"
        "epoch 2/2  step 181/200  loss 0.0055  4901 samples/s  0:01 left  busy 92% 50% 25% 0%\n"
        "epoch 2/2  step 200/200  loss 0.0050  4901 samples/s  busy 92% 50% 25% 0%\n"
        "step 7: accuracy 87.3 %\n");
}

/* Names in texts come from files and peers: they draw nothing of their own. */
static void names_do_not_draw(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_PLAIN);
    take_phase(progress, "a\x1b[2Jb");
    take_event(progress, "c\x9b\x07");
    take_part(progress, "d\x1b[A", 1, 2, "MB");
    close_progress(progress);
    const char *text = slurp("out", NULL);
    assert_non_null(strstr(text, "a\\u001b[2Jb\nstep 7: c\\x9b\\u0007\n"));
    assert_null(strchr(text, '\x1b'));
}

static void nobody_watches(void **state) {
    (void)state;
    const rp_sink_run run = {.clock = &now, .step_total = 200, .epochs = 2, .stages = 4};
    void *progress = NULL;
    expect_ok(rp_sink_progress.open(&arena, &run, &progress));
    assert_null(progress);
}

static const char *tail_of(const char *text, const char *mark) {
    const char *found = NULL;
    for (const char *at = text; (at = strstr(at, mark)); at++) {
        found = at;
    }
    assert_non_null(found);
    return found;
}

static void live_picture(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_LIVE);
    take_phase(progress, "building kernels");
    assert_string_equal(slurp("out", NULL), "building kernels ...\033[K");
    run_steps(progress, 1, 50);
    const char *text = tail_of(slurp("out", NULL), "epoch");
    assert_string_equal(
        text,
        "epoch 1/2  ━━────────  24%  step 49/200  loss 0.0204  4901 samples/s  0:08 left\033[K\n"
        "ring  [0 █████▌  92%]→[1 ███     50%]→[2 █▌      25%]→"
        "[3          0%]\033[K");
    close_progress(progress);
    text = tail_of(slurp("out", NULL), "0%]");
    assert_string_equal(text, "0%]\033[K\r\033[A\033[J"); /* nothing stays */
}

static void at_most_ten_a_second(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_LIVE);
    for (uint64_t step = 1; step <= 200; step++) {
        now.stepped_ns += 5 * RP_NS_PER_MS; /* one second in all */
        take_step(progress, state_at(step));
    }
    size_t pictures = 0;
    for (const char *at = slurp("out", NULL); (at = strstr(at, "ring")); at++) {
        pictures++;
    }
    assert_in_range(pictures, 8, 11);
    close_progress(progress);
}

static void log_lines_clear_the_picture(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_LIVE);
    run_steps(progress, 1, 2);
    rp_log_warn("a line");
    assert_string_equal(tail_of(slurp("out", NULL), "0%]"), "0%]\033[K\r\033[A\033[J");
    now.stepped_ns += 1; /* and it is back at once */
    take_step(progress, (rp_sink_step){.step = 3, .loss = 1, .busy = busy});
    assert_non_null(strstr(slurp("out", NULL), "step 3/200"));
    take_event(progress, "accuracy 87.3 %");
    assert_non_null(strstr(slurp("out", NULL), "\033[A\033[Jstep 7: accuracy 87.3 %\nepoch 1/2"));
    close_progress(progress);
    rp_log_warn("the hook is gone");
}

/* Of two runs in one process each has its own. */
static void every_picture_is_cleared(void **state) {
    (void)state;
    FILE *const first_file = out;
    void *first = open_progress(RP_PROGRESS_LIVE);
    out = fopen(in_folder("other"), "w");
    assert_non_null(out);
    void *second = open_progress(RP_PROGRESS_LIVE);
    for (uint32_t i = 0; i < 2; i++) {
        run_steps(first, 1 + 2 * i, 2 + 2 * i);
        if (second) {
            run_steps(second, 1, 2);
        }
        rp_log_warn("a line");
        const char *text = tail_of(slurp("out", NULL), "0%]");
        assert_string_equal(text, "0%]\033[K\r\033[A\033[J");
        text = tail_of(slurp("other", NULL), "0%]");
        assert_string_equal(text, "0%]\033[K\r\033[A\033[J");
        if (second) {
            close_progress(second);
            second = NULL;
        }
    }
    close_progress(first);
    assert_int_equal(fclose(out), 0);
    out = first_file;
}

/* Steps of a second, some of a minute among them: the time left is that of steps of a second. A
 * ring that has become slower is believed at the third such step in a row. */
static void an_outage_is_not_expected_again(void **state) {
    (void)state;
    void *progress = open_sized(out, RP_PROGRESS_PLAIN, 1000, 1, 0);
    for (uint64_t step = 1; step <= 28; step++) {
        const bool is_outage = step == 10 || step == 15 || step == 16 || step > 25;
        now.stepped_ns += (is_outage ? 60 : 1) * RP_NS_PER_S;
        take_step(progress, (rp_sink_step){.step = step, .loss = 1});
    }
    close_progress(progress);
    const char *text = slurp("out", NULL);
    assert_non_null(strstr(text, "step 10/1000  loss 1.0000  16:30 left"));
    assert_non_null(strstr(text, "step 16/1000  loss 1.0000  16:24 left"));
    assert_non_null(strstr(text, "step 27/1000  loss 1.0000  16:13 left"));
    assert_null(strstr(text, "step 28/1000  loss 1.0000  16:12 left"));
    assert_non_null(strstr(text, "step 28/1000  loss 1.0000  16:1")); /* hours */
}

/* What is no training moves, too: a bar and the time left, or a sign of life. */
static void a_part_moves(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_LIVE);
    take_phase(progress, "measuring");
    for (int i = 0; i < 30; i++) {
        take_part(progress, "measuring", 0, 0, "");
        now.stepped_ns += 100 * RP_NS_PER_MS;
    }
    assert_string_equal(tail_of(slurp("out", NULL), "\r"), "\r⠏ measuring  2 s\033[K");
    run_steps(progress, 1, 50);
    for (uint64_t i = 0; i <= 20; i++) {
        take_part(progress, "evaluating", 50 * i, 4000, "samples");
        now.stepped_ns += 100 * RP_NS_PER_MS;
    }
    assert_string_equal(tail_of(slurp("out", NULL), "\r"),
                        "\r⠋ evaluating  ━━━━━━━━──────────────────────  25%  "
                        "1000/4000 samples  0:06 left\033[K");
    take_part(progress, "evaluating", 4000, 4000, "samples");
    take_event(progress, "accuracy 87.3 %");
    assert_non_null(strstr(slurp("out", NULL), "\033[Jstep 7: accuracy 87.3 %\nepoch 1/2"));
    now.stepped_ns += RP_NS_PER_S;
    take_step(progress, (rp_sink_step){.step = 51, .loss = 1, .busy = busy});
    assert_non_null(strstr(tail_of(slurp("out", NULL), "epoch"), "step 51/200"));
    close_progress(progress);
}

static void a_long_part_in_plain_lines(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_PLAIN);
    for (uint64_t i = 0; i <= 250; i++) {
        take_part(progress, "evaluating", i, 500, "samples");
        now.stepped_ns += 100 * RP_NS_PER_MS;
    }
    take_event(progress, "accuracy 87.3 %");
    close_progress(progress);
    assert_string_equal(slurp("out", NULL), "evaluating: 100/500 samples  0:40 left\n"
                                            "evaluating: 200/500 samples  0:30 left\n"
                                            "step 7: accuracy 87.3 %\n");
}

/* The numbers and the time left are those of the unit that is shown. */
static void a_part_that_changes_its_unit(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_PLAIN);
    take_part(progress, "building", 0, 2, "boards ready");
    for (uint64_t i = 0; i <= 150; i++) {
        now.stepped_ns += 100 * RP_NS_PER_MS;
        take_part(progress, "building", i, 200, "kernels");
    }
    close_progress(progress);
    assert_string_equal(slurp("out", NULL), "building: 100/200 kernels  0:10 left\n");
}

static void a_score_that_is_not_finite(void **state) {
    (void)state;
    void *progress = open_progress(RP_PROGRESS_PLAIN);
    const rp_sink_eval classes = {.step = 4, .split = "test", .loss = -(double)NAN};
    const rp_sink_eval values = {
        .step = 8, .split = "validation", .loss = (double)INFINITY, .accuracy = -1};
    expect_ok(rp_sink_progress.on_eval(progress, &classes));
    expect_ok(rp_sink_progress.on_eval(progress, &values));
    close_progress(progress);
    assert_string_equal(slurp("out", NULL), "step 4: test loss not finite, accuracy 0.00 %\n"
                                            "step 8: validation loss not finite\n");
}

/* Columns of the widest line, without escapes; the text is ASCII. */
static size_t columns_of(const char *text) {
    size_t widest = 0;
    size_t columns = 0;
    for (; *text; text++) {
        if (*text == '\033') {
            text += strcspn(text, "mKJA");
        } else if (*text == '\r' || *text == '\n') {
            columns = 0;
        } else {
            columns++;
        }
        widest = columns > widest ? columns : widest;
    }
    return widest;
}

/* All that was written: what goes through a terminal comes in pieces, and not at once. */
static void read_all(int terminal, char *text, size_t bytes) {
    struct pollfd item = {.fd = terminal, .events = POLLIN};
    size_t used = 0;
    while (poll(&item, 1, used ? 100 : 5000) > 0 && (item.revents & POLLIN)) {
        ssize_t got = read(terminal, text + used, bytes - 1 - used);
        assert_true(got > 0);
        used += (size_t)got;
    }
    assert_true(used > 0);
    text[used] = '\0';
}

static void a_terminal_and_its_width(void **state) {
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) {
        print_message("SKIP: no pseudo terminal here\n");
        skip();
    }
    FILE *file = fopen(ptsname(terminal), "w");
    assert_non_null(file);
    static const unsigned short widths[] = {10, 40, 60, 80, 120, 250};
    setenv("LC_ALL", "C", 1);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        for (int color = 0; color < 2; color++) {
            char text[8192] = {0};
            const struct winsize size = {.ws_col = widths[i], .ws_row = 10};
            rp_sink_step s = state_at(49999);
            assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
            setenv("NO_COLOR", color ? "" : "1", 1);
            void *progress = open_sized(file, RP_PROGRESS_AUTO, 100000, 20, 4);
            s.step -= 1;
            take_step(progress, s);
            s.step += 1;
            now.stepped_ns += INT64_C(1000) * RP_NS_PER_S;
            take_step(progress, s);
            take_part(progress, "evaluating what has been learnt", 10, 10000, "samples");
            now.stepped_ns += RP_NS_PER_S;
            take_part(progress, "evaluating what has been learnt", 20, 10000, "samples");
            close_progress(progress);
            read_all(terminal, text, sizeof text);
            if (widths[i] >= 60) {
                assert_non_null(strstr(text, "20/10000 samples  16:38 left"));
            }
            assert_int_equal(strstr(text, "\033[32m") != NULL, color && widths[i] >= 60);
            assert_in_range(columns_of(text), 10, widths[i] < 20 ? 19 : widths[i] - 1);
            if (widths[i] >= 60) { /* a step took an hour: long numbers, and whole */
                assert_non_null(strstr(text, "49999/100000"));
                assert_non_null(strstr(text, "13889:10:00 left"));
            }
            for (const char *c = text; *c; c++) {
                assert_true((unsigned char)*c < 128);
            }
        }
    }
    setenv("TERM", "dumb", 1);
    void *progress = open_sized(file, RP_PROGRESS_AUTO, 2, 1, 0);
    char text[8192] = {0};
    take_step(progress, (rp_sink_step){.step = 1, .loss = NAN});
    close_progress(progress);
    read_all(terminal, text, sizeof text);
    assert_string_equal(text, "epoch 1/1  step 1/2  loss not finite\r\n");
    fclose(file);
    close(terminal);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plain_lines, setup_progress, teardown_progress),
        cmocka_unit_test_setup_teardown(names_do_not_draw, setup_progress, teardown_progress),
        cmocka_unit_test_setup_teardown(nobody_watches, setup_progress, teardown_progress),
        cmocka_unit_test_setup_teardown(live_picture, setup_progress, teardown_progress),
        cmocka_unit_test_setup_teardown(at_most_ten_a_second, setup_progress, teardown_progress),
        cmocka_unit_test_setup_teardown(every_picture_is_cleared, setup_progress,
                                        teardown_progress),
        cmocka_unit_test_setup_teardown(log_lines_clear_the_picture, setup_progress,
                                        teardown_progress),
        cmocka_unit_test_setup_teardown(an_outage_is_not_expected_again, setup_progress,
                                        teardown_progress),
        cmocka_unit_test_setup_teardown(a_part_moves, setup_progress, teardown_progress),
        cmocka_unit_test_setup_teardown(a_long_part_in_plain_lines, setup_progress,
                                        teardown_progress),
        cmocka_unit_test_setup_teardown(a_part_that_changes_its_unit, setup_progress,
                                        teardown_progress),
        cmocka_unit_test_setup_teardown(a_score_that_is_not_finite, setup_progress,
                                        teardown_progress),
        cmocka_unit_test_setup_teardown(a_terminal_and_its_width, setup_progress,
                                        teardown_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
