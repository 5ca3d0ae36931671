#include "schedule.h"

static char *svg_of(const char *name, uint32_t stages, uint32_t micro) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    const rp_draw_options options = {
        .kind = rp_sched_find(name), .stages = stages, .micro = micro, .svg = true};
    expect_ok(rp_draw_schedule(file, &options));
    (void)fclose(file);
    return text;
}

static uint32_t occurrences(const char *text, const char *word) {
    uint32_t count = 0;
    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word)) {
        count++;
    }
    return count;
}

/* Every tag that opens closes, in order; no stray '<' or '&' in the text. */
static void check_well_formed(const char *text) {
    char open[16][16];
    uint32_t depth = 0;
    for (const char *p = strchr(text, '<'); p; p = strchr(p + 1, '<')) {
        const char *end = strchr(p, '>');
        const size_t bytes = strcspn(p + 1 + (p[1] == '/'), " >/");
        assert_non_null(end);
        assert_true(bytes > 0 && bytes < 16);
        if (p[1] == '/') {
            assert_true(depth > 0);
            depth--;
            assert_int_equal(strlen(open[depth]), bytes);
            assert_memory_equal(open[depth], p + 2, bytes);
        } else if (end[-1] != '/') {
            assert_true(depth < 16);
            memcpy(open[depth], p + 1, bytes);
            open[depth++][bytes] = 0;
        }
    }
    assert_int_equal(depth, 0);
    assert_int_equal(occurrences(text, "&"), occurrences(text, "&amp;") +
                                                 occurrences(text, "&lt;") +
                                                 occurrences(text, "&gt;"));
}

static void svg_has_every_op(void **state) {
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1}, {4, 4}, {4, 8}, {3, 2}, {16, 40}};
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++) {
        for (size_t i = 0; i < trials(sizeof sizes / sizeof sizes[0], 4); i++) {
            const uint32_t stages = sizes[i][0], micro = sizes[i][1];
            char *svg = svg_of((*kind)->name, stages, micro);
            check_well_formed(svg);
            const uint32_t halves = (*kind)->split_backward ? 2 : 1;
            const uint32_t legend = 1;
            assert_int_equal(occurrences(svg, "\"F\""), stages * micro + legend);
            assert_int_equal(occurrences(svg, "<g class=\"cell\">"), stages * micro * (1 + halves));
            /* a step has all microbatches, one, or as many as there are stages */
            const uint32_t some = stages < micro ? stages : micro;
            const uint32_t batch = (*kind)->flushed ? micro : (*kind)->accumulates ? some : 1;
            assert_int_equal(occurrences(svg, "\"U\""),
                             stages * ((micro - 1) / batch + 1) + legend);
            assert_int_equal(occurrences(svg, "class=\"lane\""),
                             (*kind)->splits ? 2 * stages : stages);
            assert_non_null(strstr(svg, "prefers-color-scheme:dark"));
            assert_null(strstr(svg, "=\"nan"));
            assert_null(strstr(svg, "@import"));
            free(svg);
        }
    }
}

/* An undivided backward is drawn as wide as its two halves, so that pictures can be compared. */
static void svg_of_1f1b_and_zb_h1_have_the_same_scale(void **state) {
    (void)state;
    char *plain = svg_of("1f1b", 4, 8);
    char *split = svg_of("zb-h1", 4, 8);
    assert_non_null(strstr(plain, "time 33 \302\267 bubble 27.3 %"));
    assert_non_null(strstr(split, "time 27 \302\267 bubble 11.1 %"));
    assert_non_null(strstr(split, "stashes 4"));
    free(plain);
    free(split);
}

static void columns_stay_aligned_with_two_digits(void **state) {
    (void)state;
    assert_true(draws(rp_sched_find("1f1b"), 1, 11,
                      "1f1b, 1 stage, 11 microbatches: 22 columns, bubble 0.0 %\n"
                      "F0  B0  F1  B1  F2  B2  F3  B3  F4  B4  F5  B5  F6  B6  F7  B7  F8  B8  "
                      "F9  B9  F10 B10   stage 0  in flight 1  versions 1  gap 0\n"));
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    const rp_draw_options options = {.kind = rp_sched_find("zb-h1"), .stages = 12, .micro = 101};
    expect_ok(rp_draw_schedule(file, &options));
    (void)fclose(file);
    const char *line = strchr(text, '\n') + 1;
    const size_t width = strcspn(line, "\n");
    for (uint32_t k = 0; k < 12; k++, line += width + 1) {
        assert_int_equal(strcspn(line, "\n"), width);
    }
    free(text);
}

static char *steady_of(const char *name, uint32_t stages, uint32_t micro, bool svg) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    const rp_draw_options options = {
        .kind = rp_sched_find(name), .stages = stages, .micro = micro, .steady = true, .svg = svg};
    expect_ok(rp_draw_schedule(file, &options));
    (void)fclose(file);
    return text;
}

/* Without a flush nobody waits, but for the replicas of avgpipe, and boards with forwards only
 * where a backward takes twice as long; the filling is not in it. */
static void the_steady_state_of_schedules_without_a_flush(void **state) {
    (void)state;
    char *text = steady_of("pipeoptim", 2, 3, false);
    assert_string_equal(text,
                        "pipeoptim, 2 stages, 3 microbatches of the steady state: "
                        "6 columns, bubble 0.0 %\n"
                        "F9  B8  F10 B9  F11 B10   stage 0  in flight 2  versions 2  gap 1\n"
                        "B8  F9  B9  F10 B10 F11   stage 1  in flight 1  versions 1  gap 0\n");
    free(text);
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++) {
        if ((*kind)->flushed) {
            const rp_draw_options options = {
                .kind = *kind, .stages = 4, .micro = 8, .steady = true};
            expect_err(rp_draw_schedule(stdout, &options), RP_ERR_USAGE);
            continue;
        }
        const bool waits = strcmp((*kind)->name, "avgpipe") == 0;
        text = steady_of((*kind)->name, 4, 8, false);
        assert_non_null(strstr(text, waits             ? "20 columns, bubble 20.0 %"
                                     : (*kind)->splits ? "8 columns, bubble 0.0 %"
                                                       : "16 columns, bubble 0.0 %"));
        free(text);
        text = steady_of((*kind)->name, 4, 8, true);
        check_well_formed(text);
        assert_non_null(strstr(text, waits             ? "bubble 20.0 %"
                                     : (*kind)->splits ? "time 16 \302\267 bubble 25.0 %"
                                                       : "time 24 \302\267 bubble 0.0 %"));
        assert_null(strstr(text, "width=\"-"));
        free(text);
    }
}

static void sizes_out_of_bounds_are_usage_errors(void **state) {
    (void)state;
    static const uint32_t bad[][2] = {
        {0, 4}, {4, 0}, {RP_DRAW_STAGES_MAX + 1, 4}, {4, RP_DRAW_MICRO_MAX + 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        for (int svg = 0; svg < 2; svg++) {
            const rp_draw_options options = {.kind = rp_sched_find("gpipe"),
                                             .stages = bad[i][0],
                                             .micro = bad[i][1],
                                             .svg = svg};
            expect_err(rp_draw_schedule(stdout, &options), RP_ERR_USAGE);
        }
    }
    assert_string_equal(rp_err_message(), "draw: expected 1 to 512 microbatches, found 513");
    free(svg_of("gpipe", RP_DRAW_STAGES_MAX, RP_DRAW_MICRO_MAX));
}

static void table_of_all_schedules(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    expect_ok(rp_draw_table(file));
    (void)fclose(file);
    for (const rp_sched_kind *const *kind = rp_sched_kinds; *kind; kind++) {
        char name[64];
        (void)snprintf(name, sizeof name, "\n| `%s` | ", (*kind)->name);
        assert_int_equal(occurrences(text, name), 5);
    }
    assert_non_null(
        strstr(text, "| `gpipe` | 4 x 8 | 33 | 27.3 % | 8 8 8 8 | 1 1 1 1 | 0 0 0 0 |\n"));
    assert_non_null(
        strstr(text, "| `1f1b` | 4 x 8 | 33 | 27.3 % | 4 3 2 1 | 1 1 1 1 | 0 0 0 0 |\n"));
    assert_non_null(
        strstr(text, "| `pipeoptim` | 4 x 8 | 24 | 0.0 % | 4 3 2 1 | 2 2 2 1 | 3 2 1 0 |\n"));
    assert_non_null(
        strstr(text, "| `zb-h1` | 4 x 8 | 27 | 11.1 % | 4 4 4 4 | 1 1 1 1 | 0 0 0 0 |\n"));
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(svg_has_every_op),
        cmocka_unit_test(svg_of_1f1b_and_zb_h1_have_the_same_scale),
        cmocka_unit_test(columns_stay_aligned_with_two_digits),
        cmocka_unit_test(the_steady_state_of_schedules_without_a_flush),
        cmocka_unit_test(sizes_out_of_bounds_are_usage_errors),
        cmocka_unit_test(table_of_all_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
